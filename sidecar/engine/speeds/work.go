package speeds

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
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
	gang := max(x.found.Wants(i).Devices(), 1)
	speeds, rates := x.Speedups(i), x.Types.Speedups(x.Types.At(i, gang))
	fastest, slowest, base := 0.0, 0.0, 0.0 // base: steps/s on the reference model
	for p, r := range rates {
		fastest = max(fastest, speeds[p].Value)
		if r.Rate > 0 && (slowest == 0 || r.Rate < slowest) {
			slowest, base = r.Rate, r.Rate/speeds[p].Value
		}
	}
	seconds := float64(max(left, cluster.Minute)) / float64(cluster.Second) * cmp.Or(fastest, 1)
	if steps, estimated := profile.Remaining(x.paceOf(i), x.Total[i], left, slowest); !estimated && base > 0 {
		seconds = max(steps/base, 1)
	}
	return seconds * float64(gang)
}

// Speedups returns, by pool, a job's speed relative to the reference model; 1 = unknown.
func (x *Speeds) Speedups(i int) []profile.Speedup { return x.Types.Speedups(x.Types.Of(i)) }

// Priced returns, by pool, a job's speed as prices of trades may count it; nil = as Speedups.
func (x *Speeds) Priced(i int) []profile.Speedup { return x.Types.Priced(x.Types.Of(i)) }

// paceOf returns what is remembered of a job that reports; nil = it reports nothing.
func (x *Speeds) paceOf(i int) *cluster.Pace {
	if x.paceAt == nil { // cases and paces are both by key
		x.paces, x.paceAt = x.Book.Paces(), slices.Repeat([]int32{-1}, len(x.in.Records))
		c := 0
		for k := range x.paces {
			for c < len(x.in.Records) && x.in.Records[c].Key < x.paces[k].Key {
				c++
			}
			if c < len(x.in.Records) && x.in.Records[c].Key == x.paces[k].Key {
				x.paceAt[c] = int32(k)
			}
		}
	}
	if at := x.paceAt[i]; at >= 0 {
		return &x.paces[at]
	}
	return nil
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
