package trace

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// SacctCommand is a shell command for the history of four weeks with all columns that are read, in the default zone.
const SacctCommand = "TZ=UTC sacct -a -D -X -P -S now-28days -E now -o " +
	"JobID,User,Account,State,Restarts,Submit,Start,End,ElapsedRaw,TimelimitRaw,AllocTRES,ReqTRES,JobName"

// readSacct reads the output of sacct -P (or -p), with any sufficient columns.
func readSacct(t *table, c *collector) (*Trace, error) {
	if err := t.header(); err != nil {
		return nil, err
	}
	lacks := ""
	switch {
	case !t.has("jobid") && !t.has("jobidraw"):
		lacks = "a column JobID"
	case !t.has("submit"):
		lacks = "a column Submit"
	case !t.has("account") && !t.has("user"):
		lacks = "a column Account or User"
	case !t.has("alloctres") && !t.has("reqtres"):
		lacks = "a column with the GPUs (AllocTRES or ReqTRES)"
	case !t.has("elapsedraw") && !t.has("elapsed") && (!t.has("start") || !t.has("end")):
		lacks = "a column with the run time (ElapsedRaw, Elapsed, or Start and End)"
	}
	if lacks != "" {
		return nil, fmt.Errorf("%s: line %d: the header lacks %s: run %s", t.name, t.line, lacks, SacctCommand)
	}
	var all []attempt
	err := t.each(c, func() error {
		a, step, err := sacctRow(t, c)
		switch {
		case err != nil:
			return err
		case step:
			c.joined()
		default:
			all = append(all, a)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	join(all, c, t.name)
	return c.finish(true), nil
}

// sacctRow reads one row; step = it is only a part of a job.
func sacctRow(t *table, c *collector) (a attempt, step bool, err error) {
	a = attempt{restarts: -1, line: t.line}
	j := &a.job
	if j.ID = t.get("jobid"); j.ID == "" {
		j.ID = t.get("jobidraw")
	}
	if j.ID == "" || j.ID[0] < '0' || j.ID[0] > '9' {
		return a, false, fmt.Errorf("job id %.80q is no number", j.ID)
	}
	if strings.Contains(j.ID, ".") {
		return a, true, nil // 123.batch, 123.extern, 123.0
	}
	// sacct truncates long states: CANCELLED+, "CANCELLED by 1001".
	a.state, _, _ = strings.Cut(t.get("state"), " ")
	a.state = strings.ToUpper(strings.TrimSuffix(a.state, "+"))
	j.Name, j.User, j.Tenant = c.once(t.get("jobname")), c.once(t.get("user")), c.once(t.get("account"))

	at := in(c.opts.zone())
	var errs [7]error
	var end cluster.Span
	j.Submit, errs[0] = must(t, "submit", at)
	a.start, errs[1] = value(t, "start", at)
	end, errs[2] = value(t, "end", at)
	j.Limit, errs[3] = limit(t)
	if t.has("restarts") && !none(t.get("restarts")) {
		a.restarts, errs[4] = value(t, "restarts", count)
	}
	// Elapsed has precedence: it excludes suspended time, and clock changes do not affect it.
	switch {
	case t.has("elapsedraw"):
		j.Runs, errs[5] = value(t, "elapsedraw", seconds)
	case t.has("elapsed"):
		j.Runs, errs[5] = value(t, "elapsed", slurmSpan)
	case a.start > 0 && end > 0:
		j.Runs, errs[5] = ran(a.start, end)
	}
	errs[6] = sacctSize(t, j)
	return a, false, first(errs[:])
}

// sacctSize sets the job's allocation, or its request if it never had one.
func sacctSize(t *table, j *Job) error {
	for _, column := range []string{"alloctres", "reqtres"} {
		if none(t.get(column)) {
			continue
		}
		r, err := parseTres(t.get(column))
		if err != nil {
			return fmt.Errorf("%s: %w", column, err)
		}
		r.into(j)
		j.Model = strings.Clone(j.Model) // it is a slice of the line
		return nil
	}
	return nil
}

// limit reads the time limit; none for UNLIMITED and Partition_Limit.
func limit(t *table) (cluster.Span, error) {
	for _, s := range []string{t.get("timelimitraw"), t.get("timelimit")} {
		switch strings.ToUpper(s) {
		case "UNLIMITED", "PARTITION_LIMIT":
			return 0, nil
		}
	}
	if t.has("timelimitraw") {
		minutes, err := value(t, "timelimitraw", seconds)
		return minutes * 60, err
	}
	return value(t, "timelimit", slurmSpan)
}
