// Package explain words reasons. Reasons are data, a code and numbers; only this package makes
// sentences of them.
package explain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Words is the context of a sentence besides the reason. The zero value uses UTC and names other
// jobs by fairlease's key.
type Words struct {
	// Now is the reference of relative times; 0 = absolute times only.
	Now cluster.Instant
	// Zone is the time zone; nil = UTC.
	Zone *time.Location
	// Job gives a job's id for its key; "" if unknown.
	Job func(cluster.JobKey) string
}

// Reason says why a job runs or waits, as the continuation of "it …".
func (w Words) Reason(r cluster.Reason) string {
	if say, ok := sentences[r.Code]; ok {
		return say(w, &r)
	}
	return or(join(": ", string(r.Code), r.Note), "has no reason yet: the newest round did not decide on it")
}

// sentences has one for every code.
var sentences = map[cluster.Code]func(Words, *cluster.Reason) string{
	// jobs that hold a lease
	cluster.ReasonGranted: func(w Words, r *cluster.Reason) string {
		return "was granted " + gpus(r.Need, r.Pool) + w.till(r) + ": it was its turn" + w.standing(r)
	},
	cluster.ReasonRenewed: func(w Words, r *cluster.Reason) string {
		return "had its lease renewed" + w.till(r) + ": it is still its turn, or no other job could use the GPUs" + w.standing(r)
	},
	cluster.ReasonHolding: func(w Words, r *cluster.Reason) string {
		return "holds its lease" + w.till(r) + w.standing(r)
	},
	cluster.ReasonAdopted: func(w Words, r *cluster.Reason) string {
		return "ran before fairlease managed it, and was given a lease" + w.till(r)
	},
	cluster.ReasonStarting: func(w Words, r *cluster.Reason) string {
		return "was granted a lease" + w.till(r) + " and Slurm is starting it" + slurmSays(r.Note)
	},
	cluster.ReasonFollows: func(w Words, r *cluster.Reason) string {
		return "was granted behind " + w.Name(r.For) + " on " + r.Note + ": it starts when that ends"
	},
	cluster.ReasonNotice: func(w Words, r *cluster.Reason) string {
		if r.To != "" {
			return "has notice: it moves to " + target(r) + " when its lease ends," + w.at(r) + purpose(r) + "; it should save before; it is then requeued, and its GPUs are kept for it there" + w.leaves(r)
		}
		return "has notice: its lease ends" + w.at(r) + " and is not renewed; it is then requeued, and its GPUs go to " + w.beneficiary(r)
	},
	cluster.ReasonEnding: func(w Words, r *cluster.Reason) string {
		if r.To != "" {
			return "was requeued to move to " + target(r) + purpose(r) + "; its GPUs are kept for it there" + w.leaves(r)
		}
		return "was requeued, since its lease is over; its GPUs go to " + w.beneficiary(r) + " as soon as they are free"
	},
	cluster.ReasonRecalled: func(w Words, r *cluster.Reason) string {
		if r.Right == cluster.Opportunistic {
			return "was requeued: its GPUs were lent, and their owner needs them; they go to " + w.beneficiary(r)
		}
		return "was requeued in mid-term, for a job that never had a lease: its GPUs go to " + w.beneficiary(r)
	},
	cluster.ReasonExempt: func(_ Words, r *cluster.Reason) string {
		return "is exempt by an administrator's override: it is never gated or requeued" + because(r.Note)
	},
	cluster.ReasonKept: func(w Words, r *cluster.Reason) string {
		return "is never requeued: its lease is always renewed" + w.next(r) + because(r.Note)
	},
	cluster.ReasonTurn: func(w Words, r *cluster.Reason) string {
		if r.For == 0 {
			return "has its turn on its GPU"
		}
		return "has its turn on the GPU that it shares with " + w.Name(r.For) + w.third(r, " and %s") + ofTime(r) + ", and its lease" + w.till(r) + w.standing(r)
	},
	cluster.ReasonBeside: func(w Words, r *cluster.Reason) string {
		return "runs at the same time as " + w.Name(r.For) + " on their GPU, since neither is slower by that than in turns; its lease" + w.till(r) + w.standing(r)
	},
	cluster.ReasonPaused: func(w Words, r *cluster.Reason) string {
		return "is suspended while " + w.Name(r.For) + " has its turn on their GPU" + w.third(r, ", which %s shares, too") + ofTime(r) + "; it holds its lease" + w.till(r) + w.standing(r)
	},

	// jobs that wait
	cluster.ReasonBehind: func(w Words, r *cluster.Reason) string {
		return join("; ", "waits for its turn: it needs "+gpus(r.Need, r.Pool)+", and free ones go to other jobs first",
			w.comparison(r), w.chance(r))
	},
	cluster.ReasonCells: func(w Words, r *cluster.Reason) string {
		cut := ""
		if r.Cut {
			cut = "its gang fits into cells in too many ways to try all, so there may be one: request fewer nodes or constraints"
		}
		return join("; ", w.lacks(r, "is free"), cut, w.holder(r), w.after(r), w.comparison(r))
	},
	cluster.ReasonBudget: func(w Words, r *cluster.Reason) string {
		how := "is free"
		if r.Note != "" {
			how = "is left, since hardware is bad" + because(r.Note)
		}
		lent := "it borrows no GPUs of other tenants any more"
		if r.Fits > 0 {
			lent = "it borrows other tenants' GPUs only with at most " + r.Fits.String() + " left of its time limit: later, a recall is likely"
		}
		return join("; ", w.lacksOwn(r, how), "stops have cost it "+r.Spent.String()+" and its stop budget is spent (stop.allowance, stop.overhead), so "+lent, w.holder(r))
	},
	cluster.ReasonLost: func(w Words, r *cluster.Reason) string {
		return join("; ", w.lacks(r, "is left, since hardware is bad"+because(r.Note)), "it can start when that is repaired, or when its tenant's jobs free a cell that fits", w.holder(r))
	},
	cluster.ReasonUnsafe: func(_ Words, r *cluster.Reason) string {
		return "waits: the promises to virtual clusters do not add up" + because(r.Note) + "; nothing is granted until they do, and running jobs keep their leases; an administrator should run fairlease cells check"
	},
	cluster.ReasonShape: func(w Words, r *cluster.Reason) string {
		return join("; ", fmt.Sprintf("waits for GPUs that fit together: it needs %s, and %s are free, but not on nodes where it fits with its CPUs, memory and limits",
			gpus(r.Need, r.Pool), r.Free), w.chance(r))
	},
	cluster.ReasonTogether: func(w Words, r *cluster.Reason) string {
		return "waits for nodes together: it needs " + gpus(r.Need, r.Pool) + ", and could begin on other nodes, but jobs of its type are slower there: they are more than it needs, or under more switches; " +
			"it takes any nodes" + w.at(r) + " (compact.max_wait)"
	},
	cluster.ReasonClaim: func(w Words, r *cluster.Reason) string {
		return "is next: " + gpus(r.Need, r.Pool) + are(r.Need) + "kept for it, and it starts when the leases there end," + w.at(r)
	},
	cluster.ReasonClaimed: func(w Words, r *cluster.Reason) string {
		return join("; ", fmt.Sprintf("waits: the %s free GPUs are kept for %s", r.Free, w.beneficiary(r)), w.chance(r))
	},
	cluster.ReasonBurst: func(w Words, r *cluster.Reason) string {
		return join("; ", "waits: "+queuer(r)+" holds its maximum while others wait (burst.max)", w.comparison(r), w.chance(r))
	},
	cluster.ReasonLane: func(w Words, r *cluster.Reason) string {
		return join("; ", "waits: once it runs, it cannot be stopped within its stop budget, and such jobs already hold what its tenant is due; the other GPUs are for young jobs and other tenants",
			w.chance(r))
	},
	cluster.ReasonBound: func(w Words, r *cluster.Reason) string {
		limit := ""
		if b := r.Bound; b != nil {
			until := ""
			if b.Until > 0 {
				until = ", at the latest until " + w.Ahead(b.Until) + " (bind.quiet)"
			}
			limit = fmt.Sprintf("%s are kept for %s and other tenants that want them or wanted them lately%s, and such jobs hold %s of at most %s of these (bind.max)",
				gpus(cluster.CountOf(int((b.Kept+cluster.WholeGPU-1)/cluster.WholeGPU)), r.Pool), b.Tenant, until, parts(b.Held), parts(b.Max))
		}
		return join("; ", "waits: once it runs, it cannot be stopped within its stop budget, and bound GPUs beyond their tenants' due are at their limit",
			limit, "with a short time limit it may start (bind.horizon)")
	},
	cluster.ReasonGather: func(w Words, r *cluster.Reason) string {
		return "is next: " + gpus(r.Need, r.Pool) + are(r.Need) + "gathered for it, as jobs that cannot be stopped end there; the end of the last one is not known"
	},
	cluster.ReasonLimit: func(w Words, r *cluster.Reason) string {
		return join("; ", "waits: it is its turn, but this round has ended the maximum number of leases (reclaim.max)", w.comparison(r), w.chance(r))
	},
	cluster.ReasonStops: func(w Words, r *cluster.Reason) string {
		more := ""
		if r.Until > 0 {
			more = "more may be" + w.at(r)
		}
		return join("; ", "waits: it is its turn, but as many GPUs were taken from running jobs within the hour as may be (stop.per_hour)", more, w.comparison(r))
	},
	cluster.ReasonThreshold: func(w Words, r *cluster.Reason) string {
		return join("; ", "waits: "+queuer(r)+" is not far enough behind to take GPUs from running jobs (reclaim.threshold)", w.comparison(r), w.chance(r))
	},
	cluster.ReasonInactive: func(w Words, r *cluster.Reason) string {
		if r.Note == "begin" {
			return "waits for its own begin time" + w.at(r) + "; until then it is due nothing"
		}
		return "could not start even on an empty cluster: " + or(r.Note, "it is held in Slurm") + "; until it could, it is due nothing"
	},
	cluster.ReasonFailed: func(w Words, r *cluster.Reason) string {
		if r.Note == cluster.RequeuedAtStart {
			return "was requeued right after its start, not by fairlease; it is tried again" + w.at(r) + "; the wait doubles with each such requeue, up to an hour, until a start lasts for a minute"
		}
		return "was granted GPUs, but Slurm did not start it" + slurmSays(r.Note) + "; tried again" + w.at(r)
	},
	cluster.ReasonRefused: func(w Words, r *cluster.Reason) string {
		probe, when := "", "when GPUs for it are idle"
		if r.For != 0 {
			probe = w.Name(r.For) + " is the probe"
		}
		if r.Until > 0 {
			when = strings.TrimPrefix(w.at(r), " ") + ", or when the cause may be gone"
		}
		if r.Note == cluster.RequeuedAtStart {
			return join("; ", "waits: jobs of its kind were requeued right after their start, not by fairlease", probe, "one is tried again "+when, "until one stays for a minute, the others are due nothing")
		}
		return join("; ", "waits: Slurm does not start jobs of its kind"+slurmSays(r.Note), remedy(r.Note), probe, "one is tried again "+when, "until one starts, the others are due nothing")
	},
	cluster.ReasonUnstarted: func(_ Words, r *cluster.Reason) string {
		return "waits: jobs of its user or tenant have had grants for longer than a start takes, and keep as many GPUs idle as they may; it is due nothing until they start or lose their grants"
	},
	cluster.ReasonIdleOnly: func(_ Words, r *cluster.Reason) string {
		return "waits for " + gpus(r.Need, r.Pool) + ": it asked for idle ones only (gpus=idle)"
	},
	cluster.ReasonSpent: func(w Words, r *cluster.Reason) string {
		since := ""
		if r.Budget != nil {
			since = " since " + w.Time(r.Budget.Since)
		}
		return join("; ", "waits for idle GPUs: it needs "+gpus(r.Need, r.Pool)+", and its tenant's budget has been used up"+since,
			"its tenant gets only GPUs that no other tenant wants until the next period begins,"+w.at(r), inside(r))
	},
	cluster.ReasonFrozen: func(_ Words, r *cluster.Reason) string {
		return "is frozen by an administrator's override" + because(r.Note)
	},
	cluster.ReasonTooBig: func(_ Words, r *cluster.Reason) string {
		if r.Note != "" {
			return "cannot start: its list of required nodes (--nodelist) has " + r.Note + ", and Slurm has no node with GPUs of that name; its owner can change the list (scontrol update job)"
		}
		return "fits nowhere: it needs " + gpus(r.Need, r.Pool) + ", and no healthy nodes of its partitions could hold it even if they were empty"
	},
	cluster.ReasonRule: func(_ Words, r *cluster.Reason) string {
		return "waits: Slurm's rules do not let it start" + because(r.Note) + "; until they do, it is due nothing"
	},
	cluster.ReasonReserved: func(_ Words, r *cluster.Reason) string {
		return "waits: its time limit overlaps a reservation on all nodes where it could run" + because(r.Note) +
			"; an administrator can change it (scontrol update reservation), and its owner can shorten the time limit (scontrol update job)"
	},
	cluster.ReasonUntouched: func(_ Words, r *cluster.Reason) string {
		return "is not managed by fairlease" + because(r.Note) + "; Slurm alone decides"
	},
	cluster.ReasonCompleting: func(Words, *cluster.Reason) string {
		return "is still cleaning up its last attempt; its next lease can follow then"
	},
	cluster.ReasonDone: func(_ Words, r *cluster.Reason) string {
		return "is over" + because(r.Note)
	},

	// actions
	cluster.ReasonGate: func(Words, *cluster.Reason) string {
		return "waits for a lease: its gate is kept shut"
	},
	cluster.ReasonNoStart: func(_ Words, r *cluster.Reason) string {
		return "was granted GPUs, but did not start in time" + slurmSays(r.Note)
	},
	cluster.ReasonTidy: func(Words, *cluster.Reason) string {
		return "is no longer needed"
	},
	cluster.ReasonHandOver: func(Words, *cluster.Reason) string {
		return "keeps the nodes for the next lease until the last job has left them"
	},
	cluster.ReasonFence: func(Words, *cluster.Reason) string {
		return "keeps jobs of other partitions off the cells of a virtual cluster"
	},
}

