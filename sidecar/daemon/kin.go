package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ErrStranger is in errors of a Slurm that has the name of the journal's cluster, and is another one.
var ErrStranger = errors.New("this Slurm is not the journal's cluster")

// A cluster's name is not its identity: two clusters may share one, and Slurm before 25.11 gives no number. Jobs tell.
// Of a job in both Slurm and the journal, id, user and second of submission agree, and no other cluster has such a job.
// Slurm has no running or waiting job that the journal lacks if it was submitted well before the newest round.

const (
	// strangers is how many jobs that the journal should know, and does not, prove another cluster. Where it knows any, none do.
	strangers = 3
	// probeEvery is how often a standby looks at Slurm until it knows its cluster.
	probeEvery = 30 * time.Second
	// settled is how long before a round a job was submitted that the round had to see, with clocks that agree.
	settled = cluster.Span(2 * clocksApart / time.Millisecond)
)

// kin is the knowledge whether Slurm is the journal's cluster.
type kin struct {
	sure   bool      // it is
	not    error     // it is another one
	probed time.Time // when a standby last looked
}

// meet compares the jobs of a look with the records of the journal's newest round, which was made at at. known is how many
// jobs both have; strange is how many the journal lacks although it should have them.
func meet(seen *cluster.Observation, records []cluster.Record, at cluster.Instant) (known, strange int) {
	type job struct {
		id     cluster.JobID
		user   string
		submit cluster.Instant
	}
	recorded := make(map[job]bool, len(records))
	for i := range records {
		r := &records[i]
		recorded[job{r.ID, r.User, r.Submit}] = true
	}
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		switch {
		case recorded[job{j.ID, j.User, j.Submit}]:
			known++
		case (j.State == cluster.Waiting || j.State == cluster.Running) && j.Restarts == 0 && j.Submit < at.Add(-settled):
			strange++
		}
	}
	return known, strange
}

// recognise decides from a look whether Slurm is the journal's cluster, unless that is known or cannot be told. It fails with
// ErrStranger if it is another one.
func (c *candidate) recognise(ctx context.Context, seen *cluster.Observation) error {
	if c.kin.sure {
		return nil
	}
	is := seen.Identity()
	of, records, at, err := c.store.Known(ctx)
	if err != nil {
		return err
	}
	known, strange := meet(seen, records, at)
	switch {
	case known > 0 || of.ID != 0 && of.ID == is.ID:
		c.kin = kin{sure: true}
	case strange >= strangers:
		c.kin.not = fmt.Errorf("%w: the journal of cluster %v knows none of the %d jobs that wait or run here and were submitted before its newest round (%s); "+
			"this daemon has no effect. Give this cluster a journal of its own: set database.schema and run fairlease migrate", ErrStranger, is, strange, at.Time().UTC().Format(time.RFC3339))
		return c.kin.not
	default:
		c.kin.not = nil
	}
	return nil
}

// probe looks at Slurm, read-only, until this daemon knows whether it is the journal's cluster. While Slurm is away, or has no
// job that tells, that stays unknown.
func (c *candidate) probe(ctx context.Context) error {
	if c.kin.sure {
		return nil
	}
	if c.look == nil {
		c.kin.sure = true
		return nil
	}
	if !c.kin.probed.IsZero() && time.Since(c.kin.probed) < probeEvery {
		return c.kin.not
	}
	c.kin.probed = time.Now()
	seen, err := c.look(ctx)
	if err != nil {
		return c.kin.not
	}
	if err := c.claim(ctx, seen.Identity()); err != nil {
		return err
	}
	return c.recognise(ctx, &seen)
}
