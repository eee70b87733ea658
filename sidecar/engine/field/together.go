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
	since := func() cluster.Instant { return cmp.Or(f.In.Records[i].Together, f.In.Now) } // of few jobs: records are large
	if wait, _ := Scatters(f, i, pool); wait > 0 && f.Found.Together(f.Shape(i), pool) {
		nodes = since().Add(wait)
	}
	if part, known := market.Keeps(f.Market, i, pool, cluster.AcrossSwitches); known && part < 1 && f.Found.Near(f.Shape(i), pool) {
		switches = since().Add(loss(f, i, part))
	}
	return nodes, switches
}

// Scatters returns the time that a waiting job would lose on more nodes of a pool than it needs, by what is known of its type and of the GPU
// time that it still needs: at most ScatterWait. false = it is not known.
func Scatters(f *Field, i, pool int) (wait cluster.Span, known bool) {
	part, known := market.Keeps(f.Market, i, pool, cluster.Scattered)
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
// on them, is not known to be slower where it is, or the move does not pay within a term. A scattered job moves to nodes across switches if it is faster
// there, too, and else only to nodes under few switches, as a job across switches does. The cost is that of a stop and a minute.
func gathers(f *Field, i int, l *cluster.Lease) (better []lease.Better, shape int) {
	pool := f.In.Pool(l.Pool)
	if f.In.Settings.ScatterWait == 0 || len(l.Nodes) < 2 || pool < 0 || f.In.Cases[i].Control != cluster.FullControl || !l.Size.IsWhole() {
		return nil, 0
	}
	spread := market.Spread(f.Market, l.Nodes)
	if spread == "" {
		return nil, 0
	}
	here, known := market.Keeps(f.Market, i, pool, spread)
	if !known || here >= 1 {
		return nil, 0
	}
	left := min(float64(f.In.Settings.Term), float64(f.Stops.Needs(i))/float64(cluster.SizeHeld(l.Nodes).Devices)*float64(cluster.Second))
	if limit := f.In.Limit(i); limit > 0 {
		left = min(left, float64(limit-l.End.Sub(f.In.Snapshot.Cases[i].Job.Start)))
	}
	stop := f.Stops.Stop(i)
	cost := stop.Cost(l.End, f.In.Settings.Notice) + cluster.Minute
	across, known := market.Keeps(f.Market, i, pool, cluster.AcrossSwitches)
	if !known {
		across = 1
	}
	shape = f.Site.Shape(f.Spec(i))
	if gain := lease.Gain(min(across, 1)/here, left, cost); gain > 0 && f.Found.Together(shape, pool) {
		return []lease.Better{{Pool: pool, Gain: gain}}, shape
	}
	if gain := lease.Gain(1/here, left, cost); gain > 0 && f.Found.Near(shape, pool) {
		return []lease.Better{{Pool: pool, Near: true, Gain: gain}}, shape
	}
	return nil, 0
}
