package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// owner is the user of a tenant's jobs, who may suspend, resume and requeue them.
type owner struct {
	*simtest.World
	t     *testing.T
	ids   []cluster.JobID
	done  map[cluster.JobID]bool             // jobs that the owner has suspended or resumed
	was   map[cluster.JobID]cluster.JobState // at the last look
	since map[cluster.JobID]cluster.Instant  // when that began
}

func (o *owner) does(verb cluster.Verb, id cluster.JobID) {
	if out := o.Apply(o.t.Context(), []cluster.Action{{Verb: verb, ID: id}}); !out[0].OK {
		o.t.Fatalf("%s of job %s: %s", verb, id, out[0].Error)
	}
}

// each calls for each job that takes turns, with the time for which it has been running or suspended.
func (o *owner) each(call func(id cluster.JobID, paused bool, lasts cluster.Span)) {
	for _, id := range o.ids {
		j := o.Job(id)
		if j.State != o.was[id] {
			o.was[id], o.since[id] = j.State, o.Now()
		}
		if paused := j.State == cluster.Suspended; paused || j.State == cluster.Running && !cluster.SizeHeld(j.Holds).IsWhole() {
			call(id, paused, o.Now().Sub(o.since[id]))
		}
	}
}

// strategy is what the owner of a tenant's jobs does.
type strategy struct {
	name    string
	jobs    int
	comment string
	play    func(o *owner, at cluster.Span) // each second; at = since the last round
}

// strategies begin with that of an honest owner.
func strategies() []strategy {
	const second = cluster.Second
	return []strategy{
		{"honest", 1, modest, nil},
		{"always resumed", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, _ cluster.Span) {
				if paused {
					o.does(cluster.Resume, id)
				}
			})
		}},
		{"resumed between two rounds", 1, modest, func(o *owner, at cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, _ cluster.Span) {
				switch {
				case at == second && paused:
					o.does(cluster.Resume, id)
					o.done[id] = true
				case at == 9*second && !paused && o.done[id]:
					o.does(cluster.Suspend, id)
					fallthrough
				case at == 9*second:
					delete(o.done, id)
				}
			})
		}},
		{"resumed before its turn", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, lasts cluster.Span) {
				if paused && lasts >= 51*second {
					o.does(cluster.Resume, id)
				}
			})
		}},
		{"suspended in its turn, and resumed in the next one", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, lasts cluster.Span) {
				switch {
				case !paused && lasts >= 45*second && !o.done[id]:
					o.does(cluster.Suspend, id)
					o.done[id] = true
				case paused && lasts >= 12*second && o.done[id]:
					o.does(cluster.Resume, id)
					delete(o.done, id)
				}
			})
		}},
		{"suspended at the end of its turn, and resumed at once", 1, modest, func(o *owner, at cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, lasts cluster.Span) {
				switch {
				case !paused && lasts >= 58*second:
					o.does(cluster.Suspend, id)
				case paused && at == second:
					o.does(cluster.Resume, id)
				}
			})
		}},
		{"requeued while it is suspended", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, lasts cluster.Span) {
				if paused && lasts >= 5*second {
					o.Requeue(id)
				}
			})
		}},
		{"requeued as soon as it is suspended", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, _ cluster.Span) {
				if paused {
					o.Requeue(id)
				}
			})
		}},
		{"requeued before its turn", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, lasts cluster.Span) {
				if paused && lasts >= 50*second {
					o.Requeue(id)
				}
			})
		}},
		{"requeued in its turn", 1, modest, func(o *owner, _ cluster.Span) {
			o.each(func(id cluster.JobID, paused bool, lasts cluster.Span) {
				if !paused && lasts >= 55*second {
					o.Requeue(id)
				}
			})
		}},
		{"many jobs", 60, modest, nil},
		{"too little memory", 1, "share=yes,mem.v100=1m", nil},
	}
}

// plays gives as on how many GPUs the jobs of accounts go on by a strategy for some hours, and on the mean a job of each of some tenants beside them on one
// GPU, for how many GPUs the accounts are charged, and how often one of the tenants' jobs was stopped at most.
func (s *strategy) plays(t *testing.T, w *simtest.World, hours int, accounts, tenants []string) (got, other, charged float64, stops int) {
	const second = cluster.Second
	o := &owner{w, t, nil, map[cluster.JobID]bool{}, map[cluster.JobID]cluster.JobState{}, map[cluster.JobID]cluster.Instant{}}
	for _, account := range accounts {
		o.ids = append(o.ids, shares(w, account, s.jobs, s.comment)...)
	}
	var partners []cluster.JobID
	for _, tenant := range tenants {
		partners = append(partners, shares(w, tenant, 1, little)...)
	}
	used := func() (sum cluster.GPUTime) {
		for _, account := range accounts {
			sum += w.Used(account)
		}
		return sum
	}
	done := func(ids []cluster.JobID) (sum cluster.Span) {
		for _, id := range ids {
			sum += w.Progress(id)
		}
		return sum
	}
	begin, others, before := cluster.Span(0), cluster.Span(0), cluster.GPUTime(0)
	first, length := 15*60, 15*60+hours*60*60
	for at := range length {
		if at%10 == 0 {
			r, err := w.Loop.Turn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !r.Quiet {
				w.Last = r.Plan
			}
		}
		if w.Advance(w.Now().Add(second)); at == first {
			begin, others, before = done(o.ids), done(partners), used()
		}
		if s.play != nil && at >= first {
			s.play(o, cluster.Span(at%10+1)*second)
		}
	}
	for _, id := range partners {
		stops = max(stops, w.Record(id).Stops)
	}
	span := float64(cluster.Span(length-first) * second)
	return float64(done(o.ids)-begin) / span, float64(done(partners)-others) / span / float64(len(partners)), float64(used()-before) / span, stops
}

// An owner gains no GPU time who resumes, suspends or requeues jobs that take turns, submits many of them, or says that they need little memory, where
// two tenants share a GPU or three.
func TestNoGainBySlices(t *testing.T) {
	for _, among := range []int{2, 3} {
		honest := 0.0
		for _, s := range strategies() {
			tenants := []string{"x", "y", "z"}[:among]
			w := slicedAmong(t, simtest.Nodes("n", "v100", 1, 1), among, tenants...)
			if among == 3 && s.comment == modest {
				s.comment = little
			}
			got, other, _, stops := s.plays(t, w, 1, tenants[:1], tenants[1:])
			if s.name == "honest" {
				honest = got
			}
			gain := 100 * (got/honest - 1)
			t.Logf("%d on a GPU, %s: as on %.3f GPUs, %+.1f %%; its partners as on %.3f each, stopped %d times at most", among, s.name, got, gain, other, stops)
			if gain > 3 || other < 0.98/float64(among) || stops > 0 {
				t.Errorf("%d on a GPU, %s: goes on as on %.3f GPUs, %+.1f %%; its partners as on %.3f each, and were stopped %d times", among, s.name, got, gain, other, stops)
			}
		}
	}
}
