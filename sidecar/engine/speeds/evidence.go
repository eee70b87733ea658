package speeds

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/evidence"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// learnt returns the evidence with what jobs show that report nothing: run times of jobs that ended since the last round, and GPU
// counters.
func (x *Speeds) learnt() evidence.Book {
	if !x.in.Settings.NoCompletions {
		x.past(x.in.Snapshot.History)
		finish(x, func(int) bool { return true })
		if len(x.in.Snapshot.Attempts) > 0 {
			x.past(unseen(x))
		}
	}
	x.shown.Fit(x.in.Now, x.unfinished())
	if !x.in.Settings.NoCounters {
		x.measure(x.in.Snapshot.Uses)
	}
	return x.shown
}

// finish takes the attempts that have ended since the last round, of cases that count.
func finish(x *Speeds, counts func(i int) bool) {
	for i := range x.in.Snapshot.Cases {
		if st := &x.in.Cases[i]; st.Live && st.Before >= 0 && len(x.in.Snapshot.Attempts) == 0 {
			continue // as in the last round
		}
		c, r := &x.in.Snapshot.Cases[i], &x.in.Records[i]
		switch {
		case r.Done != 0 && c.Record.Done == 0:
			if counts(i) {
				x.ended(i)
			}
		case r.Ran > c.Record.Ran:
			if counts(i) {
				x.requeued(i)
			}
		}
	}
}

// held returns the GPUs of one model that a job held in the last round, or in an attempt that no round saw; false = several models, or
// unknown.
func held(c *cluster.Case) (cluster.ModelSize, bool) {
	gpus := c.Job.Had
	if len(gpus) == 0 {
		gpus = c.Record.Held
	}
	if len(gpus) != 1 {
		return cluster.ModelSize{}, false
	}
	return gpus[0], true
}

// requeued takes an attempt that a requeue ended: it adds its run time to that on its model.
func (x *Speeds) requeued(i int) {
	c, r := &x.in.Snapshot.Cases[i], &x.in.Records[i]
	on := cluster.ModelTime{Ran: r.Ran - c.Record.Ran}
	if len(c.Record.Held) == 1 {
		on.Model = nameOf(x, i, c.Record.Held[0].Model)
	}
	all := slices.Clone(r.RanOn)
	if k := slices.IndexFunc(all, func(t cluster.ModelTime) bool { return t.Model == on.Model }); k >= 0 {
		all[k].Ran += on.Ran
	} else {
		all = append(all, on)
	}
	if x.news.RanOn == nil {
		x.news.RanOn = map[int][]cluster.ModelTime{}
	}
	x.news.RanOn[i] = all
}

// ended takes a job that ended. Of a job that went on from its saves all attempts count, by model, less what stops cost it. Of one
// that begins anew the last attempt did all the work. If neither is known, the work takes longer than the last attempt.
func (x *Speeds) ended(i int) {
	c := &x.in.Snapshot.Cases[i]
	j := &c.Job
	if c.Gone || j.Outcome == "" || j.Start == 0 || j.End <= j.Start {
		return // nothing is known of its end
	}
	gpus, one := held(c)
	if !one {
		return
	}
	ran, whole := x.attempts(i, []cluster.ModelTime{{Model: nameOf(x, i, gpus.Model), Ran: max(j.End.Sub(j.Start)-j.Suspend, 0)}})
	x.shown.Ended(cluster.Completion{Kind: kindOf(x.in, j, c.Record.Tenant), Gang: gpus.Size.Devices}, ran,
		evidence.End{Done: whole && j.Outcome == completed, Chosen: chooses(j, scatters(x) && c.Record.Scattered)}, j.End)
}

// chooses reports whether a job may be where it is by its user's choice; a scattered one, by its number of nodes.
func chooses(j *cluster.Job, scattered bool) bool {
	r := &j.Request
	return r.Model != "" || r.Features != "" || scattered && (r.Nodes > 1 || r.PerNode > 0 || r.Exclusive)
}