// lacks names the cell that a job waits for.
func (w Words) lacks(r *cluster.Reason, how string) string {
	need := "it needs " + gpus(r.Need, r.Pool) + ", and "
	if r.Cell == "" {
		return "waits: " + need + "no cell of its tenant that fits " + how + ", and no GPUs can be lent to it"
	}
	cell := "no cell of type " + r.Cell
	if r.Chain != "" && r.Chain != r.Cell {
		cell += " (chain " + r.Chain + ")"
	}
	return "waits for cells of its tenant: " + need + cell + " " + how
}

// lacksOwn names the cell that a job waits for if it gets no lent GPUs.
func (w Words) lacksOwn(r *cluster.Reason, how string) string {
	if r.Cell == "" {
		return "waits: it needs " + gpus(r.Need, r.Pool) + ", and no cell of its tenant that fits " + how
	}
	return w.lacks(r, how)
}

// holder names the holder of the cell that a job waits for, and its right.
func (w Words) holder(r *cluster.Reason) string {
	if r.For == 0 {
		return ""
	}
	how := map[cluster.LeaseClass]string{
		cluster.Guaranteed: "as its tenant's own", cluster.Shared: "by its tenant's share", cluster.Opportunistic: "lent to it",
	}[r.Right]
	return w.beneficiary(r) + " has one, " + or(how, "without a lease that could be ended") + w.till(r)
}

