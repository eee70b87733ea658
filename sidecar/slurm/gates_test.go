package slurm

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// manyGates is a server with n waiting jobs, and the actions that shut their gates.
func manyGates(t *testing.T, n int) (*recorded, *Client, []cluster.Action) {
	var records []string
	var gates []cluster.Action
	for id := 1; id <= n; id++ {
		records = append(records, waitingJob(id, ""))
		gates = append(gates, cluster.Action{Verb: cluster.Gate, ID: cluster.JobID{ID: int64(id)}, Record: int64(id), Until: 2_000_000_000})
	}
	f, c := acting(t, 44, records...)
	for id := 1; id <= n; id++ {
		f.on(gateOf(id), text(ok))
	}
	return f, c, gates
}

func gateOf(id int) string { return fmt.Sprintf("POST /slurm/v0.0.44/job/%d", id) }

// each fails the test unless every gate was sent as often as want allows.
func (f *recorded) each(want func(id, times int) bool, n int) {
	f.Helper()
	for id := 1; id <= n; id++ {
		if times := f.count(gateOf(id)); !want(id, times) {
			f.Errorf("gate %d was sent %d times", id, times)
		}
	}
}

func TestManyGates(t *testing.T) {
	t.Parallel()
	const n = 50 * connections
	f, c, gates := manyGates(t, n)
	for i, o := range c.Apply(t.Context(), gates) {
		if !o.OK || o.At != c.now() {
			t.Errorf("gate %d: %+v", i+1, o)
		}
	}
	f.each(func(_, times int) bool { return times == 1 }, n)
	want := map[string]any{"begin_time": map[string]any{"set": true, "infinite": false, "number": float64(2_000_000)}}
	if got := f.body(gateOf(n)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("body %v; want %v", got, want)
	}
}

// slurmrestd closes the connection after every refusal: the gates after it are shut too, once.
func TestRefusalsAmongManyGates(t *testing.T) {
	t.Parallel()
	const n = 48
	f, c, gates := manyGates(t, n)
	refused := func(id int) bool { return id%5 == 0 || id == 17 }
	for id := 1; id <= n; id++ {
		if refused(id) {
			f.on(gateOf(id), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "close")
				status(404, text(`{"errors":[{"error_number":2017,"error":"Invalid job id specified"}]}`))(w, r)
			})
		}
	}
	for i, o := range c.Apply(t.Context(), gates) {
		if refused(i+1) && (!o.Skipped || !strings.Contains(o.Error, "no longer knows")) || !refused(i+1) && !o.OK {
			t.Errorf("gate %d: %+v", i+1, o)
		}
	}
	f.each(func(_, times int) bool { return times == 1 }, n)
}

// A change whose answer is missing may have been carried out: it is not sent again, and reported as unknown. The other gates are shut.
func TestConnectionBreaksAmongManyGates(t *testing.T) {
	t.Parallel()
	const n = 20 * connections
	for name, a := range map[string]answer{
		"broken":  hijack(""),
		"cut":     hijack("HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n{\"errors\":["),
		"no HTTP": hijack("what?\r\n\r\n"),
		"hung":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			f, c, gates := manyGates(t, n)
			if name == "hung" {
				c.rest.cfg.Timeout = time.Second
			}
			f.on(gateOf(3), a)
			for i, o := range c.Apply(t.Context(), gates) {
				unknown := strings.Contains(o.Error, "outcome unknown")
				if lost := i+1 == 3; lost && (o.OK || o.Skipped || !unknown) || !lost && !o.OK {
					t.Errorf("gate %d: %+v", i+1, o)
				}
			}
			f.each(func(_, times int) bool { return times == 1 }, n)
		})
	}
}

// hijack answers with these bytes and closes the connection.
func hijack(bytes string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = conn.Write([]byte(bytes))
		conn.Close()
	}
}

func TestNobodyHearsManyGates(t *testing.T) {
	t.Parallel()
	_, c, gates := manyGates(t, 2)
	c.Close()
	c.rest.dial = mustREST(t, "unix:///nowhere/slurmrestd.sock").dial
	for i, o := range c.Apply(t.Context(), gates) {
		if o.OK || !strings.Contains(o.Error, "is slurmrestd running?") || strings.Contains(o.Error, "outcome unknown") {
			t.Errorf("gate %d: %+v", i+1, o)
		}
	}
}

func mustREST(t *testing.T, address string) *rest {
	t.Helper()
	r, err := newREST(Config{Address: address}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A token that expires in the middle is read again, and nothing is done twice.
func TestTokenRunsOutAmongManyGates(t *testing.T) {
	t.Parallel()
	const n = 32
	f, c, gates := manyGates(t, n)
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte("SLURM_JWT="+token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	c.rest.cfg.User, c.rest.token.file = "fairlease", file
	if _, err := c.rest.token.current(); err != nil {
		t.Fatal(err)
	}
	c.rest.token.was, _ = os.Stat(file) // as if the next token had the same time and size
	write("new")
	if err := os.Chtimes(file, time.Time{}, c.rest.token.was.ModTime()); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= n; id++ {
		f.on(gateOf(id), func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-SLURM-USER-TOKEN") != "new" || r.Header.Get("X-SLURM-USER-NAME") != "fairlease" {
				w.Header().Set("Connection", "close")
				status(401, text(`{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`))(w, r)
				return
			}
			text(ok)(w, r)
		})
	}
	for i, o := range c.Apply(t.Context(), gates) {
		if !o.OK {
			t.Errorf("gate %d: %+v", i+1, o)
		}
	}
	taken := map[string]int{}
	for _, a := range f.all() {
		if a.token == "new" {
			taken[a.what]++
		}
	}
	for id := 1; id <= n; id++ {
		if taken[gateOf(id)] != 1 {
			t.Errorf("gate %d was shut %d times", id, taken[gateOf(id)])
		}
	}
}