// attempts returns the run times in which a job did its work, given those of its last attempt; false = it may have done more.
func (x *Speeds) attempts(i int, last []cluster.ModelTime) (ran []cluster.ModelTime, whole bool) {
	c, r := &x.in.Snapshot.Cases[i], &x.in.Records[i]
	taken := c.Record.State == cluster.Completing // its last attempt is in RanOn
	if c.Job.Restarts == 0 && (c.Record.Ran == 0 || taken) {
		return last, true
	}
	all := ranOn(x, i)
	if known := total(all); known == 0 || known < c.Record.Ran {
		all = nil
	}
	switch manner := manner(x, i); {
	case manner == cluster.SavesNever:
		return last, true
	case manner == cluster.UnknownManner || all == nil:
		return last, false
	case taken:
		return less(slices.Clone(all), r.Spent), true
	}
	return less(slices.Concat(all, last), r.Spent), true
}

// total sums run times.
func total(ran []cluster.ModelTime) (sum cluster.Span) {
	for _, t := range ran {
		sum += t.Ran
	}
	return sum
}

// unfinished returns what gives the run times, so far, of the jobs of a type that run or wait to go on.
func (x *Speeds) unfinished() func(cluster.Kind, int) [][]cluster.ModelTime {
	var all map[runs][][]cluster.ModelTime
	return func(kind cluster.Kind, gang int) [][]cluster.ModelTime {
		if all == nil {
			all = map[runs][][]cluster.ModelTime{}
			for i := range x.in.Snapshot.Cases {
				j := &x.in.Snapshot.Cases[i].Job
				var with cluster.Kind
				if x.in.Cases[i].Runs && len(j.Holds) > 1 && scatters(x) {
					with = Spread(x, j.Holds)
				}
				if !x.in.Cases[i].Live || x.in.Cases[i].Tenant < 0 || chooses(j, with == cluster.Scattered) {
					continue
				}
				var last []cluster.ModelTime
				count := j.Request.Size.Devices
				if x.in.Cases[i].Runs && len(j.Holds) > 0 {
					count = j.GPUsHeld()
					last = []cluster.ModelTime{{Model: cluster.Spread(j.Holds[0].Model, with), Ran: max(x.in.Now.Sub(j.Start)-j.Suspend, 0)}}
				} else if len(ranOn(x, i)) == 0 {
					continue
				}
				ran, _ := x.attempts(i, last)
				of := runs{x.Pairs.kind(i), count}
				all[of] = append(all[of], ran)
			}
		}
		return all[runs{kind, gang}]
	}
}

// completed is Slurm's state of a job that did all its work.
const completed = "COMPLETED"

// less takes the cost of stops off run times, from each its part.
func less(ran []cluster.ModelTime, cost cluster.Span) []cluster.ModelTime {
	sum := total(ran)
	for i := range ran {
		ran[i].Ran -= cluster.Span(cluster.MulDiv(int64(ran[i].Ran), int64(min(cost, sum)), int64(max(sum, 1))))
	}
	return ran
}

// kindOf returns the kind of a job.
func kindOf(in *round.Facts, j *cluster.Job, tenant string) cluster.Kind {
	return profile.KindOf(in.Settings.Kinds, tenant, j.User, j.Name, hintsOf(j).Kind, j.Work)
}

// The number of jobs that are let begin on a model to learn how fast it is; and of the new jobs of a kind that is known on others, one in
// so many.
const (
	beginners = 8
	oneIn     = 4
	slow      = 1.5 // as long as the work takes where it is fastest, so many times over, is enough to see that a model is slow
	longest   = cluster.Day
)

// Home returns the pool in which a job should stay, because run times are learnt from: the one in which it began, for a day at most, and no
// longer than its work would surely take elsewhere. A new job should begin where the fewest of its kind were seen. -1 = anywhere.
func (x *Speeds) Home(i int) int {
	if x.in.Settings.NoCompletions || x.in.Settings.NoEstimates || x.Kinds[i] == "" || x.Types.Reports(i) {
		return -1
	}
	r := &x.in.Records[i]
	began, ran := "", cluster.Span(0)
	if len(r.Held) > 0 {
		began, ran = r.Held[0].Model, x.in.Now.Sub(r.HeldSince)
	}
	if was := ranOn(x, i); len(was) > 0 {
		began, ran = cluster.ModelOf(was[0].Model), ran+was[0].Ran
	}
	switch {
	case began == "":
	case ran > longest || ran.Duration().Seconds()*x.shown.Fastest(x.Kinds[i], x.found.Wants(i).Devices()) > slow:
		return -1
	default:
		return x.in.Pool(began)
	}
	home, fewest, known := -1, beginners, false
	for _, p := range x.found.Can[i].May {
		if x.Speedups(i)[p].Shown() {
			known = true
		} else if n := x.shown.Jobs(x.Kinds[i], x.found.Can[i].GPUs.Devices(), x.in.Pools[p]); n < fewest {
			home, fewest = p, n
		}
	}
	if known && r.Key%oneIn != 0 {
		return -1
	}
	return home
}

