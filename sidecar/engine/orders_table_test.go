package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// stages are the states in which an order may find a job: it waits behind jobs of its own tenant, GPUs of running jobs are kept for it, its
// grant is under way, it runs, or it runs and has had the notice of its end. Each makes a world whose last round has the job in that state.
var stages = []struct {
	name string
	make func(t *testing.T) (*world, cluster.JobID)
}{
	{"waits", func(t *testing.T) (*world, cluster.JobID) {
		w, _, waits := contested(t)
		id := w.submit("b", 1, forever, nil)
		w.Run(minute)
		w.state(waits[0], cluster.Waiting)
		w.why(id, cluster.ReasonBehind)
		return w, id
	}},
	{"claimed", func(t *testing.T) (*world, cluster.JobID) { return claimed(t) }},
	{"granted", func(t *testing.T) (*world, cluster.JobID) {
		w, id := claimed(t)
		w.Refuse = func(j *cluster.Job) string {
			if j.ID == id {
				return "Resources"
			}
			return ""
		}
		for range 80 {
			if w.Run(10 * second); w.Reason(id).Code == cluster.ReasonStarting {
				break
			}
		}
		w.why(id, cluster.ReasonStarting)
		w.Refuse = nil
		w.Reconsider()
		return w, id
	}},
	{"runs", func(t *testing.T) (*world, cluster.JobID) {
		w, runs, _ := contested(t)
		w.Run(5 * minute)
		w.state(runs[1], cluster.Running)
		return w, runs[1]
	}},
	{"has notice", func(t *testing.T) (*world, cluster.JobID) {
		w, runs, _ := contested(t)
		for range 120 {
			w.Run(10 * second)
			for _, id := range runs {
				if l := w.lease(id); l != nil && l.State == cluster.Noticed {
					return w, id
				}
			}
		}
		t.Fatal("no job has notice")
		return nil, cluster.JobID{}
	}},
}

// claimed gives a world in which GPUs are kept for a gang of three, from the end of running leases.
func claimed(t *testing.T) (*world, cluster.JobID) {
	set := simtest.Product()
	set.RecallFirst, set.Threshold = false, minute
	w := newWorld(t, set, []int{4}, "a", "b")
	w.Submit("a", 4, 1, forever)
	w.Run(minute)
	id := w.submit("b", 3, forever, nil)
	for range 80 {
		if w.Run(10 * second); w.Reason(id).Code == cluster.ReasonClaim {
			return w, id
		}
	}
	t.Fatal("no GPUs are kept for the gang")
	return nil, id
}

// fate is what becomes of a job in the 90 minutes after a stage.
type fate struct {
	waited   cluster.Span // until it began to run; -1 = it did not
	requeues int
}

// follow runs a world for 90 minutes.
func (w *world) follow(id cluster.JobID) fate {
	begin, f := w.Now(), fate{waited: -1}
	before := w.Job(id).Restarts
	end := begin.Add(90 * minute)
	for w.Now() < end && f.waited < 0 {
		if w.Job(id).State == cluster.Running {
			f.waited = w.Now().Sub(begin)
			break
		}
		w.Run(10 * second)
	}
	w.Run(end.Sub(w.Now()))
	f.requeues = w.Job(id).Restarts - before
	return f
}

