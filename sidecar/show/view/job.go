package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Explanation is the journal's data of a job, with Slurm's report and both in words.
type Explanation struct {
	store.Explanation
	Slurm *cluster.Job `json:"slurm,omitempty"`
	Words string       `json:"words"`
	// Stop says how a running job saves and when it may be stopped; StopWords words it.
	Stop      *cluster.StopReport `json:"stop,omitempty"`
	StopWords []string            `json:"stop_words,omitempty"`
	// Hardware lists bad hardware in the chain that the job waits for, if that is the reason.
	Hardware []string `json:"hardware,omitempty"`
	// Models is the entitlement of the job's party to every model, if a policy divides them.
	Models *Stake `json:"models,omitempty"`
}

// Explain words the newest round's data of a job, and adds it to the journal's.
func Explain(x store.Explanation) *Explanation {
	snap, plan := &x.Newest.Snapshot, &x.Newest.Plan
	out := &Explanation{Explanation: x, Models: StakeOf(x.Job.Key, snap, plan)}
	out.Job.TellRequeue()
	known := people(snap)
	if c, ok := known[x.Job.Key]; ok && !c.Gone && c.Job.Record > 0 { // else the journal's rows have everything that is kept
		out.Slurm = &c.Job
	}
	w := explain.Words{Job: known.name}
	if r, ok := engine.StopOf(snap, plan, x.Job.Key); ok {
		out.Stop, out.StopWords = &r, append(w.Saves(&r), w.Stops(&r)...)
	}
	if x.Status != nil {
		out.Words = w.Reason(x.Status.Reason)
		out.Hardware = badHardware(&x.Status.Reason, snap)
	}
	return out
}

// badHardware lists bad hardware in the chain where a job's tenant lost cells.
func badHardware(r *cluster.Reason, snap *cluster.Snapshot) []string {
	if r.Code != cluster.ReasonLost || snap.Cells == nil {
		return nil
	}
	s := newSurveyor(snap)
	nodes := map[string][]string{} // nodes by fault
	for i := range snap.Cells.Tops {
		t := &snap.Cells.Tops[i]
		if r.Chain != "" && cmp.Or(t.Chain, s.chainOf(t.Type)) != r.Chain {
			continue
		}
		for _, name := range t.Nodes {
			if why := s.wrong(name); why != "" {
				nodes[why] = append(nodes[why], name)
			}
		}
	}
	var out []string
	for _, why := range slices.Sorted(maps.Keys(nodes)) {
		slices.Sort(nodes[why])
		out = append(out, hostlist.Compress(nodes[why])+": "+why)
	}
	return out
}

