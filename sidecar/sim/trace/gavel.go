package trace

import (
	"errors"
	"fmt"
)

// GavelReference is the model of Gavel's run times (§7.1).
const GavelReference = "v100"

// readGavel reads the jobs that Gavel's simulator draws: job, job_type, scale_factor, steps and
// unit_arrival, in units of the mean time between two arrivals. The table converts steps to a
// time on the reference model.
func readGavel(t *table, c *collector) (*Trace, error) {
	o := &c.opts
	if o.Throughputs == nil || !(o.PerHour > 0) || o.PerHour > 1e9 {
		return nil, fmt.Errorf("%s: jobs in steps, at no known rate: a table of throughputs and how many jobs arrive in an hour are needed", t.name)
	}
	if err := t.header(); err != nil {
		return nil, err
	}
	if err := t.needs("job", "job_type", "scale_factor", "steps", "unit_arrival"); err != nil {
		return nil, err
	}
	err := t.each(c, func() error {
		j := Job{ID: t.get("job"), Tenant: gavelTenant, Kind: t.get("job_type"), Outcome: Completed}
		var errs [3]error
		var steps float64
		j.GPUs, errs[0] = must(t, "scale_factor", count)
		steps, errs[1] = must(t, "steps", amount)
		units, err := must(t, "unit_arrival", amount)
		errs[2] = err
		if err := first(errs[:]); err != nil {
			return err
		}
		rate := o.Throughputs.Alone(GavelReference, Task{j.Kind, j.GPUs}, false)
		if rate == 0 {
			return fmt.Errorf("the table has no %s on %s", Task{j.Kind, j.GPUs}, GavelReference)
		}
		if j.Submit, err = spanOf(units * 3600 / o.PerHour); err != nil {
			return fmt.Errorf("unit_arrival: %w", err)
		}
		if j.Runs, err = spanOf(steps / rate); err != nil {
			return fmt.Errorf("steps: %w", err)
		}
		c.keep(j, note{}, t.name, t.line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.finish(false), nil
}

// gavelTenant is the tenant of Gavel's jobs, since the paper has none.
const gavelTenant = "all"

// errNoGang is the error of a recipe whose table lacks a size.
var errNoGang = errors.New("no kind of the recipe runs on so many GPUs in its table")

// kindsFor gives the kinds of a recipe that its table has for a gang.
func (r *Recipe) kindsFor(gpus int) []string {
	if r.Table == nil {
		return r.Kinds
	}
	var out []string
	for _, k := range r.Kinds {
		if r.Table.Alone(GavelReference, Task{k, gpus}, false) > 0 {
			out = append(out, k)
		}
	}
	return out
}

// checkTable reports a size that no kind has.
func (r *Recipe) checkTable() error {
	for _, s := range r.Sizes {
		if r.Table != nil && s.Share > 0 && len(r.kindsFor(s.GPUs)) == 0 {
			return fmt.Errorf("a size of %d GPUs: %w", s.GPUs, errNoGang)
		}
	}
	return nil
}
