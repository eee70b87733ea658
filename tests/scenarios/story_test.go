package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/decisions"
)

// story is a cluster while its story is told. It comes to life with the first
// command that needs it.
type story struct {
	t        *testing.T
	nodes    []cluster.Node
	tenants  []string
	shares   map[string]int64
	settings cluster.Settings
	mode     loop.Mode
	decide   func(cluster.Snapshot) cluster.Plan
	cells    *cluster.Cells // nil = no virtual clusters
	pairs    []cluster.Profile

	world   *simtest.World
	journal *sim.Memory
	log     []entry
	gated   map[cluster.JobID]bool
	last    cluster.Plan

	decisions decisions.Recording
}

// entry is one thing that happened: to jobs, by a verb.
type entry struct {
	at         cluster.Instant
	verb, tail string
	jobs       []string
}

func newStory(t *testing.T) *story {
	set := simtest.Product()
	set.RecallFirst, set.Threshold, set.CreditCap = false, cluster.Minute, cluster.Day
	return &story{t: t, shares: map[string]int64{}, settings: set, mode: loop.Act, decide: simtest.Checked(t), gated: map[cluster.JobID]bool{}}
}

// commands are all that a story can be told with.
var commands = map[string]func(*story, []string) ([]string, error){
	"nodes":    (*story).addNodes,   // nodes NAME… MODEL GPUS
	"tenants":  (*story).addTenants, // tenants NAME=SHARES…
	"settings": (*story).set,        // settings term=15m notice=1m min=5m threshold=1m credit=24h burst=2000 reclaims=100 recall=off
	"mode":     (*story).setMode,    // mode observe|act
	"by":       (*story).by,         // by SCHEDULER: a known one in the engine's place
	"vcs":      (*story).vcs,        // vcs TENANT=NODES…: virtual clusters of whole nodes
	"divide":   (*story).divide,     // divide PRESET: it divides GPU models
	"pair":     (*story).pair,       // pair KIND KIND PERCENT: jobs of two kinds may share a GPU, and each does so much of its steps beside the other
	"submit":   (*story).submit,     // submit TENANT GPUS [xN] [NODESxGPUS] [kind=KIND] [for D] [begin D] [limit D] [no-requeue] [interactive] [never-saves]
	"cancel":   (*story).cancel,     // cancel JOB…
	"requeue":  (*story).requeue,    // requeue JOB…: by somebody else
	"hold":     (*story).hold,       // hold JOB…
	"unhold":   (*story).unhold,     // unhold JOB…
	"begin":    (*story).begin,      // begin JOB D: the user moves its begin time to D from now
	"node":     (*story).node,       // node NAME down|up
	"reserve":  (*story).reserve,    // reserve NODE in D for D: by an administrator
	"limit":    (*story).limit,      // limit TENANT REASON|off: Slurm starts none of its jobs, for that reason
	"run":      (*story).run,        // run D: and tell what is done
	"pass":     (*story).pass,       // pass D: and tell only how much is done
	"show":     (*story).show,       // show leases|tenants|jobs|claims|cells
	"explain":  (*story).explain,    // explain JOB
	"freeze":   (*story).freeze,     // freeze job|user|tenant NAME for D; exempt and boost likewise
	"exempt":   (*story).exempt,
	"boost":    (*story).boost,
}

func (s *story) do(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("no command")
	}
	run, ok := commands[words[0]]
	if !ok {
		return nil, fmt.Errorf("there is no such command")
	}
	return run(s, words[1:])
}

func (s *story) addNodes(words []string) ([]string, error) {
	if len(words) < 3 {
		return nil, fmt.Errorf("write: nodes NAME… MODEL GPUS")
	}
	names, model := words[:len(words)-2], words[len(words)-2]
	gpus, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		n := simtest.Nodes("n", model, 1, gpus)[0]
		n.Name = name
		s.nodes = append(s.nodes, n)
	}
	return nil, nil
}

func (s *story) addTenants(words []string) ([]string, error) {
	for _, w := range words {
		name, shares, ok := strings.Cut(w, "=")
		n, err := strconv.ParseInt(shares, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not NAME=SHARES", w)
		}
		s.tenants, s.shares[name] = append(s.tenants, name), n
	}
	return nil, nil
}

