package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/store"
)

// rows are rows of the record of administration that wait to go to syslog.
type rows struct {
	mu    sync.Mutex
	place string
	acts  []store.Act
	why   string
	tries int
}

func (r *rows) Waiting(context.Context, int) (string, []store.Act, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.place, r.acts, nil
}

func (r *rows) Sent(_ context.Context, ids []int64, why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts, r.why = r.acts[len(ids):], why
	r.tries++
	return nil
}

// A syslog that cannot be reached holds up no round. The log says so once, however often it is tried, and a panic is an error like others.
func TestSyslogIsAway(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on := newShared()
		on.unsent = rows{place: "unix:" + dir + "/none", acts: []store.Act{{ID: 1, Kind: store.OfSetting, Key: "mode"}}}
		world := newLive()
		r := start(t, "a", on, world, dir, "metrics: {listen: ''}\n")
		pass(5 * time.Minute)
		on.unsent.mu.Lock()
		tries, why := on.unsent.tries, on.unsent.why
		on.unsent.mu.Unlock()
		if tries < 25 || !strings.Contains(why, "/none") || len(on.unsent.acts) != 1 {
			t.Errorf("%d tries, and the last failed for %q", tries, why)
		}
		if n := world.rounds(); n < 25 {
			t.Errorf("%d rounds were made in five minutes", n)
		}
		if lines := r.log.with("syslog"); len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["error"]), "/none") {
			t.Errorf("the log says %q", lines)
		}
		r.end(t)
	})
}
