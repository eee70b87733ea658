package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Live is the data of an event of the live stream: there is a new state.
type Live struct {
	Serial int64      `json:"serial"`
	Round  int64      `json:"round"`
	At     time.Time  `json:"at,omitzero"`
	Read   time.Time  `json:"read,omitzero"`
	Silent *time.Time `json:"silent_since,omitempty"`
}

// lives counts streams by person or address.
type lives struct {
	lock sync.Mutex
	of   map[string]int
}

// enter counts a stream, unless there are most already.
func (l *lives) enter(who string, most int) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.of[who] >= most {
		return false
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.of[who]++
	return true
}

func (l *lives) leave(who string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.of[who]--; l.of[who] <= 0 {
		delete(l.of, who)
	}
}

func or[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}

// live sends an event now, and one for each new Scene.
func (a *API) live(w http.ResponseWriter, r *http.Request) {
	full := &problem{status: http.StatusServiceUnavailable, What: "too many live streams are open", Next: "close some, or ask " + Root + "/status now and then with If-None-Match"}
	name := rights.Asker(rights.From(r.Context()).User, r)
	if !a.lives.enter(name, or(a.MaxLiveEach, 20)) {
		refuse(w, full)
		return
	}
	defer a.lives.leave(name)
	news, done, ok := a.Source.Subscribe(or(a.MaxLive, 200))
	if !ok {
		refuse(w, full)
		return
	}
	defer done()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	flow := http.NewResponseController(w)
	send := func(text string) bool {
		_ = flow.SetWriteDeadline(time.Now().Add(or(a.Patience, 10*time.Second)))
		_, err := fmt.Fprint(w, text)
		sent := err == nil && flow.Flush() == nil
		_ = flow.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream at its deadline even if nothing is being written
		return sent
	}
	beat := time.NewTicker(or(a.Heartbeat, 15*time.Second))
	defer beat.Stop()
	for last := r.Header.Get("Last-Event-ID"); ; {
		s := a.Source.Scene()
		if id := a.boot + "-" + strconv.FormatInt(s.Serial, 10); id != last {
			if !send(event(id, s)) {
				return
			}
			last = id
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-beat.C:
			if !send(": alive\n\n") {
				return
			}
		}
	}
}

func event(id string, s *scene.Scene) string {
	data, err := json.Marshal(Live{s.Serial, s.Round, s.At, s.Read, s.Silent})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("id: %s\nevent: round\nretry: 3000\ndata: %s\n\n", id, data)
}