func (s *story) set(words []string) ([]string, error) {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		if key == "recall" && (value == "on" || value == "off") {
			s.settings.RecallFirst = value == "on"
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			switch key {
			case "burst":
				s.settings.BurstMaxMilli = n
			case "reclaims":
				s.settings.MaxReclaims = int(n)
			default:
				return nil, fmt.Errorf("there is no setting %q that is a number", key)
			}
			continue
		}
		d, err := span(value)
		field := map[string]*cluster.Span{"term": &s.settings.Term, "notice": &s.settings.Notice, "min": &s.settings.MinLease,
			"threshold": &s.settings.Threshold, "credit": &s.settings.CreditCap}[key]
		if err != nil || field == nil {
			return nil, fmt.Errorf("%q is no setting", w)
		}
		*field = d
	}
	return nil, nil
}

func (s *story) setMode(words []string) ([]string, error) {
	if len(words) != 1 {
		return nil, fmt.Errorf("write: mode observe|act")
	}
	s.mode = loop.Mode(words[0])
	return nil, nil
}

// by has somebody else than the engine decide.
func (s *story) by(words []string) ([]string, error) {
	if len(words) != 1 {
		return nil, fmt.Errorf("write: by SCHEDULER")
	}
	scheduler, err := baseline.New(words[0], baseline.Options{})
	s.decide = scheduler.Decide
	return nil, err
}

// vcs gives tenants virtual clusters of whole nodes, all of one kind.
func (s *story) vcs(words []string) ([]string, error) {
	if len(s.nodes) == 0 {
		return nil, fmt.Errorf("name the nodes before")
	}
	gpu := s.nodes[0].GPUs[0]
	s.cells = &cluster.Cells{Types: []cluster.CellType{{Name: "gpu", Model: gpu.Model}, {Name: "node", Child: "gpu", Split: gpu.Count, Node: true}}}
	for _, n := range s.nodes {
		s.cells.Tops = append(s.cells.Tops, cluster.TopCell{Name: n.Name, Type: "node", Nodes: []string{n.Name}})
	}
	for _, w := range words {
		name, nodes, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(nodes)
		if err != nil {
			return nil, fmt.Errorf("%q is not TENANT=NODES", w)
		}
		s.cells.VCs = append(s.cells.VCs, cluster.VC{Name: name, Cells: []cluster.CellQuota{{Type: "node", Cells: n}}})
	}
	s.settings.Preset, s.settings.Chooser = "hived", "astraea"
	_, err := cells.New(*s.cells)
	return nil, err
}

// divide has a preset divide GPU models.
func (s *story) divide(words []string) ([]string, error) {
	if len(words) != 1 || !slices.Contains(preset.Dividing(), words[0]) {
		return nil, fmt.Errorf("write: divide PRESET, one of %s", strings.Join(preset.Dividing(), ", "))
	}
	set := &s.settings
	set.Preset, set.Divide, set.DivideJobs, set.Mechanism, set.DivideEvery = words[0], words[0], preset.OfJobs(words[0]), cluster.Nearest, 30
	return nil, nil
}

// pair declares how fast jobs of two kinds are beside each other, and lets such jobs share GPUs.
func (s *story) pair(words []string) ([]string, error) {
	if len(words) != 3 || len(s.nodes) == 0 {
		return nil, fmt.Errorf("name the nodes before, and write: pair KIND KIND PERCENT")
	}
	percent, err := strconv.Atoi(words[2])
	model := s.nodes[0].GPUs[0].Model
	s.settings.Across, s.settings.Slices = cluster.AnyUser, &cluster.Slices{Quantum: cluster.Minute, Pairs: true, Memory: []cluster.GPUMemory{{Model: model, Bytes: 32 << 30}}}
	for i := range s.nodes {
		s.nodes[i].Shards = 2 * s.nodes[i].GPUs[0].Count
	}
	for k, kind := range words[:2] {
		of := cluster.Profile{Kind: cluster.Kind(kind), Model: model, Gang: 1, Rate: 1, Source: cluster.Declared, Basis: profile.File}
		if !slices.Contains(s.pairs, of) {
			s.pairs = append(s.pairs, of)
		}
		of.With, of.Rate = cluster.Kind(words[1-k]), float64(percent)/100
		s.pairs = append(s.pairs, of)
	}
	return nil, err
}

