package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// prober finds the pools that could ever serve a job: on the healthy, empty cluster, with or without its
// reservations.
type prober struct {
	gpus     []string // models, by pool
	site     *place.Site
	reserved bool            // reservations of others keep jobs off nodes
	now      cluster.Instant // matters to reservations only
	board    *place.Board
	known    [][]int            // by shape; nil = not computed yet
	until    []cluster.Instant  // by shape: when that is out of date, by reservations; 0 = never
	whole    []cluster.MicroGPU // by shape: the GPUs of the nodes that it takes; 0 = those that it asks for
	few      map[fewest]bool    // see together
}

// fewest is the question whether a shape fits on the fewest nodes of a pool; near = under the fewest switches, too.
type fewest struct {
	shape, pool int
	near        bool
}

// newProber returns a prober for a site.
func newProber(site *place.Site, pools []string, v place.View) *prober {
	return &prober{gpus: slices.Clone(pools), site: site, reserved: v.Reserved, board: site.Board(v)}
}

// at sets the moment for which a prober answers. It is kept from round to round.
func (p *prober) at(now cluster.Instant) {
	if now < p.now { // answers may hold later only
		clear(p.known)
		place.Retry(p.board)
	}
	p.now = now
}

// Pools returns the pools that could serve a shape, in order. model is the GPU model that the job names, or
// "".
func (p *prober) Pools(shape int, model string) []int {
	for shape >= len(p.known) {
		p.known, p.until, p.whole = append(p.known, nil), append(p.until, 0), append(p.whole, 0)
	}
	if p.known[shape] != nil && p.until[shape] > 0 && p.until[shape] <= p.now {
		p.known[shape] = nil
		place.Retry(p.board)
	}
	if p.known[shape] == nil {
		p.known[shape] = []int{}
		if p.reserved {
			p.until[shape] = place.Flips(p.site, shape)
		}
		for k, pool := range p.gpus {
			if model != "" && model != pool {
				continue
			}
			if found, ok := p.board.Fit(place.Ask{Shape: shape, Pool: k, Now: p.now, Max: -1}); ok {
				p.known[shape] = append(p.known[shape], k)
				p.whole[shape] = max(p.whole[shape], cluster.SizeHeld(found.Nodes).Amount())
			}
		}
	}
	return p.known[shape]
}

// together reports whether a shape fits on as few nodes of a pool as any job with as many GPUs needs; near = under as few switches as these need.
func (p *prober) together(shape, pool int, near bool) bool {
	of := fewest{shape, pool, near}
	fits, known := p.few[of]
	if !known {
		found, ok := p.board.Fit(place.Ask{Shape: shape, Pool: pool, Now: p.now, Max: -1, Together: true, Near: near})
		fits = ok && len(found.Nodes) == p.site.Fewest(pool, cluster.SizeHeld(found.Nodes).Devices)
		if p.few == nil {
			p.few = map[fewest]bool{}
		}
		p.few[of] = fits
	}
	return fits
}

// counts gives the GPUs that a waiting job counts for: those that it asks for, or all of the nodes that it takes, the smallest that
// would do. Its shape's pools must be known.
func (p *prober) counts(can *round.Eligibility, j *cluster.Job) cluster.MicroGPU {
	if !j.Request.Exclusive {
		return can.GPUs
	}
	return max(can.GPUs, p.whole[can.Shape])
}
