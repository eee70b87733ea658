package stop

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// tolerance is the apparent repeated work of a job that saved when it was stopped: it reports
// only now and then, so its last report is older than its last step.
const tolerance = 3 * cluster.Minute

// Resolve gives how a job saves, by the best available evidence: its own conduct, that of its
// type, its declaration, and the site's rule for its QOS or partition. own and habit may be nil.
//
//   - A restart from the beginning overrides any declaration, until a job is seen to resume: never.
//   - A resumption proves that the job saves. The time of its saves is the explicit declaration, else what its
//     reports show, else what was only implied, if the repeated work does not contradict that.
//   - Reported saves override what was only implied. Whether the job resumes from them is unknown then.
func Resolve(own *cluster.Conduct, habit *cluster.Habit, declared, site cluster.Saving) cluster.Saving {
	said := declared
	if said.Manner == cluster.UnknownManner && site.Manner != cluster.UnknownManner {
		said = site
		said.Takes, said.Signal, said.SignalTo = declared.Takes, declared.Signal, declared.SignalTo
	}
	out := said
	out.Source = cluster.FromConduct
	last, evidence := cluster.UnknownResumption, ""
	if own != nil && own.Last != cluster.UnknownResumption {
		last, out.At, evidence = own.Last, own.LastAt, ownConduct[own.Last]
	} else if habit != nil && habit.Last != cluster.UnknownResumption {
		last, out.At, evidence = habit.Last, habit.LastAt, typeConduct[habit.Last]
	}
	every, reported := interval(own, habit)
	explicit := !said.Implied && (said.Manner == cluster.SavesOnTerm || said.Manner == cluster.SavesOnNotice)
	out.Resumes, out.Implied = last, false
	switch {
	case last == cluster.Restarted:
		out.Manner, out.Every, out.Evidence = cluster.SavesNever, 0, evidence
	case last == cluster.Resumed:
		out.Evidence = evidence
		if !explicit {
			out.Manner, out.Every = resumed(said, own, habit, every)
		}
	case every > 0 && !explicit:
		out.Manner, out.Every, out.At, out.Evidence = cluster.SavesEvery, every, reported, "it reports its saves"
		if own == nil || own.Reports == 0 {
			out.Evidence = "jobs of its type report their saves"
		}
	default:
		return said
	}
	return out
}

// Untold tells whether there is no evidence that Resolve would weigh against a declaration. own and habit may be nil.
func Untold(own *cluster.Conduct, habit *cluster.Habit) bool {
	return (own == nil || own.Last == cluster.UnknownResumption && own.Reports == 0) && (habit == nil || habit.Last == cluster.UnknownResumption && habit.Reports == 0)
}

// The evidence of conduct, as the continuation of "known since".
var (
	ownConduct = map[cluster.Resumption]string{
		cluster.Resumed:   "it went on from a save after its last requeue",
		cluster.Restarted: "it restarted from the beginning after its last requeue",
	}
	typeConduct = map[cluster.Resumption]string{
		cluster.Resumed:   "jobs of its type went on from a save after a requeue",
		cluster.Restarted: "jobs of its type restarted from the beginning after a requeue",
	}
)

// interval gives the time between two reported saves, the job's own before its type's, and the
// time of the newest report; 0 = none.
func interval(own *cluster.Conduct, habit *cluster.Habit) (cluster.Span, cluster.Instant) {
	if own != nil && own.Reports > 0 {
		return own.Every, own.Saved
	}
	if habit != nil && habit.Reports > 0 {
		return habit.Every, habit.SavedAt
	}
	return 0, 0
}

// resumed gives when a job saves that is known to resume and declared nothing explicitly.
func resumed(said cluster.Saving, own *cluster.Conduct, habit *cluster.Habit, every cluster.Span) (cluster.Manner, cluster.Span) {
	redone := cluster.Span(0)
	if habit != nil {
		redone = habit.Redone
	}
	switch {
	case every > 0:
		return cluster.SavesEvery, max(every, redone)
	case said.Manner == cluster.SavesEvery:
		return cluster.SavesEvery, max(said.Every, redone)
	case redone > tolerance: // a stop in the middle of an interval destroys half of it
		return cluster.SavesEvery, 2 * redone
	case said.Manner == cluster.SavesOnTerm || habit != nil && habit.OnTerm > 0,
		(habit == nil || habit.OnNotice == 0) && own != nil && own.Ours && !own.Noticed:
		return cluster.SavesOnTerm, 0
	case said.Manner == cluster.SavesOnNotice || habit != nil && habit.OnNotice > 0 || own != nil && own.Ours:
		return cluster.SavesOnNotice, 0
	}
	return cluster.UnknownManner, 0 // it goes on from saves, which nobody has seen it make
}