// beside gives the speeds of jobs beside each other that are declared.
func (s *story) beside() sim.Beside {
	out := sim.Beside{}
	for _, p := range s.pairs {
		with := sim.Task{Kind: string(p.With), GPUs: 1}
		if out[with] == nil {
			out[with] = sim.Speeds{}
		}
		out[with][sim.Task{Kind: string(p.Kind), GPUs: 1}] = map[string]sim.Rate{p.Model: {Speed: sim.Speed(float64(sim.Reference) * p.Rate)}}
	}
	return out
}

// live gives the cluster, made when it is asked for first.
func (s *story) live() *simtest.World {
	if s.world != nil {
		return s.world
	}
	s.world, s.journal = simtest.New(s.t, s.settings, s.nodes, s.tenants...), sim.NewMemory()
	if s.pairs != nil {
		s.world.Rules.Profiles, s.world.Beside, s.world.Reports = s.pairs, s.beside(), 10*cluster.Second
	}
	for _, name := range s.tenants {
		s.world.SetShares(name, s.shares[name])
	}
	s.world.Loop.Journal, s.world.Loop.Decide, s.world.Rules.Cells = s.journal, s.decisions.Of(s.decide), s.cells
	s.world.Loop.Configure = func() (loop.Rules, cluster.Settings) {
		s.world.Rules.Mode = s.mode
		return s.world.Rules, s.settings
	}
	return s.world
}

func span(word string) (cluster.Span, error) {
	d, err := time.ParseDuration(word)
	return cluster.SpanOf(d), err
}

// after tells how long after the story's beginning something is.
func after(t cluster.Instant) string { return t.Sub(simtest.Start).Slurm() }

func (s *story) submit(words []string) ([]string, error) {
	w := s.live()
	if len(words) < 2 || !slices.Contains(s.tenants, words[0]) {
		return nil, fmt.Errorf("write: submit TENANT GPUS …")
	}
	gpus, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, err
	}
	work := sim.Work{Name: "train", User: words[0] + "_user", Account: words[0], Partition: "gpu", Request: simtest.Gang(gpus), Runs: 1000 * cluster.Hour}
	n := 1
	for rest := words[2:]; len(rest) > 0; rest = rest[1:] {
		word, field := rest[0], (*cluster.Span)(nil)
		var begin cluster.Span
		switch word {
		case "for":
			field = &work.Runs
		case "limit":
			field = &work.Limit
		case "begin":
			field = &begin
		case "no-requeue":
			work.NoRequeue = true
		case "interactive":
			work.Interactive = true
		case "never-saves":
			work.Saves, work.Command = sim.Never, cluster.Untyped
		default:
			if kind, ok := strings.CutPrefix(word, "kind="); ok {
				work.Kind, work.Comment = kind, "share=yes,mem."+s.nodes[0].GPUs[0].Model+"=14g,"+word
				continue
			}
			nodes, each, ok := strings.Cut(word, "x")
			count, err := strconv.Atoi(each)
			if !ok || err != nil {
				return nil, fmt.Errorf("%q is not understood", word)
			}
			if nodes == "" {
				n = count
				continue
			}
			if work.Request.Nodes, err = strconv.Atoi(nodes); err != nil {
				return nil, err
			}
			work.Request.PerNode = count
		}
		if field == nil {
			continue
		}
		if len(rest) < 2 {
			return nil, fmt.Errorf("%q wants a time", word)
		}
		if *field, err = span(rest[1]); err != nil {
			return nil, err
		}
		if begin > 0 {
			work.Begin = w.Now().Add(begin)
		}
		rest = rest[1:]
	}
	first := w.Virtual.Submit(work)
	if n == 1 {
		return []string{"job " + first.String()}, nil
	}
	last := first
	for range n - 1 {
		last = w.Virtual.Submit(work)
	}
	return []string{fmt.Sprintf("jobs %s to %s", first, last)}, nil
}

// each does something to every job that is named.
func (s *story) each(words []string, do func(cluster.JobID)) ([]string, error) {
	for _, w := range words {
		id, err := cluster.ParseJobID(w)
		if err != nil {
			return nil, err
		}
		do(id)
	}
	return nil, nil
}

