package field

import (
	"cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/market"
)

// Together returns until when a waiting job takes only its fewest nodes of a pool, and until when only such under as few switches as they need: it is
// known to be slower on others, and waits for at most as long as that would cost it. The wait counts from when it could first have begun. If it has
// GPUs then, it loses at most twice what it would have lost had it known when such nodes become free (the ski-rental problem; Karlin et al.,
// Algorithmica 1988). 0 = it takes any nodes.
func Together(f *Field, i, pool int) (nodes, switches cluster.Instant) {
	since := cmp.Or(f.In.Records[i].Together, f.In.Now)
	if wait, _ := Scatters(f, i, pool); wait > 0 && f.Found.Together(f.Shape(i), pool) {
		nodes = since.Add(wait)
	}
	if part, known := market.AcrossSwitches(f.Market, i, pool); known && part < 1 && f.Found.Near(f.Shape(i), pool) {
		switches = since.Add(loss(f, i, part))
	}
	return nodes, switches
}

// Scatters returns the time that a waiting job would lose on more nodes of a pool than it needs, by what is known of its type and of the GPU
// time that it still needs: at most ScatterWait. false = it is not known.
func Scatters(f *Field, i, pool int) (wait cluster.Span, known bool) {
	part, known := market.Scattered(f.Market, i, pool)
	if !known || part >= 1 {
		return 0, known
	}
	return loss(f, i, part), true
}

// loss returns the time that a waiting job would lose at a part of its speed, at most ScatterWait.
func loss(f *Field, i int, part float64) cluster.Span {
	left := float64(f.Stops.Needs(i)) / float64(f.Can[i].GPUs.Devices()) * float64(cluster.Second)
	if limit := f.In.Limit(i); limit > 0 {
		left = min(left, float64(limit))
	}
	return cluster.Span(min((1/part-1)*left, float64(f.In.Settings.ScatterWait)))
}

// gathers returns the move of a running job to its fewest nodes of the same pool when its lease ends, with the shape of its request; nil = it is
// on them, is not known to be slower on more, or the move does not pay within a term: (1/part - 1) · min(term, time left) > cost of a stop + 1 min.
func gathers(f *Field, i int, l *cluster.Lease) (better []lease.Better, shape int) {
	pool := f.In.Pool(l.Pool)
	if f.In.Settings.ScatterWait == 0 || len(l.Nodes) < 2 || pool < 0 || f.In.Cases[i].Control != cluster.FullControl || !l.Size.IsWhole() {
		return nil, 0
	}
	gpus := cluster.SizeHeld(l.Nodes).Devices
	part, known := market.Scattered(f.Market, i, pool)
	if !known || part >= 1 || len(l.Nodes) <= f.Site.Fewest(pool, gpus) {
		return nil, 0
	}
	left := min(float64(f.In.Settings.Term), float64(f.Stops.Needs(i))/float64(gpus)*float64(cluster.Second))
	if limit := f.In.Limit(i); limit > 0 {
		left = min(left, float64(limit-l.End.Sub(f.In.Snapshot.Cases[i].Job.Start)))
	}
	stop := f.Stops.Stop(i)
	gain := cluster.Span((1/part-1)*left) - stop.Cost(l.End, f.In.Settings.Notice) - cluster.Minute
	if shape = f.Site.Shape(f.Spec(i)); gain <= 0 || !f.Found.Together(shape, pool) {
		return nil, 0
	}
	return []lease.Better{{Pool: pool, Gain: gain}}, shape
}
