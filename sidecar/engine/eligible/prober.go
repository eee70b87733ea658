package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// prober finds the pools that could ever serve a job: on the healthy, empty cluster, with or without its
// reservations.
type prober struct {
	gpus  []string        // models, by pool
	now   cluster.Instant // matters to reservations only
	board *place.Board
	known [][]int // by shape; nil = not computed yet
}

// newProber returns a prober for a site.
func newProber(site *place.Site, pools []string, now cluster.Instant, v place.View) *prober {
	return &prober{gpus: slices.Clone(pools), now: now, board: site.Board(v)}
}

// Pools returns the pools that could serve a shape, in order. model is the GPU model that the job names, or
// "".
func (p *prober) Pools(shape int, model string) []int {
	for shape >= len(p.known) {
		p.known = append(p.known, nil)
	}
	if p.known[shape] == nil {
		p.known[shape] = []int{}
		for k, pool := range p.gpus {
			if model != "" && model != pool {
				continue
			}
			if _, ok := p.board.Fit(place.Ask{Shape: shape, Pool: k, Now: p.now, Max: -1}); ok {
				p.known[shape] = append(p.known[shape], k)
			}
		}
	}
	return p.known[shape]
}