func (s *story) cancel(words []string) ([]string, error)  { return s.each(words, s.live().Cancel) }
func (s *story) requeue(words []string) ([]string, error) { return s.each(words, s.live().Requeue) }
func (s *story) hold(words []string) ([]string, error) {
	return s.each(words, func(id cluster.JobID) { s.live().Hold(id, true) })
}
func (s *story) unhold(words []string) ([]string, error) {
	return s.each(words, func(id cluster.JobID) { s.live().Hold(id, false) })
}

func (s *story) begin(words []string) ([]string, error) {
	if len(words) != 2 {
		return nil, fmt.Errorf("write: begin JOB D")
	}
	d, err := span(words[1])
	if err != nil {
		return nil, err
	}
	return s.each(words[:1], func(id cluster.JobID) { s.live().SetBegin(id, s.live().Now().Add(d)) })
}

func (s *story) knows(node string) bool {
	return slices.ContainsFunc(s.nodes, func(n cluster.Node) bool { return n.Name == node })
}

func (s *story) node(words []string) ([]string, error) {
	if len(words) != 2 || !s.knows(words[0]) || words[1] != "down" && words[1] != "up" {
		return nil, fmt.Errorf("write: node NAME down|up")
	}
	s.live().SetNode(words[0], strings.TrimPrefix(words[1], "up"))
	return nil, nil
}

func (s *story) reserve(words []string) ([]string, error) {
	if len(words) != 5 || !s.knows(words[0]) || words[1] != "in" || words[3] != "for" {
		return nil, fmt.Errorf("write: reserve NODE in D for D")
	}
	in, err := span(words[2])
	if err != nil {
		return nil, err
	}
	length, err := span(words[4])
	if err != nil {
		return nil, err
	}
	start := s.live().Now().Add(in)
	s.live().AddReservation(cluster.Reservation{Name: "maintenance", Nodes: words[:1], Start: start, End: start.Add(length)})
	return nil, nil
}

func (s *story) limit(words []string) ([]string, error) {
	if len(words) != 2 {
		return nil, fmt.Errorf("write: limit TENANT REASON|off")
	}
	v := s.live().Virtual
	v.Refuse = func(j *cluster.Job) string {
		if j.Account == words[0] && words[1] != "off" {
			return words[1]
		}
		return ""
	}
	v.Reconsider()
	return nil, nil
}

func (s *story) freeze(words []string) ([]string, error) { return s.order(cluster.Freeze, words) }
func (s *story) exempt(words []string) ([]string, error) { return s.order(cluster.Exempt, words) }
func (s *story) boost(words []string) ([]string, error)  { return s.order(cluster.Boost, words) }

func (s *story) order(kind cluster.OverrideKind, words []string) ([]string, error) {
	if len(words) != 4 || words[2] != "for" {
		return nil, fmt.Errorf("write: %s job|user|tenant NAME for D", kind)
	}
	d, err := span(words[3])
	if err != nil {
		return nil, err
	}
	s.live()
	s.journal.Override(cluster.Override{Kind: kind, Scope: words[0], Name: words[1], Until: s.live().Now().Add(d), Reason: "as ordered"})
	return nil, nil
}

// run lets time pass and tells what was done in it: gates only when they are shut
// for the first time, and not the tidying up.
func (s *story) run(words []string) ([]string, error) {
	if len(words) != 1 {
		return nil, fmt.Errorf("write: run D")
	}
	d, err := span(words[0])
	if err != nil {
		return nil, err
	}
	w := s.live()
	s.log = nil
	err = sim.Run(context.Background(), w.Virtual, w.Loop, s.settings.Interval, w.Now().Add(d), s.note)
	return lines(s.log), err
}

func (s *story) pass(words []string) ([]string, error) {
	if _, err := s.run(words); err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, e := range s.log {
		count[e.verb] += len(e.jobs)
	}
	return []string{fmt.Sprintf("%d leases granted, %d jobs requeued for others", count["grant"], count["reclaim"])}, nil
}