// Write writes an explanation for people.
func (x *Explanation) Write(p *Page) {
	snap := &x.Newest.Snapshot
	w := p.words(people(snap).name)
	say := func(name, format string, args ...any) {
		p.Printf("%s %s\n", p.Paint(fmt.Sprintf("%-11s", name), "bold"), fmt.Sprintf(format, args...))
	}
	j := &x.Job
	say("Job", "%s %sof %s, account %s, tenant %s, partition %s%s", j.SlurmID, quoted(j.Name), j.User, j.Account,
		cmp.Or(j.Tenant, "none"), strings.Join(j.Partitions, ","), before(", QOS ", j.QOS))
	say("Asks for", "%s%s", gpuWords(j.GPUs, j.Model), limit(j.Limit))
	say("State", "%s", stateWords(w, j, x.Record))
	if x.Status != nil {
		p.clauses("Why", "it "+w.Reason(x.Status.Reason))
		p.listed("Hardware", x.Hardware)
	} else if x.Waiting != nil {
		p.clauses("Why", x.Waiting.Reason)
	} else {
		say("Why", "%s", noStatus(j, x.Leases))
	}
	if x.Forecast != nil {
		p.clauses("Forecast", p.Ahead(&x.Forecast.Forecast, j.SlurmID))
	} else if words := p.NoForecast(j.SlurmID); words != "" && j.State == string(cluster.Waiting) {
		p.clauses("Forecast", words)
	}
	if x.Models != nil {
		p.listed("Models", x.Models.Words(j.Model))
	}
	if words := w.Requeued(j.Requeues(), j.Restarts); words != "" {
		p.clauses("Requeued", words)
	}
	if x.SlurmSays != "" {
		say("Slurm says", "%s", x.SlurmSays)
	}
	if j.Control != string(cluster.FullControl) && j.ControlWhy != "" {
		say("Note", "%s", j.ControlWhy)
	}
	if s := snap.Settings.Schedule; s != nil {
		say("Schedule", "%s", scheduleWords(p, s))
	}
	if words := tunedWords(p, snap.Settings.Tuned, snap.Settings.Term); words != "" {
		say("Term", "%s", words)
	}
	if x.Claim != nil {
		say("Claim", "%s on %s from %s", gpuWords(cluster.CountHeld(x.Claim.Nodes), x.Claim.Pool), hostlist.Compress(nodeNames(x.Claim.Nodes)), w.Ahead(x.Claim.At))
	}
	if le := x.Lease; le != nil {
		say("Lease", "term %d, %s, %s: %s on %s, until %s", le.Term, le.State, le.Class, gpuWords(le.Size.Count(), le.Pool), hostlist.Compress(nodeNames(le.Nodes)), w.Ahead(le.End))
		say("Right", "%s", explain.Right(le.Class))
	} else if x.Newest.Plan.Round == 0 && len(x.Leases) > 0 && x.Leases[0].Ended == nil {
		le := &x.Leases[0]
		say("Lease", "term %d, %s, %s: %s on %s, until %s", le.Term, le.State, le.Class, gpuWords(le.GPUs, le.Pool), hostlist.Compress(le.Nodes), w.Ahead(cluster.InstantOf(le.Ends)))
		say("Right", "%s", explain.Right(cluster.LeaseClass(le.Class)))
	}
	if x.Stop != nil {
		p.listed("Saves", w.Saves(x.Stop))
		p.listed("Stops", w.Stops(x.Stop))
	}
	if words := gpuNotes(x.GPUs, p.Now.Time()); len(words) > 0 {
		p.listed("GPUs", words)
	}
	for i := range x.Remarks {
		say(map[bool]string{true: "Remarks"}[i == 0], "%s: %s", x.Remarks[i].Kind, x.Remarks[i].Text)
	}
	received, due, loss := j.Work, j.WorkDue, j.Lost
	if r := x.Record; r != nil { // newer than the table
		received, due = r.Work(x.Newest.Plan.At)
		loss = r.Lost
	}
	set := &snap.Settings
	if budget := set.StopAllowance > 0 || set.StopOverheadMilli > 0; budget && x.Record != nil {
		if s := explain.Destroyed(x.Record); s != "" {
			say("Lost", "%s", s)
		}
		loss = 0
	}
	say("Received", "%s of %s due%s (rho %s); leases %d, restarts %d%s", explain.GPUTime(received), explain.GPUTime(due), currency(set), JobRho(received, due),
		j.Terms, j.Restarts, lost(loss))
	for i := range x.Standing {
		st := &x.Standing[i]
		name := ""
		if i == 0 {
			name = "Tenant"
		}
		over := ""
		if set.Divides() {
			over = " of all models"
		}
		say(name, "%s in %s: due %s GPUs, wants %s, has %s; %s; rho%s %s", st.Tenant, st.Pool, gpuCount(st.Entitlement), gpuCount(st.Demand), st.Holds,
			explain.Behind(st.Behind), over, Rho(st.Rho, st.Demand))
		if s := debtWords(st, snap.Settings.Term); s != "" {
			say("", "%s", s)
		}
	}
	if e := x.Effective; e != nil {
		rho := ""
		if e.Rho != nil {
			rho = fmt.Sprintf("; ratio %.3f", *e.Rho)
		}
		say("", "%s in all: its GPUs are worth %.2f of the reference model, its share by weight %.2f%s", e.Tenant, e.Throughput, e.Share, rho)
	}
	for i, o := range x.Overrides {
		name := ""
		if i == 0 {
			name = "Overrides"
		}
		say(name, "%s %s %s until %s, by %s: %s", o.Kind, o.Scope, o.Name, w.Time(cluster.InstantOf(o.Until)), o.By, o.Reason)
	}
	p.history(&x.Explanation, w)
	numbers := ""
	if x.NumbersAt != x.At {
		numbers = "; the numbers of the job are as of " + w.Time(x.NumbersAt)
	}
	say("As of", "round %d at %s%s", x.Round, w.Time(x.At), numbers)
}

