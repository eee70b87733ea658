package speeds

import (
	"cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// endless is the assumed run time of a job without a time limit.
const endless = 30 * cluster.Day

// Steps returns a job's remaining work, in GPU-seconds on the reference model of speedups. It uses the declared steps less
// the reported ones, else the rest of the time limit on the fastest model.
func (x *Speeds) Steps(i int) float64 {
	left := x.in.Limit(i)
	if left == 0 {
		left = endless
	}
	if st := &x.in.Cases[i]; st.Runs {
		left -= x.in.Now.Sub(x.in.Snapshot.Cases[i].Job.Start)
	}
	gang := max(x.found.Wants(i), 1)
	speeds, rates := x.Speedups(i), x.types.list[x.types.number(x, runs{x.Kinds[i], gang})-1].known
	fastest, slowest, base := 0.0, 0.0, 0.0 // base: steps/s on the reference model
	for p, r := range rates {
		fastest = max(fastest, speeds[p].Value)
		if r.Rate > 0 && (slowest == 0 || r.Rate < slowest) {
			slowest, base = r.Rate, r.Rate/speeds[p].Value
		}
	}
	seconds := float64(max(left, cluster.Minute)) / float64(cluster.Second) * cmp.Or(fastest, 1)
	if steps, estimated := x.Book.Remaining(x.in.Records[i].Key, x.Total[i], left, slowest); !estimated && base > 0 {
		seconds = max(steps/base, 1)
	}
	return seconds * float64(gang)
}

// Did returns a job's finished work in the unit of Steps: its GPU time at the mean speed of the models that
// it may use.
func (x *Speeds) Did(i int) float64 {
	speeds, sum := x.Speedups(i), 0.0
	for _, p := range x.found.Can[i].May {
		sum += speeds[p].Value
	}
	return float64(x.in.Records[i].Alloc) / float64(cluster.Second) * sum / float64(max(len(x.found.Can[i].May), 1))
}
