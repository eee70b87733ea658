package slurm_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func arrays(l *live) {
	array := l.submit("alice", sleeper, "--array=0-4,11-19:2%3", "--gres=gpu:1", "--begin=now+1hour")
	tasks := func() (out []cluster.Job) {
		for _, j := range l.see().Jobs {
			if j.ID.ID == array {
				out = append(out, j)
			}
		}
		return out
	}
	all := tasks()
	var names []string
	inactive := 0
	for _, j := range all {
		names = append(names, j.ID.String()[len(strconv.FormatInt(array, 10)):])
		if j.Inactive == "array limit" {
			inactive++
		}
		if !j.UnsplitArray || j.Record != array || j.State != cluster.Waiting || j.Request.Size.Devices != 1 {
			l.Errorf("task: %+v", j)
		}
	}
	if want := []string{"_0", "_1", "_2", "_3", "_4", "_11", "_13", "_15", "_17", "_19"}; !slices.Equal(names, want) || inactive != 7 {
		l.Errorf("tasks %q, %d over the limit; want %q, 7", names, inactive, want)
	}
	// One gate for the whole record.
	gate := act(cluster.Gate, all[0])
	gate.Array, gate.Until = true, in1h()+60_000
	l.apply(gate)
	for _, j := range tasks() {
		if j.Eligible != gate.Until {
			l.Errorf("gate of the whole array: %v", j.Eligible)
		}
	}
	// A gate for one task.
	gate = act(cluster.Gate, all[1])
	gate.Until = in1h() + 120_000
	l.apply(gate)
	if j := l.until(all[1].ID, "split off", func(j cluster.Job) bool { return !j.UnsplitArray }); j.Eligible != gate.Until || j.Record == array {
		l.Errorf("task gated alone: %+v", j)
	}
	// A grant for one task that has no record of its own yet, and for one that has.
	for _, i := range []int{5, 1} {
		j, _ := find(l.see(), all[i].ID)
		g := act(cluster.Grant, j)
		g.Nodes, g.Limit = []string{"v2"}, 5*cluster.Minute
		l.apply(g)
		j = l.until(all[i].ID, "running", in(cluster.Running))
		if j.UnsplitArray || j.Record == array || j.Holds[0].Node != "v2" || j.Limit != 5*cluster.Minute {
			l.Errorf("granted task: %+v", j)
		}
	}
	// Several tasks at once get a record each.
	var several []cluster.Action
	for _, i := range []int{6, 7, 8} {
		j, _ := find(l.see(), all[i].ID)
		g := act(cluster.Open, j)
		g.Until = in1h()
		several = append(several, g)
	}
	l.apply(several...)
	records := map[int64]bool{array: true}
	for _, a := range several {
		j := l.until(a.ID, "split off", func(j cluster.Job) bool { return !j.UnsplitArray })
		if records[j.Record] || j.State != cluster.Waiting || j.Eligible != a.Until {
			l.Errorf("task opened among others: %+v", j)
		}
		records[j.Record] = true
	}
	waiting, active := 0, 0
	for _, j := range tasks() {
		if j.State == cluster.Waiting {
			waiting++
			if j.Inactive == "" {
				active++
			}
		}
	}
	if waiting != 8 || active != 1 {
		l.Errorf("%d tasks wait, %d may run; want 8 and 1 (limit 3, 2 run)", waiting, active)
	}
	// Reclaiming one task leaves the other tasks alone.
	victim, _ := find(l.see(), all[5].ID)
	r := act(cluster.Reclaim, victim)
	r.Until = in1h()
	l.apply(r)
	l.until(all[5].ID, "waiting", in(cluster.Waiting))
	if j, _ := find(l.see(), all[1].ID); j.State != cluster.Running || j.Restarts != 0 {
		l.Errorf("brother of the reclaimed task: %+v", j)
	}

	// The last task keeps the array's own id: reclaiming it must not requeue the others.
	pair := l.submit("bob", sleeper, "--array=1-2", "--gres=gpu:1")
	first, last := cluster.TaskID(pair, 1), cluster.TaskID(pair, 2)
	l.until(first, "running", in(cluster.Running))
	j := l.until(last, "running", in(cluster.Running))
	if other, _ := find(l.see(), first); j.Record != pair && other.Record != pair {
		l.Errorf("neither task has the array's id: %d %d", j.Record, other.Record)
	} else if other.Record == pair {
		j, first, last = other, last, first
	}
	r = act(cluster.Reclaim, j)
	r.Until = in1h()
	l.apply(r)
	if j, _ := find(l.see(), first); j.State != cluster.Running || j.Restarts != 0 {
		l.Errorf("brother of the reclaimed last task: %+v", j)
	}
	l.until(last, "waiting behind its gate", func(j cluster.Job) bool { return j.State == cluster.Waiting && l.gated(j, r) })

	// Slurm truncates long irregular lists of tasks.
	var irregular []string
	for i := range 80 {
		irregular = append(irregular, strconv.Itoa(i*i%997))
	}
	slices.Sort(irregular)
	irregular = slices.Compact(irregular)
	long := l.submit("carol", sleeper, "--array="+strings.Join(irregular, ","), "--gres=gpu:1", "--begin=now+1hour")
	n := 0
	for _, j := range l.see().Jobs {
		if j.ID.ID == long {
			n++
		}
	}
	if n != len(irregular) {
		l.Errorf("%d of %d tasks of an irregular array are seen", n, len(irregular))
	}
	l.exec("carol", "scancel", strconv.FormatInt(long, 10))
	for _, j := range l.see().Jobs {
		if j.ID.ID == long && j.State != cluster.Done {
			l.Errorf("cancelled array: %+v", j)
		}
	}
}
