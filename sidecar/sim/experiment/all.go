package experiment

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Progress reports the progress of all runs together: ended jobs, of how many. Several goroutines
// call it, one at a time.
type Progress func(over, of int)

// task is a run of All: of a setup itself, or of a tenant's private fleet.
type task struct {
	setup  *Setup
	jobs   int
	result Result
	err    error
	ran    bool
}

// All runs setups side by side, at most workers at a time (0 = number of cores), with their
// audits. The results have the order of the setups. When ctx ends, current runs are cut short,
// and results of runs that had not begun are empty, with Scheduler "". The error is that of the
// first setup with one.
func All(ctx context.Context, setups []Setup, workers int, progress Progress) ([]Result, error) {
	tasks, privates := plan(setups)
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	told := tally(tasks, progress)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(workers, len(tasks)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(tasks) || ctx.Err() != nil {
					return
				}
				t := &tasks[i]
				t.result, t.err = Run(ctx, *t.setup, told(i))
				if t.ran = true; t.err != nil {
					stop()
				}
			}
		})
	}
	wg.Wait()
	return gather(setups, tasks, privates)
}

// plan lists the runs: the setups, then the private runs of each.
func plan(setups []Setup) ([]task, [][]private) {
	var tasks []task
	for i := range setups {
		tasks = append(tasks, task{setup: &setups[i], jobs: Survey(setups[i].Load).Jobs})
	}
	privates := make([][]private, len(setups))
	for i := range setups {
		if !setups[i].Audit {
			continue
		}
		privates[i] = setups[i].privates()
		for k := range privates[i] {
			p := &privates[i][k].setup
			p.Audit = true // to keep its jobs
			tasks = append(tasks, task{setup: p, jobs: Survey(p.Load).Jobs})
		}
	}
	return tasks, privates
}

// tally gives for each task the function to call as its jobs end.
func tally(tasks []task, progress Progress) func(i int) func(int) {
	if progress == nil {
		return func(int) func(int) { return nil }
	}
	of, over := 0, 0
	for i := range tasks {
		of += tasks[i].jobs
	}
	var lock sync.Mutex
	return func(int) func(int) {
		before := 0
		return func(now int) {
			lock.Lock()
			defer lock.Unlock()
			over += now - before
			before = now
			progress(over, of)
		}
	}
}

// gather assembles the results.
func gather(setups []Setup, tasks []task, privates [][]private) ([]Result, error) {
	for i := range tasks {
		if tasks[i].err != nil {
			return nil, tasks[i].err
		}
	}
	out := make([]Result, len(setups))
	at := len(setups)
	for i := range setups {
		out[i] = tasks[i].result
		alone := make([]Result, len(privates[i]))
		whole := tasks[i].ran && !out[i].CutShort
		for k := range alone {
			alone[k] = tasks[at].result
			whole = whole && tasks[at].ran && !alone[k].CutShort
			at++
		}
		if whole && setups[i].Audit {
			out[i].Audit = audit(&setups[i], out[i], privates[i], alone)
		}
		out[i].jobs = nil
	}
	return out, nil
}