// manner returns how a job saves, as is known from its declaration, the site, and the conduct of jobs of its type.
func manner(x *Speeds, i int) cluster.Manner {
	j := &x.in.Snapshot.Cases[i].Job
	var habit *cluster.Habit
	if t, ok := cluster.TypeOf(j); ok {
		if k, ok := slices.BinarySearchFunc(x.in.Snapshot.Habits, t, func(h cluster.Habit, t cluster.JobType) int { return h.Type.Compare(t) }); ok {
			habit = &x.in.Snapshot.Habits[k]
		}
	}
	s := stop.Resolve(x.in.Records[i].Conduct, habit, j.Declares, stop.Site(x.in.Settings.Saves, j))
	return s.Manner
}

// unseen returns the attempts of jobs that no case tells more about.
func unseen(x *Speeds) []cluster.Attempt {
	told := make(map[cluster.JobID]bool, len(x.in.Snapshot.Cases))
	for i := range x.in.Snapshot.Cases {
		if c := &x.in.Snapshot.Cases[i]; !c.Gone || c.Record.Ran > 0 {
			told[c.Record.ID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(x.in.Snapshot.Attempts), func(a cluster.Attempt) bool { return told[a.ID] })
}

// past takes attempts of the history. It is not known whether later attempts of a job went on from saves: such a job takes longer than its
// last one.
func (x *Speeds) past(list []cluster.Attempt) {
	attempts := map[cluster.JobID]int{}
	for i := range list {
		attempts[list[i].ID]++
	}
	for i := range list {
		a := &list[i]
		if a.Outcome == "REQUEUED" || a.End <= a.Start || len(a.GPUs) != 1 {
			continue
		}
		kind := profile.KindOf(x.in.Settings.Kinds, a.Tenant, a.User, a.Name, a.Kind, a.Work)
		ran := []cluster.ModelTime{{Model: a.GPUs[0].Model, Ran: max(a.End.Sub(a.Start)-a.Suspend, 0)}}
		x.shown.Ended(cluster.Completion{Kind: kind, Gang: a.GPUs[0].Size.Devices}, ran, evidence.End{Done: a.Outcome == completed && attempts[a.ID] == 1, Chosen: true}, a.End)
	}
}

// measure takes the counters of running jobs, once from each attempt.
func (x *Speeds) measure(use []cluster.GPUUse) {
	if len(use) == 0 {
		return
	}
	for i := range x.in.Snapshot.Cases {
		j, r := &x.in.Snapshot.Cases[i].Job, &x.in.Records[i]
		if !x.in.Cases[i].Runs || x.Kinds[i] == "" || r.Measured == j.Start || len(j.Holds) == 0 {
			continue
		}
		of := cluster.GPUUse{Job: j.ID, Model: j.Holds[0].Model}
		k, found := slices.BinarySearchFunc(use, &of, func(u cluster.GPUUse, of *cluster.GPUUse) int { return u.Compare(of) })
		if !found || slices.ContainsFunc(j.Holds, func(h cluster.Holding) bool { return h.Model != of.Model }) {
			continue
		}
		if u := &use[k]; u.Start == j.Start && evidence.Telling(u) {
			if x.news.Measured == nil {
				x.news.Measured = map[int]cluster.Instant{}
			}
			x.news.Measured[i] = j.Start
			x.shown.Used(cluster.Usage{Kind: x.Kinds[i], Model: of.Model, Gang: j.GPUsHeld()}, u)
		}
	}
}

// Evidence returns the evidence to remember.
func (x *Speeds) Evidence() ([]cluster.Completion, []cluster.Usage) {
	return x.shown.Completions, x.shown.Usages
}
