package score

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// worstJobs is the maximum number of a tenant's jobs that an audit names.
const worstJobs = 10

// Audited is a tenant's part of a sharing audit: the hours that its jobs waited in the shared
// cluster and in a private one with its share.
type Audited struct {
	Tenant  string    `json:"tenant"`
	Longer  bool      `json:"waits_longer"` // total, in the shared cluster: HiveD's sharing anomaly
	Jobs    int       `json:"jobs"`         // compared jobs
	LeftOut int       `json:"left_out"`     // missing in the private run, or unfinished there
	GPUs    int       `json:"gpus"`         // of the private cluster; 0 = unknown
	Share   float64   `json:"share_gpus"`   // the tenant's share; less than GPUs if its largest gang needs more
	Shared  float64   `json:"shared_h"`
	Private float64   `json:"private_h"`
	Worse   int       `json:"worse_jobs"` // jobs that wait longer in the shared cluster
	Lost    float64   `json:"lost_h"`     // their total extra wait
	Worst   []Anomaly `json:"worst"`      // at most ten of them, worst first
}

// Anomaly is a job that waits longer in the shared cluster than in a private one.
type Anomaly struct {
	Job        string  `json:"job"`
	User       string  `json:"user"`
	GPUs       int     `json:"gpus"`
	Shared     float64 `json:"shared_h"`
	Private    float64 `json:"private_h"`
	Unfinished bool    `json:"unfinished"` // in the shared cluster: Shared is its wait so far
}

// Audit compares the shared run with private runs of the same jobs, one for each tenant in a
// private cluster with its share (HiveD §2, §5), job by job by id. It ignores differences of up
// to slack in either direction. A job that is unfinished in the shared run counts with its wait
// until the end, which can only favour the shared cluster; one unfinished in the private run is
// omitted and counted. Tenants that wait longer come first, most hours first.
func Audit(shared Run, private []Run, slack cluster.Span) []Audited {
	alone := map[string]Job{}
	for _, run := range private {
		for _, j := range run.Jobs {
			alone[j.ID] = j
		}
	}
	tenants := map[string]*audit{}
	for _, j := range shared.Jobs {
		a := tenants[j.Tenant]
		if a == nil {
			a = &audit{}
			tenants[j.Tenant] = a
		}
		p, ok := alone[j.ID]
		if !ok || p.End == 0 {
			a.leftOut++
			continue
		}
		end := j.End
		if end == 0 {
			end = shared.To
		}
		a.add(difference{job: j, shared: j.Wait(end), private: p.Wait(p.End)}, slack)
	}
	var out []Audited
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		out = append(out, tenants[name].result(name))
	}
	slices.SortStableFunc(out, func(a, b Audited) int {
		if a.Longer != b.Longer {
			if a.Longer {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Shared-b.Private, a.Shared-a.Private)
	})
	return out
}

// audit is the state of a tenant's audit.
type audit struct {
	jobs, leftOut         int
	shared, private, lost cluster.Span
	net                   cluster.Span // shared less private, over the counted jobs
	worse                 []difference
}

// difference is a job's wait in both worlds.
type difference struct {
	job             Job
	shared, private cluster.Span
}

func (a *audit) add(d difference, slack cluster.Span) {
	a.jobs++
	a.shared += d.shared
	a.private += d.private
	more := d.shared - d.private
	if max(more, -more) > slack {
		a.net += more
	}
	if more > slack {
		a.lost += more
		a.worse = append(a.worse, d)
	}
}

func (a *audit) result(name string) Audited {
	slices.SortFunc(a.worse, func(x, y difference) int {
		return cmp.Or(cmp.Compare(y.shared-y.private, x.shared-x.private), cmp.Compare(x.job.ID, y.job.ID))
	})
	out := Audited{Tenant: name, Jobs: a.jobs, LeftOut: a.leftOut, Worse: len(a.worse),
		Shared: hours(a.shared), Private: hours(a.private), Lost: hours(a.lost),
		Longer: a.net > 0}
	for _, d := range a.worse[:min(len(a.worse), worstJobs)] {
		out.Worst = append(out.Worst, Anomaly{Job: d.job.ID, User: d.job.User, GPUs: d.job.GPUs,
			Shared: hours(d.shared), Private: hours(d.private), Unfinished: d.job.End == 0})
	}
	return out
}

func hours(s cluster.Span) float64 { return float64(s) / float64(cluster.Hour) }
