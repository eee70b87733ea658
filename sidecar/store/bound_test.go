package store_test

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The journal's bound jobs are those of the newest round, also after restarts.
func TestBoundJobs(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 6, 30)
	story.Term, story.Notice = 3*cluster.Minute, 25*cluster.Second
	l := newLife(t, store.Config{}, story)
	type row struct {
		Job   int64
		Way   string
		Pool  string
		GPUs  cluster.GPUCount
		Since time.Time
		Until *time.Time
	}
	most, changed := 0, false
	for i := range 60 {
		_, plan := l.round()
		want := []row{}
		for _, b := range plan.Bound {
			r := row{int64(b.Job), string(b.Way), b.Pool, b.GPUs, b.Since.Time(), nil}
			if b.Until > 0 {
				at := b.Until.Time()
				r.Until = &at
			}
			want = append(want, r)
		}
		same(l, "the bound jobs", want, "select job_key, way, pool, gpus, since_at at time zone 'UTC', until_at at time zone 'UTC' from fairlease.bound_jobs order by 1")
		changed = changed || len(want) < most
		most = max(most, len(want))
		if i%7 == 6 {
			l.restart()
		}
	}
	if most < 5 || !changed {
		t.Fatalf("at most %d jobs are bound, and they change: %v", most, changed)
	}
}
