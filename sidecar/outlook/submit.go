package outlook

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

// Submission is a job that may be submitted.
type Submission struct {
	GPUs   int
	Runs   cluster.Span
	Tenant string
	Model  string // "" = any
}

var submission = regexp.MustCompile(`^(\d+) gpus? (\S+) as (\S+)(?: on (\S+))?$`)

// ParseSubmission reads "8 gpus 24h as nlp" or "8 gpus 24h as nlp on h100".
func ParseSubmission(text string) (Submission, error) {
	parts := submission.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if parts == nil {
		return Submission{}, failure.Usage("--submit %q: write GPUs, run time and tenant, as in '8 gpus 24h as nlp' or '8 gpus 24h as nlp on h100'", text)
	}
	gpus, err := strconv.Atoi(parts[1])
	if err != nil || gpus < 1 {
		return Submission{}, failure.Usage("--submit %q: %s is no number of GPUs", text, parts[1])
	}
	runs, err := config.ParseDuration(parts[2])
	if err != nil {
		return Submission{}, failure.Usage("--submit %q: %v", text, err)
	}
	if runs <= 0 {
		return Submission{}, failure.Usage("--submit %q: a job runs for some time", text)
	}
	return Submission{GPUs: gpus, Runs: runs.Span(), Tenant: parts[3], Model: strings.ToLower(parts[4])}, nil
}

// Choice is when a submitted job would run on a model.
type Choice struct {
	Model string `json:"model"` // "" = any
	store.JobForecast
}

// Submit forecasts a job that would be submitted now: on any model, and on each that has nodes for it.
func Submit(ctx context.Context, q *forecast.Question, s *Submission) ([]Choice, error) {
	if !slices.ContainsFunc(q.Snapshot.Tenants, func(t cluster.Tenant) bool { return t.Name == s.Tenant }) {
		var names []string
		for _, t := range q.Snapshot.Tenants {
			names = append(names, t.Name)
		}
		return nil, failure.Usage("--submit: there is no tenant %q; there are %s", s.Tenant, view.Some(names, 10))
	}
	if known := modelsOf(q.Snapshot, 1); s.Model != "" && !slices.Contains(known, s.Model) {
		return nil, failure.Usage("--submit: no healthy GPU is a %q; there are %s", s.Model, view.Some(known, 10))
	}
	models := []string{s.Model}
	if s.Model == "" {
		if all := modelsOf(q.Snapshot, s.GPUs); len(all) > 1 {
			models = append(models, all...)
		}
	}
	var out []Choice
	for _, model := range models {
		with := forecast.Admit(with(q, s, model), q.Snapshot.NextKey)
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

// with adds the job to a question, as one of the tenant's own account, with the run time as its time limit.
func with(q *forecast.Question, s *Submission, model string) *forecast.Question {
	out, snap := *q, *q.Snapshot
	var partitions []string
	for i := range snap.Nodes {
		partitions = append(partitions, snap.Nodes[i].Partitions...)
	}
	slices.Sort(partitions)
	c := cluster.Case{Control: cluster.FullControl,
		Job: cluster.Job{State: cluster.Waiting, Partitions: slices.Compact(partitions), Batch: true, Requeueable: true,
			Account: s.Tenant, Limit: s.Runs, Submit: snap.Now, Request: cluster.Request{GPUs: s.GPUs, Model: model}},
		Record: cluster.Record{Key: snap.NextKey, Tenant: s.Tenant, First: snap.Now}}
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
		p.Printf("%-12s %s\n", cmp.Or(c.Model, "any model"), p.Ahead(&c.Forecast))
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