func (s *story) note(r loop.Report) {
	s.last = r.Plan
	at := r.Plan.At
	for _, l := range r.Plan.Ended {
		switch l.Why {
		case "renewed", "reclaimed":
		default:
			s.add(at, l.Why, "", s.id(l.Job))
		}
	}
	for i, a := range r.Plan.Actions {
		if !r.Outcomes[i].OK && !r.Outcomes[i].Skipped {
			s.add(at, fmt.Sprintf("%s fails (%s)", a.Verb, r.Outcomes[i].Error), "", a.ID.String())
			continue
		}
		verb := string(a.Verb)
		if a.Suppressed {
			if a.Verb == cluster.Notify {
				continue // decided anew in every round
			}
			verb = "would " + verb
		}
		switch a.Verb {
		case cluster.Gate:
			if !s.gated[a.ID] {
				s.add(at, verb, "", a.ID.String())
			}
			s.gated[a.ID] = true
		case cluster.Grant:
			s.add(at, verb, " on "+strings.Join(a.Nodes, " "), a.ID.String())
		case cluster.Reserve:
			s.add(at, verb, " for "+strings.Join(a.Accounts, " "), strings.Join(a.Nodes, " "))
		case cluster.Reclaim, cluster.Notify, cluster.Open, cluster.RevokeGrant:
			s.add(at, verb, "", a.ID.String())
		}
	}
}

func (s *story) id(key cluster.JobKey) string {
	for r := range s.last.State.All() {
		if r.Key == key {
			return r.ID.String()
		}
	}
	return "forgotten"
}

// add notes what happened, together with what was noted just before where only
// the job differs.
func (s *story) add(at cluster.Instant, verb, tail, job string) {
	if n := len(s.log); n > 0 && s.log[n-1].at == at && s.log[n-1].verb == verb && s.log[n-1].tail == tail {
		s.log[n-1].jobs = append(s.log[n-1].jobs, job)
		return
	}
	s.log = append(s.log, entry{at, verb, tail, []string{job}})
}

func lines(log []entry) []string {
	if len(log) == 0 {
		return []string{"(nothing)"}
	}
	out := make([]string, len(log))
	for i, e := range log {
		out[i] = fmt.Sprintf("%s %s %s%s", after(e.at), e.verb, strings.Join(e.jobs, " "), e.tail)
	}
	return out
}

// now decides once more, without acting, so that the output is of this moment.
func (s *story) now() (cluster.Snapshot, cluster.Plan, error) {
	return s.live().Loop.Preview(context.Background())
}

func (s *story) show(words []string) ([]string, error) {
	views := map[string]func(*cluster.Snapshot, *cluster.Plan) []string{"leases": s.leases, "tenants": s.standings, "jobs": s.jobs, "claims": s.claims, "cells": s.bound}
	if len(words) != 1 || views[words[0]] == nil {
		return nil, fmt.Errorf("write: show leases|tenants|jobs|claims|cells")
	}
	snap, plan, err := s.now()
	if err != nil {
		return nil, err
	}
	s.last = plan
	return views[words[0]](&snap, &plan), nil
}

// table writes rows with their columns under each other.
func table(rows [][]string) []string {
	var width []int
	for _, row := range rows {
		for c, cell := range row {
			if c == len(width) {
				width = append(width, 0)
			}
			width[c] = max(width[c], len(cell))
		}
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for c, cell := range row {
			fmt.Fprintf(&b, "%-*s  ", width[c], cell)
		}
		out[i] = strings.TrimRight(b.String(), " ")
	}
	return out
}

func (s *story) leases(_ *cluster.Snapshot, p *cluster.Plan) []string {
	rows := [][]string{{"job", "tenant", "GPUs", "nodes", "term", "ends", "state"}}
	for _, l := range p.State.Leases {
		var nodes []string
		for _, h := range l.Nodes {
			nodes = append(nodes, h.Node)
		}
		tenant := ""
		for r := range p.State.All() {
			if r.Key == l.Job {
				tenant = r.Tenant
			}
		}
		rows = append(rows, []string{s.id(l.Job), tenant, fmt.Sprint(l.Size.Devices), strings.Join(nodes, " "), fmt.Sprint(l.Term), after(l.End), string(l.State)})
	}
	return table(rows)
}

