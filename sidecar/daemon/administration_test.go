package daemon

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/config"
)

// newActs gives what was recorded since the last call, without digests and the settings that only tests set.
func (s *shared) newActs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, a := range s.acts {
		if _, what, _ := strings.Cut(a, " "); strings.HasPrefix(what, "files.") || strings.HasPrefix(what, "metrics.") {
			continue
		} else if before, _, ok := strings.Cut(a, "configuration: in force: "); ok {
			a = before + "configuration " + a[strings.LastIndex(a, "("):]
		}
		out = append(out, a)
	}
	s.acts = nil
	return out
}

// Settings are recorded with the round that has them first: those of the start, of a reload, and of a start with others. A storm of
// reloads records what differs between two rounds, and a quiet turn records, too.
func TestSettingsAreRecorded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, books := newLive(), newShared()
		on.submit("nlp", 3, 4)
		const first, second = "mode: observe\ninterval: 10s\nconfig: {accept_above: 0}\n", "mode: act\ninterval: 10s\nconfig: {accept_above: 0}\ntenants: {weights: {nlp: 3}}\n"
		r := start(t, "a", books, on, dir, first)
		pass(time.Minute)
		if d := cmp.Diff([]string{"1 configuration (start)", "1 config.accept_above: 0 (start)"}, books.newActs()); d != "" {
			t.Errorf("at the start:\n%s", d)
		}
		reload := func(text string) {
			next := settings(t, dir, text)
			r.service.read = func() (*config.Config, error) { return next, nil }
			r.hangup <- syscall.SIGHUP
			synctest.Wait()
		}
		reload(second)
		pass(11 * time.Second)
		got := books.newActs()
		if len(got) == 0 {
			t.Fatal("a reload is not recorded")
		}
		round, _, _ := strings.Cut(got[0], " ")
		if d := cmp.Diff([]string{round + " configuration (reload)", round + " mode: act (reload)", round + " tenants.weights.nlp: 3 (reload)"}, got); d != "" {
			t.Errorf("a reload:\n%s", d)
		}
		for range 500 {
			reload(first + "tenants: {weights: {}}\n")
			reload(second)
		}
		pass(time.Minute)
		if got := books.newActs(); len(got) > 0 {
			t.Errorf("a storm of reloads that changes nothing is recorded: %q", got)
		}
		reload(second + "forecast: {runs: 50}\n") // no round decides by it
		pass(11 * time.Second)
		if got := books.newActs(); len(got) != 2 || !strings.HasSuffix(got[1], "forecast.runs: 50 (reload)") {
			t.Errorf("in a quiet turn: %q", got)
		}
		r.end(t)
		r = start(t, "a", books, on, dir, first+"tenants: {weights: {}}\n")
		pass(11 * time.Second)
		got = books.newActs()
		if text := strings.Join(got, "\n"); len(got) != 3 || !strings.Contains(text, "mode: observe (start)") || !strings.Contains(text, "forecast.runs: 100 (start)") {
			t.Errorf("a start with other settings: %q", got)
		}
		r.end(t)
	})
}
