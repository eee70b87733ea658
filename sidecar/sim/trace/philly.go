package trace

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// phillyJob is one record of cluster_job_log. null reads as empty.
type phillyJob struct {
	Status    string          `json:"status"`
	VC        string          `json:"vc"`
	ID        string          `json:"jobid"`
	User      string          `json:"user"`
	Submitted string          `json:"submitted_time"`
	Attempts  []phillyAttempt `json:"attempts"`
}

type phillyAttempt struct {
	Start  string `json:"start_time"`
	End    string `json:"end_time"`
	Detail []struct {
		IP   string   `json:"ip"`
		GPUs []string `json:"gpus"`
	} `json:"detail"`
}

func readPhilly(r *records, c *collector) (*Trace, error) {
	n := 0
	err := r.list(func(raw jsontext.Value, line int) error {
		n++
		c.row()
		var p phillyJob
		var j Job
		err := json.Unmarshal(raw, &p, lenient)
		if err == nil {
			j, err = p.job(c)
		}
		if err != nil {
			c.bad(r.name, line, "record %d, job %.80s: %v", n, p.ID, unfit(err))
			return nil
		}
		if j.GPUs == 0 && j.Runs == 0 { // never placed: its request is unknown
			c.trace.Counts.NoRun++
			return nil
		}
		c.keep(j, note{}, r.name, line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return c.finish(true), nil
}

// job sums the attempts. One without start or end, which the trace's authors call a logging error
// or a job that still ran, adds no time. The size is the largest of any attempt: the requested
// gang.
func (p *phillyJob) job(c *collector) (Job, error) {
	j := Job{ID: p.ID, Tenant: p.VC, User: p.User, Outcome: outcomeOf(p.Status)}
	if none(p.Submitted) {
		return j, fmt.Errorf("no submitted_time")
	}
	var err error
	if j.Submit, err = moment(p.Submitted, c.opts.zone()); err != nil {
		return j, fmt.Errorf("submitted_time %.80q: %w", p.Submitted, err)
	}
	for i, a := range p.Attempts {
		gpus, hosts := 0, map[string]bool{}
		for _, d := range a.Detail {
			gpus += len(d.GPUs)
			hosts[d.IP] = true
		}
		if gpus > j.GPUs {
			j.GPUs, j.Nodes = gpus, len(hosts)
		}
		span, err := a.ran(c)
		if err != nil {
			return j, fmt.Errorf("attempt %d: %w", i+1, err)
		}
		j.Runs += span
	}
	return j, nil
}

func (a *phillyAttempt) ran(c *collector) (cluster.Span, error) {
	if none(a.Start) || none(a.End) {
		return 0, nil
	}
	start, err := moment(a.Start, c.opts.zone())
	if err != nil {
		return 0, fmt.Errorf("start_time %.80q: %w", a.Start, err)
	}
	end, err := moment(a.End, c.opts.zone())
	if err != nil {
		return 0, fmt.Errorf("end_time %.80q: %w", a.End, err)
	}
	return ran(start, end)
}