func (s *story) standings(_ *cluster.Snapshot, p *cluster.Plan) []string {
	rows := [][]string{{"tenant", "due", "holds", "waiting", "received", "rho", "stands"}}
	for _, t := range p.Tenants {
		var received cluster.GPUTime
		for _, row := range p.State.Ledger.Tenants {
			if row.Tenant == t.Tenant && row.Pool == t.Pool {
				received = row.Alloc
			}
		}
		rows = append(rows, []string{t.Tenant, fmt.Sprintf("%.3g", float64(t.Entitlement)/float64(cluster.WholeGPU)), fmt.Sprint(t.Holds), fmt.Sprint(t.Waiting),
			fmt.Sprintf("%.2f GPUh", received.Hours()), t.Rho.String(), behind(t.Behind)})
	}
	return table(rows)
}

func (s *story) jobs(snap *cluster.Snapshot, p *cluster.Plan) []string {
	rows := [][]string{{"job", "tenant", "GPUs", "state", "terms", "received", "why"}}
	for _, v := range p.Statuses {
		for i := range snap.Cases {
			if c := &snap.Cases[i]; c.Record.Key == v.Job {
				r := s.record(p, v.Job)
				rows = append(rows, []string{c.Job.ID.String(), c.Record.Tenant, fmt.Sprint(c.Job.Request.Size.Devices), string(c.Job.State),
					fmt.Sprint(r.Terms), fmt.Sprintf("%.2f GPUh", r.Alloc.Hours()), string(v.Reason.Code)})
			}
		}
	}
	return table(rows)
}

func (s *story) record(p *cluster.Plan, key cluster.JobKey) cluster.Record {
	for r := range p.State.All() {
		if r.Key == key {
			return *r
		}
	}
	return cluster.Record{}
}

func (s *story) claims(_ *cluster.Snapshot, p *cluster.Plan) []string {
	var out []string
	for _, c := range p.State.Claims {
		var nodes []string
		for _, h := range c.Nodes {
			nodes = append(nodes, fmt.Sprintf("%d on %s", h.Size.Devices, h.Node))
		}
		out = append(out, fmt.Sprintf("for job %s: %s, at %s", s.id(c.Job), strings.Join(nodes, ", "), after(c.At)))
	}
	if out == nil {
		return []string{"(none)"}
	}
	return out
}

// bound tells whose each bound cell is and who is in it.
func (s *story) bound(_ *cluster.Snapshot, p *cluster.Plan) []string {
	rows := [][]string{{"VC", "cell", "GPUs used", "guaranteed", "opportunistic"}}
	ids := func(keys []cluster.JobKey) string {
		var out []string
		for _, k := range keys {
			out = append(out, s.id(k))
		}
		return strings.Join(out, " ")
	}
	if p.Cells != nil {
		for _, c := range p.Cells.Bound {
			rows = append(rows, []string{c.VC, c.Type + " " + c.Parts[0].Node, fmt.Sprint(c.Used), ids(c.Holders), ids(c.Guests)})
		}
	}
	return table(rows)
}

// explain tells the reason of a job as it is: a code and its numbers.
func (s *story) explain(words []string) ([]string, error) {
	if len(words) != 1 {
		return nil, fmt.Errorf("write: explain JOB")
	}
	_, p, err := s.now()
	if err != nil {
		return nil, err
	}
	s.last = p
	for _, v := range p.Statuses {
		if s.id(v.Job) == words[0] {
			return []string{s.reason(&v.Reason)}, nil
		}
	}
	return nil, fmt.Errorf("there is no such job")
}

func behind(d cluster.Span) string {
	if d < 0 {
		return (-d).Slurm() + " ahead"
	}
	return d.Slurm() + " behind"
}

func (s *story) reason(r *cluster.Reason) string {
	parts := []string{string(r.Code)}
	add := func(if_ bool, format string, args ...any) {
		if if_ {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.Note != "", "(%s)", r.Note)
	add(r.Need > 0, "needs %s", r.Need)
	add(r.Free > 0, "%s free", r.Free)
	add(r.Behind != 0, "its tenant is %s", behind(r.Behind))
	add(r.Other != "", "after %s, %s", r.Other, behind(r.OtherBehind))
	add(r.Until > 0, "until %s", after(r.Until))
	add(r.For > 0, "for job %s", s.id(r.For))
	add(r.Spent > 0, "stops cost it %s", r.Spent.Slurm())
	add(r.Fits > 0, "fits with a limit of %s", r.Fits.Slurm())
	return strings.Join(parts, ", ")
}
