package trace

import (
	"errors"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// readHelios reads cluster_log.csv of the Helios traces.
func readHelios(t *table, c *collector) (*Trace, error) {
	if err := t.header(); err != nil {
		return nil, err
	}
	if err := t.needs("job_id", "user", "vc", "gpu_num", "submit_time", "start_time", "end_time"); err != nil {
		return nil, err
	}
	at := in(c.opts.zone())
	err := t.each(c, func() error {
		j := Job{ID: t.get("job_id"), Tenant: t.get("vc"), User: t.get("user"), Outcome: outcomeOf(t.get("state"))}
		var errs [7]error
		var start, end cluster.Span
		j.GPUs, errs[0] = must(t, "gpu_num", count)
		j.CPUs, errs[1] = value(t, "cpu_num", count)
		j.Nodes, errs[2] = value(t, "node_num", count)
		j.Submit, errs[3] = must(t, "submit_time", at)
		start, errs[4] = value(t, "start_time", at)
		end, errs[5] = value(t, "end_time", at)
		j.Runs, errs[6] = value(t, "duration", seconds)
		if err := first(errs[:]); err != nil {
			return err
		}
		if start > 0 && end > 0 {
			span, err := ran(start, end)
			if err != nil {
				return err
			}
			if !t.has("duration") {
				j.Runs = span
			}
		} else if j.Runs > 0 {
			return errors.New("a duration without start_time or end_time")
		}
		c.keep(j, note{}, t.name, t.line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.finish(true), nil
}

// in gives a parser of moments in a zone.
func in(zone *time.Location) func(string) (cluster.Span, error) {
	return func(s string) (cluster.Span, error) { return moment(s, zone) }
}
