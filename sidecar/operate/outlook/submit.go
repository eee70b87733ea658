package outlook

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Submission is a job that may be submitted. Of the texts only Tenant must be there.
type Submission struct {
	GPUs      int
	Runs      cluster.Span
	Tenant    string
	Model     string // "" = any
	Account   string // "" = the tenant's own
	User      string // "" = one without limits
	QOS       string
	Partition string // "" = all with GPUs
	Licenses  string // in Slurm's syntax
}

// ParseSubmission reads "8 gpus 24h as nlp", followed by any of "on MODEL", "user NAME", "account NAME", "qos NAME", "partition NAME" and
// "licenses LIST".
func ParseSubmission(text string) (Submission, error) {
	words := strings.Fields(text)
	if len(words) < 5 || words[1] != "gpus" && words[1] != "gpu" || words[3] != "as" || len(words)%2 == 0 {
		return Submission{}, failure.Usage("--submit %q: write GPUs, run time and tenant, as in '8 gpus 24h as nlp' or '8 gpus 24h as nlp on h100 user alice'", text)
	}
	gpus, err := strconv.Atoi(words[0])
	if err != nil || gpus < 1 {
		return Submission{}, failure.Usage("--submit %q: %s is no number of GPUs", text, words[0])
	}
	runs, err := config.ParseDuration(words[2])
	if err != nil {
		return Submission{}, failure.Usage("--submit %q: %v", text, err)
	}
	if runs <= 0 {
		return Submission{}, failure.Usage("--submit %q: a job runs for some time", text)
	}
	s := Submission{GPUs: gpus, Runs: runs.Span(), Tenant: words[4]}
	places := map[string]*string{"on": &s.Model, "user": &s.User, "account": &s.Account, "qos": &s.QOS, "partition": &s.Partition, "licenses": &s.Licenses}
	for i := 5; i < len(words); i += 2 {
		at := places[words[i]]
		if at == nil {
			return Submission{}, failure.Usage("--submit %q: %q is none of on, user, account, qos, partition and licenses", text, words[i])
		}
		if *at != "" {
			return Submission{}, failure.Usage("--submit %q: %s is there twice", text, words[i])
		}
		*at = words[i+1]
	}
	s.Model = strings.ToLower(s.Model)
	return s, nil
}

// check refuses names that a snapshot does not have.
func (s *Submission) check(snap *cluster.Snapshot) error {
	if !slices.ContainsFunc(snap.Tenants, func(t cluster.Tenant) bool { return t.Name == s.Tenant }) {
		var names []string
		for _, t := range snap.Tenants {
			names = append(names, t.Name)
		}
		return failure.Usage("--submit: there is no tenant %q; there are %s", s.Tenant, view.Some(names, 10))
	}
	if known := modelsOf(snap, 1); s.Model != "" && !slices.Contains(known, s.Model) {
		return failure.Usage("--submit: no healthy GPU is a %q; there are %s", s.Model, view.Some(known, 10))
	}
	if known := partitionsOf(snap); s.Partition != "" && !slices.Contains(known, s.Partition) {
		return failure.Usage("--submit: no node with GPUs is in a partition %q; there are %s", s.Partition, view.Some(known, 10))
	}
	needs, _ := cluster.ParseLicenses(s.Licenses)
	if s.Licenses != "" && len(needs) == 0 {
		return failure.Usage("--submit: %q are no licences; write them as for sbatch, as in matlab:2", s.Licenses)
	}
	for _, n := range needs {
		if snap.Admission == nil || !slices.ContainsFunc(snap.Admission.Licenses, func(l cluster.LicenseCount) bool { return l.Name == n.Name }) {
			return failure.Usage("--submit: how many licences of %s are free is known only while a job waits for some; leave it out", n.Name)
		}
	}
	return nil
}

// Choice is when a submitted job would run on a model.
type Choice struct {
	Model string `json:"model"` // "" = any
	store.JobForecast
}

// Submit forecasts a job that would be submitted now: on any model, and on each that has nodes for it.
func Submit(ctx context.Context, q *forecast.Question, s *Submission) ([]Choice, error) {
	if err := s.check(q.Snapshot); err != nil {
		return nil, err
	}
	models := []string{s.Model}
	if s.Model == "" {
		if all := modelsOf(q.Snapshot, s.GPUs); len(all) > 1 {
			models = append(models, all...)
		}
	}
	var out []Choice
	for _, model := range models {
		with := with(q, s, model)
		f, err := Make(ctx, with)
		if err != nil {
			return nil, err
		}
		for _, r := range Rows(with, f) {
			if r.Key == q.Snapshot.NextKey {
				out = append(out, Choice{model, r})
			}
		}
	}
	return out, nil
}

// modelsOf lists the GPU models with enough GPUs.
func modelsOf(s *cluster.Snapshot, gpus int) (out []string) {
	count := map[string]int{}
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			if s.Nodes[i].Bad == "" {
				count[g.Model] += g.Count
			}
		}
	}
	for model, n := range count {
		if n >= gpus {
			out = append(out, model)
		}
	}
	slices.Sort(out)
	return out
}

// partitionsOf lists the partitions of nodes with GPUs.
func partitionsOf(s *cluster.Snapshot) (out []string) {
	for i := range s.Nodes {
		out = append(out, s.Nodes[i].Partitions...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// with adds the job to a question, with the run time as its time limit.
func with(q *forecast.Question, s *Submission, model string) *forecast.Question {
	out, snap := *q, *q.Snapshot
	partitions := partitionsOf(&snap)
	if s.Partition != "" {
		partitions = []string{s.Partition}
	}
	c := cluster.Case{Control: cluster.FullControl,
		Job: cluster.Job{State: cluster.Waiting, Partitions: partitions, Batch: true, Requeueable: true,
			Account: cmp.Or(s.Account, s.Tenant), User: s.User, QOS: s.QOS, Licenses: s.Licenses, Limit: s.Runs, Submit: snap.Now, Request: cluster.Request{Size: cluster.Whole(s.GPUs), Model: model}},
		Record: cluster.Record{Key: snap.NextKey, Tenant: s.Tenant, User: s.User, First: snap.Now}}
	out.Known = map[cluster.JobKey]cluster.Span{snap.NextKey: s.Runs}
	snap.Cases, snap.NextKey = append(slices.Clone(snap.Cases), c), snap.NextKey+1
	out.Snapshot = &snap
	maps.Copy(out.Known, q.Known)
	return &out
}

// WriteSubmission writes when a submitted job would run, and on which model sooner.
func WriteSubmission(p *view.Page, s *Submission, choices []Choice) error {
	if !p.ForPeople() {
		return p.Encode(choices)
	}
	best := -1
	for i := range choices {
		c := &choices[i]
		p.Printf("%-12s %s\n", cmp.Or(c.Model, "any model"), p.Ahead(&c.Forecast, ""))
		if c.Model != "" && c.EndP50 != nil && (best < 0 || c.EndP50.Before(*choices[best].EndP50)) {
			best = i
		}
	}
	if best >= 0 && len(choices) > 1 {
		p.Printf("it would end first on %s\n", choices[best].Model)
	}
	if s.Model == "" && len(choices) > 1 {
		p.Printf("%s\n", p.Paint(fmt.Sprintf("on every model it is taken to run for %s", s.Runs), "dim"))
	}
	return nil
}