// after says what happens next.
func (w Words) after(r *cluster.Reason) string {
	switch {
	case r.For == 0:
		return w.chance(r)
	case r.Right == cluster.Opportunistic:
		return "that lease is recalled, and this job starts when the GPUs are free"
	case r.Right == "":
		return "when that job ends, the cell is free"
	}
	return "when that lease ends, it is renewed, or the cell goes to the next job in turn"
}

// Right explains the right of a lease of that class.
func Right(class cluster.LeaseClass) string {
	switch class {
	case cluster.Guaranteed:
		return "guaranteed: it holds cells of its own tenant, which no other tenant can take"
	case cluster.Shared:
		return "shared: it holds a part of its tenant's share; at the end of the term the GPUs go to the next job in turn"
	case cluster.Opportunistic:
		return "opportunistic: its GPUs are lent, and recalled at once when their owner needs them"
	}
	return string(class)
}

// gpus gives "4 v100 GPUs".
func gpus(n cluster.GPUCount, model string) string {
	what := "GPUs"
	if n == cluster.CountOf(1) {
		what = "GPU"
	}
	if n == 0 {
		return join(" ", model, what)
	}
	return join(" ", n.String(), model, what)
}

// parts words GPUs that need not be whole.
func parts(gpus cluster.MicroGPU) string {
	return strconv.FormatFloat(float64(gpus*100/cluster.WholeGPU)/100, 'f', -1, 64)
}

