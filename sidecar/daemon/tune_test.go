package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// tuned is a configuration that chooses the term at 03:00 of each night.
const tuned = "mode: act\ninterval: 5m\nlease: {term: 15m, min: 10m, notice: 5m, grant_timeout: 5m}\ngate: {ttl: 1h}\n" +
	"tune: {at: 0 3 * * *, zone: UTC, terms: [10m, 15m, 30m, 1h], apply: true, watch: 2d, rest: 10d}\n"

// longer is a study in which longer terms are better, the more so the longer they are. It also has what happened since
// the takeover that holds, at a cost.
func longer(on *shared, cost float64) tune.Study {
	now := cluster.InstantOf(time.Now())
	s := tune.Study{Was: tune.Measure{From: now.Add(-7 * cluster.Day), To: now, Jobs: 9, Unfair: 0.05}}
	for i, term := range []cluster.Span{10 * cluster.Minute, 15 * cluster.Minute, 30 * cluster.Minute, cluster.Hour} {
		s.Trials = append(s.Trials, tune.Trial{Term: term, Measure: tune.Measure{Jobs: 9, Losses: 9 - i, Completion: 3600}})
	}
	on.mu.Lock()
	defer on.mu.Unlock()
	if c := tune.Newest(on.record); c != nil {
		s.Since = &tune.Measure{From: c.At, To: now, Jobs: 3, Unfair: cost}
	}
	return s
}

// kinds gives the kinds of all changes, oldest first.
func (s *shared) kinds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range slices.Backward(s.record) {
		out = append(out, fmt.Sprintf("%s %v", c.Kind, config.Duration(c.Term)))
	}
	return strings.Join(out, ", ")
}

// settings gives those of the last round.
func (r *rig) settings() cluster.Settings {
	r.service.gate.enter()
	defer r.service.gate.leave()
	return r.service.rounds.last.Settings
}

// toMidnight passes the time until the next midnight, UTC.
func toMidnight() {
	pass(24*time.Hour - time.Duration(time.Now().UnixNano())%(24*time.Hour))
}

// Night after night: a better term is taken over, watched, undone when the days are worse, and rests then; another one
// that proves itself stays. Rounds have the term in force, and the first of them says in an event what has changed.
// Another daemon continues where one ends.
func TestNights(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on, live := newShared(), newLive()
		live.submit("nlp", 3, 4)
		var percent atomic.Int64
		percent.Store(5)
		study := func(context.Context) (tune.Study, error) { return longer(on, float64(percent.Load())/100), nil }
		begin := func(name string) *rig { return start(t, name, on, live, dir, tuned, study) }
		r := begin("a")
		told := func(n int, words string) {
			t.Helper()
			if lines := r.log.with(words); len(lines) != 2*n { // the decision's and the event's
				t.Errorf("%d lines with %q, want %d", len(lines), words, 2*n)
			}
		}
		for _, night := range []struct {
			cost   int64        // of the days since a takeover, in percent
			before cluster.Span // the term just before the night
			term   cluster.Span // the term after it
			kinds  string
		}{
			{5, 15 * cluster.Minute, 30 * cluster.Minute, "taken 30m"},
			{8, 30 * cluster.Minute, 15 * cluster.Minute, "taken 30m, undone 15m"},
			{5, 15 * cluster.Minute, 15 * cluster.Minute, "taken 30m, undone 15m, kept 15m"},
		} {
			percent.Store(night.cost)
			pass(2*time.Hour + 59*time.Minute)
			if s := r.settings(); s.Term != night.before {
				t.Errorf("before the night of %s the term is %v", night.kinds, s.Term)
			}
			pass(7 * time.Minute)
			if s := r.settings(); s.Term != night.term || on.kinds() != night.kinds {
				t.Errorf("after the night the term is %v, want %v; %s, want %s", s.Term, night.term, on.kinds(), night.kinds)
			}
			toMidnight()
		}
		told(1, "a term of 30 min is taken over in place of 15 min by fairlease")
		told(1, "the term goes back from 30 min to 15 min by fairlease: unfair tenant hours and overhead together are 8.00 % of 1.0 days, after 5.00 % in the days before; 5.00 % was predicted")
		if on.record[0].Why == "" || !strings.Contains(on.record[0].Why, "30 min was left or undone and is not tried again") {
			t.Errorf("the third night: %+v", on.record[0])
		}
		for _, c := range on.record {
			if c.Decisive() != (c.Round > 0) {
				t.Errorf("%s is of round %d", c.Words(), c.Round)
			}
		}
		r.end(t)

		// The rest is over: another daemon tries again, and the term proves itself.
		percent.Store(5)
		pass(9 * 24 * time.Hour)
		r = begin("b")
		pass(3*time.Hour + 6*time.Minute)
		if r.settings().Term != 30*cluster.Minute {
			t.Errorf("the term is %v: %s", r.settings().Term, on.kinds())
		}
		told(1, "a term of 30 min is taken over")
		r.end(t)
		r = begin("c")
		pass(10 * time.Minute)
		if s := r.settings(); s.Term != 30*cluster.Minute || s.Tuned == nil || s.Tuned.By != tune.Daemon || s.Tuned.News != "" {
			t.Errorf("after a restart: %+v, term %v", s.Tuned, s.Term)
		}
		told(0, "a term of 30 min is taken over")
		pass(3 * 24 * time.Hour)
		if want := "taken 30m, undone 15m, kept 15m, taken 30m, kept 30m, kept 30m, taken 1h"; on.kinds() != want || r.settings().Term != cluster.Hour {
			t.Errorf("%s, want %s; the term is %v", on.kinds(), want, r.settings().Term)
		}

		// The file has the last word.
		r.service.read = func() (*config.Config, error) {
			return settings(t, dir, strings.Replace(tuned, "term: 15m", "term: 20m", 1)), nil
		}
		r.hangup <- syscall.SIGHUP
		pass(10 * time.Minute)
		if lines := r.log.with("the file's term of 20 min holds again in place of 1 h: lease.term has changed from 15 min to 20 min in the file"); len(lines) != 1 || lines[0]["event"] != "tune" {
			t.Errorf("%v", lines)
		}
		if s := r.settings(); s.Term != 20*cluster.Minute || s.Tuned != nil || !strings.HasSuffix(on.kinds(), ", ended 20m") {
			t.Errorf("the term is %v, %+v; %s", s.Term, s.Tuned, on.kinds())
		}
		r.end(t)
	})
}

