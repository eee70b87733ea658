package store

import (
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// boundRow is a row of bound_jobs. Fields that are 0 or empty become null.
type boundRow struct {
	Job   cluster.JobKey   `json:"job_key"`
	Way   cluster.Way      `json:"way,omitempty"`
	Pool  string           `json:"pool,omitempty"`
	GPUs  cluster.GPUCount `json:"gpus,omitempty"`
	Since stamp            `json:"since_at,omitempty"`
	Until stamp            `json:"until_at,omitempty"`
}

var (
	putBoundJobs  = query[boundRow]("put_bound_jobs")
	dropBoundJobs = sql.Query("drop_bound_jobs")
	boundNow      = query[Bound]("bound_now")
)

func boundRows(plan cluster.Plan) []boundRow {
	rows := make([]boundRow, 0, len(plan.Bound))
	for _, b := range plan.Bound {
		rows = append(rows, boundRow{Job: b.Job, Way: b.Way, Pool: b.Pool, GPUs: b.GPUs, Since: stamp(b.Since), Until: stamp(b.Until)})
	}
	return rows
}

// Bound is a running job whose GPUs cannot be taken back soon.
type Bound struct {
	Job     cluster.JobKey   `json:"job" db:"job_key"`
	SlurmID string           `json:"slurm_id" db:"slurm_id"`
	Name    string           `json:"name"`
	Tenant  string           `json:"tenant"` // "" = none
	User    string           `json:"user" db:"user_name"`
	Way     cluster.Way      `json:"way"`
	Pool    string           `json:"pool"`
	GPUs    cluster.GPUCount `json:"gpus" db:"gpus"`
	Since   time.Time        `json:"since,omitzero" db:"since_at"`
	Until   *time.Time       `json:"until" db:"until_at"` // its end at the latest, or when it can be stopped; nil = unknown
	Beyond  cluster.MicroGPU `json:"beyond_micro_gpus" db:"beyond_gpus"`
}

// Bound gives the running jobs whose GPUs cannot be taken back soon, by tenant and pool, the longest bound first.
func (s Jobs) Bound(ctx context.Context) ([]Bound, error) {
	return collect[Bound](ctx, s.base, "reading the GPUs that cannot be taken back", boundNow)
}