// Every order, for a job in every stage. start: the job begins to run when it would without the order (same), sooner, at the same time or
// sooner (no later), or not at all while the order lasts (never).
func TestOrdersByStage(t *testing.T) {
	for _, c := range []struct {
		order  string
		stage  string
		start  string
		stays  bool // it is not requeued
		opened bool // its gate is opened, so that Slurm may start it
	}{
		{"exempt", "waits", "no later", true, true},
		{"exempt", "claimed", "same", true, true},
		{"exempt", "granted", "same", true, false},
		{"exempt", "runs", "same", true, false},
		{"exempt", "has notice", "same", true, false},
		{"boost", "waits", "sooner", true, false},
		{"boost", "claimed", "same", false, false},
		{"boost", "granted", "same", false, false},
		{"boost", "runs", "same", false, false},
		{"boost", "has notice", "same", false, false},
		{"freeze", "waits", "never", true, false},
		{"freeze", "claimed", "never", true, false},
		{"freeze", "granted", "same", false, false},
		{"freeze", "runs", "same", false, false},
		{"freeze", "has notice", "same", false, false},
		{"exempt and boost", "waits", "sooner", true, true},
		{"exempt and boost", "claimed", "same", true, true},
		{"exempt and boost", "granted", "same", true, false},
		{"exempt and boost", "runs", "same", true, false},
		{"exempt and boost", "has notice", "same", true, false},
	} {
		t.Run(c.order+", a job that "+c.stage, func(t *testing.T) {
			for _, s := range stages {
				if s.name != c.stage {
					continue
				}
				w, id := s.make(t)
				without := w.follow(id)
				w, id = s.make(t)
				w.did = nil
				switch c.order {
				case "exempt and boost":
					w.order(cluster.Boost, "job", id.String(), 5)
					w.order(cluster.Exempt, "job", id.String(), 5)
				default:
					w.order(cluster.OverrideKind(c.order), "job", id.String(), 5)
				}
				if w.Run(10 * second); c.order == "freeze" && c.start == "never" {
					w.why(id, cluster.ReasonFrozen)
					for _, cl := range w.Last.State.Claims {
						if cl.Job == w.Record(id).Key {
							t.Errorf("GPUs are kept for a frozen job: %+v", cl)
						}
					}
				}
				if opened := len(w.done(cluster.Open, id)) > 0; opened != c.opened {
					t.Errorf("its gate was opened: %v", opened)
				}
				with := w.follow(id)
				if with.waited >= 0 && without.waited > 0 {
					with.waited += 10 * second
				}
				later := with.waited < 0 || without.waited >= 0 && with.waited > without.waited+10*second
				sooner := with.waited >= 0 && (without.waited < 0 || with.waited < without.waited-10*second)
				if bad := map[string]bool{"same": later || sooner, "sooner": !sooner, "no later": later, "never": with.waited >= 0}[c.start]; bad {
					t.Errorf("it began to run after %s, and without the order after %s (-1 = never)", with.waited, without.waited)
				}
				if stayed := with.requeues == 0; stayed != c.stays {
					t.Errorf("it was requeued %d times", with.requeues)
				}
				if told := w.ended(); len(told) > 0 {
					t.Errorf("%q", told)
				}
			}
		})
	}
}

// A boost and an exemption go together, also of different scopes: an exempt job keeps its place in the queue.
func TestExemptJobsKeepTheirBoost(t *testing.T) {
	for what, boost := range map[string]func(w *world, id cluster.JobID){
		"its own":    func(w *world, id cluster.JobID) { w.order(cluster.Boost, "job", id.String(), 9) },
		"its user's": func(w *world, _ cluster.JobID) { w.order(cluster.Boost, "user", "first", 9) },
	} {
		w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
		w.submit("b", 1, forever, nil)
		w.Run(minute)
		others := w.Submit("a", 2, 1, forever)
		id := w.submit("a", 1, forever, func(j *sim.Work) { j.User = "first" })
		w.Run(10 * second)
		boost(w, id)
		w.order(cluster.Exempt, "job", id.String(), 9)
		w.Run(2 * hour)
		w.state(id, cluster.Running)
		if got := w.Received(others[0]) + w.Received(others[1]); got != 0 {
			t.Errorf("%s: other jobs of the tenant were served before it", what)
		}
	}
}

// The narrowest order counts; a freeze ends the search, and exemptions and boosts add up on the way.
func TestWhichOrdersCount(t *testing.T) {
	of := func(words ...string) (out []cluster.Override) {
		for i := 0; i < len(words); i += 3 {
			out = append(out, cluster.Override{ID: int64(i/3 + 1), Kind: cluster.OverrideKind(words[i]), Scope: words[i+1], Name: words[i+2], Until: 100, Job: 9, User: "ann"})
		}
		return out
	}
	r := cluster.Record{Key: 7, ID: cluster.TaskID(5, 3), User: "ann", Tenant: "nlp"}
	for _, c := range []struct {
		all     []cluster.Override
		counts  int64
		boosted bool
	}{
		{nil, 0, false},
		{of("boost", "job", "5_3"), 1, true},
		{of("boost", "job", "5_4", "freeze", "user", "bob", "freeze", "tenant", "bio", "freeze", "job", "6"), 0, false},
		{of("exempt", "job", "5_3", "boost", "job", "5"), 1, true},
		{of("boost", "job", "5_3", "exempt", "tenant", "nlp"), 2, true},
		{of("boost", "job", "5_3", "freeze", "user", "ann", "exempt", "tenant", "nlp"), 1, true},
		{of("exempt", "user", "ann", "freeze", "job", "5", "boost", "job", "5"), 2, false},
		{of("freeze", "tenant", "nlp", "exempt", "user", "ann"), 2, false},
		{of("exempt", "tenant", "nlp", "exempt", "job", "5", "exempt", "job", "5_3"), 3, false},
	} {
		index := cluster.OverridesOf(c.all, 10)
		o, boosted := index.Of(&r)
		got := int64(0) // none
		if o != nil {
			got = o.ID
		}
		if got != c.counts || boosted != c.boosted {
			t.Errorf("%+v: override %d counts, boosted %v; want %d, %v", c.all, got, boosted, c.counts, c.boosted)
		}
	}
}