// Site gives the site's rule for a job's QOS or partition: the first that matches.
func Site(rules []cluster.SavingRule, j *cluster.Job) cluster.Saving {
	for i := range rules {
		r := &rules[i]
		if (r.QOS == "" || r.QOS == j.QOS) && (r.Partition == "" || slices.Contains(j.Partitions, r.Partition)) {
			return cluster.Saving{Manner: r.Manner, Every: r.Every, Source: r.Source, Evidence: r.Evidence, Implied: r.Source == cluster.FromDeclaration}
		}
	}
	return cluster.Saving{}
}

// Report is a progress report, compared with those of the job's earlier attempts.
type Report struct {
	Steps float64
	In    cluster.Span // the attempt's run time by then
	Model string
}

// pace is the maximum distance between two reports, and from the first step to the first report.
const pace = 90 * cluster.Second

// Resumption judges the first report of an attempt after a requeue: whether the attempt went on from a save, and how much
// work it does again then. Before is what is known of the attempt before it.
//
// From the beginning the attempt can have done no more than at the earlier speed, doubled, in the time since the
// start, less the time that the earlier attempt took until its first report; on another GPU model eight times as
// much. An attempt that has done more did resume. One that has done less did not, if that bound is below half of the
// earlier work; else nothing can be told.
func (now Report) Resumption(before *cluster.Conduct) (r cluster.Resumption, redone cluster.Span) {
	if before == nil || before.At == 0 || before.Steps <= 0 || before.In <= 0 {
		return cluster.UnknownResumption, 0
	}
	rate := before.Steps / float64(before.In) // too high where that attempt resumed: then less can be told
	if before.In > before.FirstIn && before.Steps > before.First {
		rate = (before.Steps - before.First) / float64(before.In-before.FirstIn)
	}
	faster := 2.0
	if now.Model == "" || now.Model != before.Model {
		faster = 8
	}
	worked := min(now.In, max(now.In-before.FirstIn, 0)+pace)
	bound := faster * rate * float64(worked)
	switch {
	case now.Steps > bound:
		return cluster.Resumed, cluster.Span(max(before.Steps-now.Steps, 0) / rate)
	case bound <= before.Steps/2:
		return cluster.Restarted, 0
	}
	return cluster.UnknownResumption, 0
}

// To conclude from the run times of a type there must be enough of them, and alike: uniform is by how much they may
// differ, in percent of the shortest. One run time may be another's by chance.
const (
	enough  = 2
	uniform = 25
)

// Completion judges a job that was requeued and has completed: its last attempt ran for last, those before for earlier.
//
// A job that starts from the beginning needs its whole run time in its last attempt. So one of whose earlier attempts was
// clearly longer than the last has resumed. Else its type's uninterrupted run times tell, where they are alike:
// an attempt as long as these, and clearly longer than what a resumption would have left to do, did not resume.
func Completion(own *cluster.Conduct, model string, habit *cluster.Habit, last, earlier, begin cluster.Span) (r cluster.Resumption, redone cluster.Span) {
	known := habit != nil && habit.Completed >= enough && habit.Longest*100 <= habit.Shortest*(100+uniform)
	if own != nil && own.Attempts > 0 && own.Model == model && own.Longest > last+last/10+begin {
		redone = own.Longest / 2 // it saved at least once in that attempt
		if known {
			redone = max(earlier+last-habit.Longest-begin, 0)
		}
		return cluster.Resumed, redone
	}
	if !known || last <= 0 || earlier <= 0 {
		return cluster.UnknownResumption, 0
	}
	// A job that was shorter than its type proves nothing: it may have had less to do. To take that for a resumption
	// would let a job be stopped again and again that loses everything each time.
	left := max(habit.Longest-earlier, 0)
	if last >= habit.Shortest-habit.Shortest/10 && last <= habit.Longest+habit.Longest/10 && last > left+left/10+begin {
		return cluster.Restarted, 0
	}
	return cluster.UnknownResumption, 0
}

// Telling tells whether a restart from the beginning says anything about a job that is believed to save in that manner:
// whether there was a save from which it could have gone on. ran is the run time of all its earlier attempts; reports
// tells whether jobs of its type report their saves.
func Telling(s *cluster.Saving, own *cluster.Conduct, reports bool, ran, begin cluster.Span) bool {
	if own != nil && own.Saved > 0 {
		return true
	}
	switch s.Manner {
	case cluster.SavesOnTerm:
		return own != nil && own.Ours // others' requeues include failures of nodes
	case cluster.SavesOnNotice:
		return own != nil && own.Ours && own.Noticed
	case cluster.SavesEvery:
		return !reports && ran > s.Every+s.Every/10+begin
	}
	return true
}