// A better term is only proposed where the configuration does not let it be taken over, or nothing is acted on. A person
// may take it over.
func TestNightsThatOnlyPropose(t *testing.T) {
	for old, by := range map[string]string{"apply: true": "apply: false", "mode: act": "mode: observe"} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			toMidnight()
			on, live := newShared(), newLive()
			r := start(t, "a", on, live, dir, strings.Replace(tuned, old, by, 1), func(context.Context) (tune.Study, error) { return longer(on, 0), nil })
			pass(4 * time.Hour)
			if s := r.settings(); on.kinds() != "proposed 30m" || s.Term != 15*cluster.Minute || s.Tuned != nil {
				t.Errorf("%s: %s, term %v", by, on.kinds(), s.Term)
			}
			on.add(tune.Change{Kind: tune.Taken, File: 15 * cluster.Minute, Before: 15 * cluster.Minute, Term: 30 * cluster.Minute, By: "ann", Why: "as proposed"})
			pass(10 * time.Minute)
			if s := r.settings(); s.Term != 30*cluster.Minute || len(r.log.with("is taken over in place of 15 min by ann: as proposed")) != 1 {
				t.Errorf("%s: term %v", by, s.Term)
			}
			r.end(t)
		})
	}
}

// Studies that fail, break down, or do not end disturb no round; there is one at a time, and the leader alone makes it.
func TestStudiesDisturbNoRound(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on, live := newShared(), newLive()
		var begun, ended atomic.Int64
		often := strings.Replace(tuned, "at: 0 3 * * *", "at: 0 */3 * * *", 1)
		r := start(t, "a", on, live, dir, often, func(ctx context.Context) (tune.Study, error) {
			switch begun.Add(1) {
			case 1:
				return tune.Study{}, errors.New("the journal is too short")
			case 2:
				panic("the study is off its head")
			}
			<-ctx.Done()
			ended.Add(1)
			return tune.Study{}, ctx.Err()
		})
		until(t, "the first daemon leads", func() bool { return live.rounds() > 0 })
		standby := start(t, "b", on, newLive(), t.TempDir(), often, func(context.Context) (tune.Study, error) {
			t.Error("the standby studies")
			return tune.Study{}, nil
		})
		rounds := live.rounds()
		pass(5 * 3 * time.Hour)
		if n := live.rounds() - rounds; n < 5*3*12-5 { // the pruning may take the turn of a round
			t.Errorf("%d rounds in 15 hours", n)
		}
		if begun.Load() != 3 || ended.Load() != 0 || on.kinds() != "" {
			t.Errorf("%d studies begun, %d ended: %s", begun.Load(), ended.Load(), on.kinds())
		}
		for i, line := range r.log.with("tune") {
			if want := []string{"too short", "off its head"}[i]; !strings.Contains(fmt.Sprint(line["error"]), want) {
				t.Errorf("%v, want %q", line, want)
			}
		}
		standby.end(t)
		r.end(t)
		if synctest.Wait(); ended.Load() != 1 {
			t.Error("the study outlives its daemon")
		}
	})
}

// A study that ends when another daemon leads changes nothing.
func TestStudyOfADeposedLeader(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on, live := newShared(), newLive()
		r := start(t, "a", on, live, dir, tuned, func(ctx context.Context) (tune.Study, error) {
			time.Sleep(time.Hour)
			return longer(on, 0), ctx.Err()
		})
		pass(3*time.Hour + time.Minute)
		on.mu.Lock()
		r.desk.cutOff = true
		on.mu.Unlock()
		pass(2 * time.Hour)
		if on.kinds() != "" {
			t.Errorf("it decides: %s", on.kinds())
		}
		r.end(t)
	})
}
