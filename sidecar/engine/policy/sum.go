package policy

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// total takes an answer with the maximum Σ gain_m·throughput_m that leaves no useful GPU idle,
// however little it gains. With SLOs, it meets as many as possible.
func (d *division) total(gain []float64) error {
	if d.in.plain() && !d.in.slo {
		return d.sell(func(m, j int) float64 { return gain[m] * d.in.p.Jobs[m].Speed[j] })
	}
	v := d.solve(d.in.space(nil), nil)
	if err := v.deadlines(); err != nil {
		return err
	}
	return v.total(gain)
}

// sell takes an answer with the maximum sum of the jobs' worth on models, as a whole and alone,
// by prices. The rest goes where it maximises the sum of all throughputs, each relative to that
// on the job's fastest model, and trifles go to the first.
func (d *division) sell(worth func(m, model int) float64) error {
	return d.lot().sell(worth)
}

// lot is the rest for sale, and the sold parts.
type lot struct {
	d    *division
	time []float64 // that each job has left
	gpus []float64 // left of each model
	x    []float64 // sold: the part of the time of job m on model j, at m·k+j
}

// lot is all time of all jobs, and all GPUs.
func (d *division) lot() *lot {
	n, k := len(d.in.p.Jobs), len(d.in.p.Models)
	l := &lot{d: d, time: slices.Repeat([]float64{1}, n), x: make([]float64, n*k)}
	for _, m := range d.in.p.Models {
		l.gpus = append(l.gpus, m.GPUs)
	}
	return l
}

// sell sells all, and takes that for the answer.
func (l *lot) sell(worth func(m, model int) float64) error {
	d := l.d
	if err := l.auction(worth); err != nil {
		return err
	}
	if err := l.auction(func(m, j int) float64 { return d.in.p.Jobs[m].Speed[j] / d.in.top[m] }); err != nil {
		return err
	}
	for m := range d.in.p.Jobs {
		if parts, more, _ := l.solo(m); more > 0 {
			l.take(m, parts)
		}
	}
	jobs := make([]int, len(d.in.p.Jobs))
	for m := range jobs {
		jobs[m] = m
	}
	d.takeX(l.x, jobs)
	return nil
}

// auction sells what is left for the largest sum of what it is worth. Less than a grain of time or of a model is
// nothing.
func (l *lot) auction(worth func(m, model int) float64) error {
	var in price.Instance
	var models, jobs []int
	for j, n := range l.gpus {
		if n > l.d.in.p.Models[j].GPUs/grain {
			models, in.GPUs = append(models, j), append(in.GPUs, n)
		}
	}
	for m, time := range l.time {
		if time <= 1/grain || !slices.ContainsFunc(models, func(j int) bool { return worth(m, j) > 0 }) {
			continue
		}
		jobs = append(jobs, m)
		in.Gang = append(in.Gang, float64(l.d.in.p.Jobs[m].Gang)*time)
		for _, j := range models {
			in.Speed = append(in.Speed, worth(m, j)*time)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	a, err := price.Total(in)
	if err != nil {
		return err
	}
	time := slices.Clone(l.time)
	for i, part := range a.X {
		m := jobs[i/len(models)]
		l.give(m, models[i%len(models)], part*time[m])
	}
	return nil
}

// take gives a job fractions of its time on each model.
func (l *lot) take(m int, parts []float64) {
	for j, part := range parts {
		l.give(m, j, part)
	}
}

// give gives a job a part of its time on a model.
func (l *lot) give(m, model int, part float64) {
	l.x[m*len(l.gpus)+model] += part
	l.time[m] = max(0, l.time[m]-part)
	l.gpus[model] = max(0, l.gpus[model]-part*float64(l.d.in.p.Jobs[m].Gang))
}

// solo gives the parts of a job's time on each model, and its throughput with them, if it has all that it can use of
// what is left: its fastest models first. It is sure if there is no other way to as much.
func (l *lot) solo(m int) (parts []float64, throughput float64, sure bool) {
	j := &l.d.in.p.Jobs[m]
	order := make([]int, 0, len(j.Speed))
	for i, v := range j.Speed {
		if v > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(j.Speed[b], j.Speed[a]) })
	parts, sure = make([]float64, len(j.Speed)), true
	time := l.time[m]
	for at, i := range order {
		all := l.gpus[i] / float64(j.Gang)
		part := min(time, all)
		if at > 0 && j.Speed[order[at-1]] == j.Speed[i] && part < all && (part > 0 || parts[order[at-1]] > 0) {
			sure = false // part of an equally fast one
		}
		parts[i] = part
		throughput += part * j.Speed[i]
		time -= part
	}
	return parts, throughput, sure
}
