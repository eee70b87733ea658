package backtest

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// habitsOf gives how jobs save, the best evidence first: behaviour of jobs of the type, users'
// declarations, the site's rules.
func habitsOf(habits []cluster.Habit, jobs []cluster.Job, rules []cluster.SavingRule) []experiment.Habit {
	var out []experiment.Habit
	for i := range habits {
		if h, ok := experiment.Learnt(&habits[i]); ok {
			h.Source = cluster.FromConduct
			out = append(out, h)
		}
	}
	add := func(j *cluster.Job, s cluster.Saving, source cluster.SavingSource) {
		m, ok := experiment.MannerOf(s)
		k := experiment.KindOf(&trace.Job{User: j.User, Name: j.Name, Command: j.Command, GPUs: gpus(j)})
		h := experiment.Habit{User: k.User, Command: k.Name, GPUs: k.GPUs, Manner: m, Source: source}
		if ok && h.Command != "" && !slices.ContainsFunc(out, func(o experiment.Habit) bool { return o.User == h.User && o.Command == h.Command && o.GPUs == h.GPUs }) {
			out = append(out, h)
		}
	}
	for i := range jobs {
		add(&jobs[i], jobs[i].Declares, cluster.FromDeclaration)
	}
	for i := range jobs {
		j := &jobs[i]
		at := slices.IndexFunc(rules, func(r cluster.SavingRule) bool {
			return (r.QOS == "" || r.QOS == j.QOS) && (r.Partition == "" || slices.Contains(j.Partitions, r.Partition))
		})
		if at >= 0 {
			add(j, cluster.Saving{Manner: rules[at].Manner, Every: rules[at].Every}, cluster.FromSite)
		}
	}
	return out
}

// gpus gives a job's number of allocated GPUs, else of requested ones.
func gpus(j *cluster.Job) int { return cmp.Or(j.GPUsHeld(), j.Request.Size.Devices) }

// seen lists the jobs of a past, latest first.
func seen(p *store.Past) []cluster.Job {
	out := make([]cluster.Job, 0, len(p.Seen))
	for i := len(p.Seen) - 1; i >= 0; i-- {
		out = append(out, p.Seen[i].Job)
	}
	return out
}

// Assume lets jobs save as the journal shows, and otherwise according to m.
func (s *Window) Assume(m experiment.Mixture) {
	known := habitsOf(s.past.End.Plan.State.Habits, seen(s.past), s.Setup.Settings.Saves)
	if len(known) > 0 {
		m.Habits = append(slices.Clone(m.Habits), known...)
		if m.File == "" {
			m.File = "the journal"
		} else {
			m.File += " and the journal"
		}
	}
	s.Setup.Saves = m
}

// Kinds sums the jobs of the window by kind, largest GPU time first.
func (s *Window) Kinds(jobs []score.Job) []score.Kind {
	of := map[string]*trace.Job{}
	for j := range s.Setup.Load.Jobs {
		of[j.ID] = &j
	}
	sums := tally{}
	for i := range jobs {
		j := &jobs[i]
		if t := of[j.ID]; t != nil {
			sums.add(&s.Setup, t, j)
		}
	}
	return sums.sorted()
}

// Queue sums the jobs in Slurm's queue by kind, with the GPU time of their current attempts.
// habits and rules say how they save.
func Queue(now cluster.Instant, jobs []cluster.Job, habits []cluster.Habit, rules []cluster.SavingRule) []score.Kind {
	s := experiment.Setup{Saves: experiment.Only(sim.Never)}
	s.Saves.Habits = habitsOf(habits, jobs, rules)
	sums := tally{}
	for i := range jobs {
		j := &jobs[i]
		if n := gpus(j); n > 0 && j.Batch && j.State != cluster.Done {
			held := score.Job{ID: j.ID.String(), GPUs: n}
			if j.State == cluster.Running {
				held.Held = max(now.Sub(j.Start), 0)
			}
			sums.add(&s, &trace.Job{ID: held.ID, User: j.User, Name: j.Name, Command: j.Command, GPUs: n}, &held)
		}
	}
	return sums.sorted()
}

// tally is sums by kind.
type tally map[experiment.Kind]*score.Kind

func (t tally) add(s *experiment.Setup, of *trace.Job, j *score.Job) {
	k := experiment.KindOf(of)
	sum := t[k]
	if sum == nil {
		m, why := s.Saves.Of(of, s.Seed), "assumed"
		if h := s.Saves.Habit(of); h != nil {
			why = map[cluster.SavingSource]string{cluster.FromConduct: "shown", cluster.FromDeclaration: "declared", cluster.FromSite: "site rule"}[h.Source]
			why = cmp.Or(why, "file")
		}
		sum = &score.Kind{User: k.User, Name: k.Name, GPUs: k.GPUs, Saves: m.String(), Why: why}
		t[k] = sum
	}
	sum.Jobs++
	sum.Held += cluster.Times(j.GPUs, j.Held).Hours()
	sum.Lost += cluster.Times(j.GPUs, j.Lost).Hours()
	if j.Preemptions > 0 {
		sum.Requeued++
	}
	if j.Lost > 0 {
		sum.Losers++
	}
}

func (t tally) sorted() []score.Kind {
	out := []score.Kind{}
	for _, k := range t {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b score.Kind) int {
		return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.User, b.User), cmp.Compare(a.Name, b.Name), cmp.Compare(a.GPUs, b.GPUs))
	})
	return out
}