// debtWords words a tenant's debt in a pool, if it exceeds one term of its entitlement, or of one
// GPU.
func debtWords(st *cluster.TenantStatus, term cluster.Span) string {
	own := max(st.Entitlement-st.Repays, cluster.WholeGPU)
	if max(st.Owed, -st.Owed) <= cluster.GPUTime(cluster.MulDiv(int64(own), int64(term), int64(cluster.WholeGPU))) {
		return ""
	}
	return explain.Debt(st)
}

// history writes the past actions on the job, newest first.
func (p *Page) history(x *store.Explanation, w explain.Words) {
	const most = 8
	for i, a := range x.Actions[:min(len(x.Actions), most)] {
		name := ""
		if i == 0 {
			name = "Actions"
		}
		what := fmt.Sprintf("%s  %-9s %-8s  %s  %s", clock(w, cluster.InstantOf(a.At)), a.Verb, Outcome(&a), hostlist.Compress(a.Nodes), errorOf(&a))
		p.Printf("%s %s\n", p.Paint(fmt.Sprintf("%-11s", name), "bold"), strings.TrimRight(what, " "))
	}
}

// clauses writes a sentence with each clause on a line of its own.
func (p *Page) clauses(name, sentence string) { p.listed(name, strings.Split(sentence, "; ")) }

// listed writes each part on a line of its own.
func (p *Page) listed(name string, parts []string) {
	for i, part := range parts {
		if i > 0 {
			name = ""
		}
		p.Printf("%s %s\n", p.Paint(fmt.Sprintf("%-11s", name), "bold"), part)
	}
}

// Outcome words what became of an action: suppressed, unknown, done, skipped or failed.
func Outcome(a *store.Action) string {
	switch {
	case a.Suppressed:
		return "suppressed"
	case a.OK == nil:
		return "unknown"
	case *a.OK:
		return "done"
	case a.Skipped != nil && *a.Skipped:
		return "skipped"
	}
	return "failed"
}

func errorOf(a *store.Action) string {
	if a.Error == nil || a.Suppressed {
		return ""
	}
	return *a.Error
}

func stateWords(w explain.Words, j *store.Job, r *cluster.Record) string {
	out := j.State
	if j.Outcome != "" {
		out += " (" + j.Outcome + ")"
	}
	if j.State == string(cluster.Waiting) && r != nil && r.First > 0 {
		out += fmt.Sprintf(", eligible since %s", w.Time(r.First))
	}
	if j.State == string(cluster.Waiting) && r != nil && r.Gate > w.Now {
		out += fmt.Sprintf("; its gate opens by itself at %s", w.Time(r.Gate))
	}
	if j.Done != nil {
		out += ", over since " + w.Time(cluster.InstantOf(*j.Done))
	}
	return out
}

func noStatus(j *store.Job, leases []store.Lease) string {
	switch {
	case j.Done != nil || j.State == string(cluster.Done):
		return "it has ended"
	case len(leases) > 0 && leases[0].Ended == nil:
		return "it holds a lease"
	}
	return "the newest round did not decide on it"
}

func gpuWords(n cluster.GPUCount, model string) string {
	what := "GPUs"
	if n == cluster.CountOf(1) {
		what = "GPU"
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", n, model, what)), " ")
}

func limit(s cluster.Span) string {
	if s == 0 {
		return ", without a time limit"
	}
	return ", for at most " + s.Exact()
}

// currency names the unit of what a job received and was due, if it is not GPU time.
func currency(set *cluster.Settings) string {
	if !set.Divides() {
		return ""
	}
	return ", as GPU time of the reference model"
}

func lost(g cluster.GPUTime) string {
	if g == 0 {
		return ""
	}
	return fmt.Sprintf("; %s lost to requeues", explain.GPUTime(g))
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%q ", name)
}

// before puts a lead before a non-empty text.
func before(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
