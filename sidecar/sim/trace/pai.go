package trace

import (
	"errors"
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The columns of Alibaba's two tables, whose files have no header.
var (
	paiJobColumns  = []string{"job_name", "inst_id", "user", "status", "start_time", "end_time"}
	paiTaskColumns = []string{"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"}
)

// paiJob combines a job's row in the job table with its tasks.
type paiJob struct {
	job             Job
	line            int
	tasks           int
	percent         float64 // of GPUs, over all instances
	cpuPercent, mem float64
	first, last     cluster.Span // of the tasks with GPUs; 0 = not told
	mixed           bool         // more than one GPU model
	broken          int          // line of an invalid task
}

// readPAI joins the job table and the task table on job_name.
func readPAI(jobs, tasks *table, c *collector) (*Trace, error) {
	var all []paiJob
	byName := map[string]int{}
	err := paiRows(jobs, paiJobColumns, c, func() error {
		name := jobs.get("job_name")
		submit, err := must(jobs, "start_time", sinceZero)
		if err != nil {
			return err
		}
		if name == "" {
			return errors.New("no job_name")
		}
		if i, twice := byName[name]; twice {
			return fmt.Errorf("job %.80s is on line %d already", name, all[i].line)
		}
		user := c.once(jobs.get("user"))
		byName[name] = len(all)
		all = append(all, paiJob{line: jobs.line, job: Job{
			ID: name, Tenant: user, User: user, Submit: submit, Outcome: outcomeOf(jobs.get("status"))}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = paiRows(tasks, paiTaskColumns, c, func() error {
		i, ok := byName[tasks.get("job_name")]
		if !ok {
			return fmt.Errorf("job %.80s of task %.80s is not in %s", tasks.get("job_name"), tasks.get("task_name"), jobs.name)
		}
		if err := all[i].task(tasks, c); err != nil {
			all[i].broken = tasks.line
			return err
		}
		c.joined()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].keep(c, jobs.name, tasks.name)
	}
	return c.finish(true), nil
}

// paiRows reads a table; it skips a header, which some copies have.
func paiRows(t *table, columns []string, c *collector, f func() error) error {
	t.columns, t.width = map[string]int{}, len(columns)
	for i, col := range columns {
		t.columns[col] = i
	}
	return t.each(c, func() error {
		if t.line == 1 && t.get("job_name") == "job_name" {
			c.trace.Counts.Rows-- // not a row
			return nil
		}
		return f()
	})
}

// sinceZero reads seconds since the trace's hidden zero.
func sinceZero(s string) (cluster.Span, error) { return seconds(s) }

// task adds a row of the task table.
func (p *paiJob) task(t *table, c *collector) error {
	var errs [6]error
	instances, err := must(t, "inst_num", count)
	errs[0] = err
	gpu, err := value(t, "plan_gpu", amount)
	errs[1] = err
	cpu, err := value(t, "plan_cpu", amount)
	errs[2] = err
	mem, err := value(t, "plan_mem", amount)
	errs[3] = err
	start, err := value(t, "start_time", sinceZero)
	errs[4] = err
	end, err := value(t, "end_time", sinceZero)
	errs[5] = err
	if err := first(errs[:]); err != nil {
		return err
	}
	timed := !none(t.get("start_time")) && !none(t.get("end_time"))
	if timed {
		if _, err := ran(start, end); err != nil {
			return err
		}
	}
	p.tasks++
	p.cpuPercent += cpu * float64(instances)
	p.mem += mem * float64(instances)
	if gpu == 0 || instances == 0 {
		return nil // a parameter server, say: it holds no GPU
	}
	model := c.once(t.get("gpu_type"))
	p.mixed = p.mixed || p.percent > 0 && model != p.job.Model
	p.job.Model = model
	p.percent += gpu * float64(instances)
	if timed {
		if p.last == 0 || start < p.first {
			p.first = start
		}
		p.last = max(p.last, end)
	}
	return nil
}

// keep makes the job. Shares of a GPU are summed over all instances and rounded up: the job's own
// instances may share GPUs, those of two jobs do not.
func (p *paiJob) keep(c *collector, file, taskFile string) {
	if p.broken > 0 {
		c.bad(file, p.line, "job %.80s: its task on line %d of %s makes no sense", p.job.ID, p.broken, taskFile)
		return
	}
	if p.tasks == 0 {
		c.trace.Counts.NoRun++
		return
	}
	j := p.job
	j.GPUs = int(min(math.Ceil(p.percent/100-1e-9), 2*mostGPUs))
	if p.percent > 0 {
		j.GPUs = max(j.GPUs, 1)
	}
	j.CPUs = int(min(math.Ceil(p.cpuPercent/100-1e-9), mostCount))
	j.MemoryMB = int64(math.Ceil(min(p.mem, 1e15)*1024 - 1e-6))
	j.Runs = p.last - p.first
	if p.mixed {
		j.Model = ""
	}
	c.keep(j, note{rounded: math.Abs(float64(j.GPUs)*100-p.percent) > 1e-6}, file, p.line)
}