func are(n cluster.GPUCount) string {
	if n == cluster.CountOf(1) {
		return " is "
	}
	return " are "
}

// standing gives the state of the tenant of a running job.
func (w Words) standing(r *cluster.Reason) string {
	if r.Behind == 0 {
		return ""
	}
	return "; " + queuer(r) + " is " + Behind(r.Behind)
}

// third names the third job on a GPU; "" = there are two.
func (w Words) third(r *cluster.Reason, how string) string {
	if r.OtherJob == 0 || r.Queue == cluster.JobQueues {
		return ""
	}
	return fmt.Sprintf(how, w.Name(r.OtherJob))
}

// ofTime says which part of the time of its GPU a job has; "" = as much as the others there.
func ofTime(r *cluster.Reason) string {
	if r.Time == 0 {
		return ""
	}
	return fmt.Sprintf(", for %.0f %% of the time by weight", 100*r.Time.Float())
}

// comparison says which tenant goes first and why.
func (w Words) comparison(r *cluster.Reason) string {
	queue := ""
	if r.Rank > 0 {
		queue = fmt.Sprintf("it is number %d in its tenant's queue", r.Rank)
	}
	queue = join("; ", inside(r), queue)
	if r.Other == "" {
		return queue
	}
	other, own := "tenant "+r.Other, "this job's tenant"
	if r.Queue == cluster.JobQueues {
		other, own = w.Name(r.OtherJob)+" of "+other, "this job"
	}
	return join("; ", fmt.Sprintf("%s went first: it is %s, %s is %s", other, Behind(r.OtherBehind), own, Behind(r.Behind)), queue)
}

// inside says which jobs of its own tenant go before a job.
func inside(r *cluster.Reason) string {
	level, user := "", ""
	if r.Inside == nil {
		return ""
	}
	if r.Inside.Site {
		return "its virtual cluster's own scheduler orders the jobs of its tenant"
	}
	if r.Inside.Above > r.Inside.Level {
		level = fmt.Sprintf("jobs of level %d of its virtual cluster go before it: its level is %d", r.Inside.Above, r.Inside.Level)
	}
	if r.Inside.User != "" {
		user = "its tenant's user " + r.Inside.User + " is served before its own: that user is further behind an equal part of what the tenant received"
	}
	return join("; ", level, user)
}

// queuer names the claimant that queues for a job.
func queuer(r *cluster.Reason) string {
	if r.Queue == cluster.JobQueues {
		return "it"
	}
	return "its tenant"
}

// Debt says what a tenant is owed or owes in a pool, its current repayments, and when it will be
// settled at this rate.
func Debt(st *cluster.TenantStatus) string {
	what, how := "%s is owed %.2f GPU-hours of %s that others had of its due", "it gets %.2f GPUs in repayment"
	if st.Owed < 0 {
		what, how = "%s owes %.2f GPU-hours of %s that it had of others' dues", "it gives %.2f GPUs in repayment"
	}
	debt := fmt.Sprintf(what, st.Tenant, max(st.Owed, -st.Owed).Hours(), st.Pool)
	even, ok := st.EvenIn()
	if !ok {
		return debt + "; nothing is repaid now"
	}
	return debt + "; " + fmt.Sprintf(how, float64(max(st.Repays, -st.Repays))/float64(cluster.WholeGPU)) + " and is even in " + even.String() + " at this pace"
}

// Behind words a span as behind or ahead of an entitlement. A claimant that is due nothing is as
// far ahead as possible.
func Behind(s cluster.Span) string {
	switch {
	case DueNothing(s):
		return "due nothing there"
	case s >= cluster.Second:
		return s.String() + " behind its due"
	case s <= -cluster.Second:
		return (-s).String() + " ahead of its due"
	}
	return "even"
}

// DueNothing tells whether a span behind stands for a claimant that is due nothing: it is as far ahead as a span or a time.Duration can be.
func DueNothing(s cluster.Span) bool { return s <= cluster.SpanOf(math.MinInt64) }

// chance says when the wait may end.
func (w Words) chance(r *cluster.Reason) string {
	if r.Until == 0 {
		return ""
	}
	return "the next lease that could serve it ends" + w.at(r)
}

func (w Words) till(r *cluster.Reason) string {
	if r.Until == 0 {
		return ""
	}
	return " until " + w.Ahead(r.Until)
}

func (w Words) at(r *cluster.Reason) string { return w.At(r.Until) }

// At gives a moment that is still to come, as the end of a sentence: " at 15:04:05 (in 00:03:20)".
func (w Words) At(t cluster.Instant) string {
	if w.past(t) {
		return " " + w.Ahead(t)
	}
	return " at " + w.Ahead(t)
}

// past tells whether a moment is known and before now.
func (w Words) past(t cluster.Instant) bool {
	return t > 0 && w.Now > 0 && w.Now.Sub(t) >= cluster.Second
}

// Ahead gives a moment that is still to come. One that has passed since the round is awaited now, and no longer at that time.
func (w Words) Ahead(t cluster.Instant) string {
	switch {
	case t <= 0:
		return "a time not known yet"
	case w.past(t):
		at, _, _ := strings.Cut(w.Time(t), " (")
		return "now (due since " + at + ")"
	}
	return w.Time(t)
}

func (w Words) next(r *cluster.Reason) string {
	if r.Until == 0 {
		return ""
	}
	return ", next" + w.at(r)
}

// leaves names the beneficiary of the GPUs that a moving job leaves.
func (w Words) leaves(r *cluster.Reason) string {
	if r.For == 0 {
		return ""
	}
	return "; the GPUs that it leaves go to " + w.Name(r.For)
}

// beneficiary names the job that gets the GPUs.
func (w Words) beneficiary(r *cluster.Reason) string {
	if r.For == 0 {
		return "jobs that are further behind"
	}
	return w.Name(r.For)
}

// Hidden stands for every job that the reader of a reason may not know. No job has this key.
const Hidden cluster.JobKey = -1

// Name gives "job 123_4", or fairlease's key if the id is unknown; "another job" for Hidden.
func (w Words) Name(key cluster.JobKey) string {
	if key == Hidden {
		return "another job"
	}
	if w.Job != nil {
		if name := w.Job(key); name != "" {
			return "job " + name
		}
	}
	return fmt.Sprintf("job #%d", key)
}

// Unknown stands for a moment that is not known.
const Unknown = "a time not known"

// Time gives a moment, and its distance: "15:04:05 (in 00:03:20)"; Unknown if it is none.
func (w Words) Time(t cluster.Instant) string {
	if t <= 0 {
		return Unknown
	}
	zone := w.Zone
	if zone == nil {
		zone = time.UTC
	}
	at := t.Time().In(zone)
	format := "2006-01-02 15:04:05"
	if w.Now != 0 && at.Format(time.DateOnly) == w.Now.Time().In(zone).Format(time.DateOnly) {
		format = time.TimeOnly
	}
	if w.Now == 0 {
		return at.Format(format)
	}
	return fmt.Sprintf("%s (%s)", at.Format(format), w.Off(t))
}

// Off gives the distance of a moment: "in 00:03:20", "00:00:10 ago"; Unknown if one of the two is none.
func (w Words) Off(t cluster.Instant) string {
	if t <= 0 || w.Now <= 0 {
		return Unknown
	}
	if d := t.Sub(w.Now); d <= -cluster.Second {
		return (-d).String() + " ago"
	} else if d >= cluster.Second {
		return "in " + d.String()
	}
	return "now"
}

func slurmSays(note string) string {
	if note == "" {
		return ""
	}
	return " (Slurm says: " + note + ")"
}

// remedies say who can change what keeps jobs from starting, by the beginning of Slurm's reason; the first that fits counts. The view
// waiting_jobs has the same.
var remedies = []struct{ reason, words string }{
	{"Licenses", "an administrator can change their number (Licenses in slurm.conf)"},
	{"PartitionNodeLimit", "an administrator can change it (scontrol update partition), and its owner can ask for fewer nodes (scontrol update job)"},
	{"PartitionTimeLimit", "an administrator can change it (scontrol update partition), and its owner can shorten the time limit (scontrol update job)"},
	{"AccountNotAllowed", "an administrator can change it (scontrol update partition)"},
	{"QOS", "an administrator can change it (sacctmgr)"},
	{"Max", "an administrator can change it (sacctmgr)"}, // MaxGRESPerUser and other limits of a QOS
	{"Assoc", "an administrator can change it (sacctmgr)"},
	{"AccountingPolicy", "an administrator can change it (sacctmgr)"},
	{"", "its owner can change its request (scontrol update job)"},
}

// remedy says who can change the cause that Slurm names; "" = Slurm names none.
func remedy(reason string) string {
	if reason == "" {
		return ""
	}
	at := slices.IndexFunc(remedies, func(x struct{ reason, words string }) bool { return strings.HasPrefix(reason, x.reason) })
	return remedies[at].words
}

func because(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// join joins the non-empty parts.
func join(by string, parts ...string) string {
	var full []string
	for _, p := range parts {
		if p != "" {
			full = append(full, p)
		}
	}
	return strings.Join(full, by)
}
