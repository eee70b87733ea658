package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// likeness is how far apart, in the logarithm, the speedups of two kinds are that have
// little to say of each other.
const likeness = 0.35

// point is a kind's known rate on a model, in the logarithm.
type point struct {
	model string
	log   float64
}

// estimate works a single job's rate out: from what other kinds, the site's and the tenant's
// own, gain between the models where this one is known and the one asked for, those of
// like speedups counting more; else, per GPU, from another gang size on that model.
func (b *Book) estimate(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	out := cluster.Profile{Kind: kind, Model: model, Gang: gang, Source: cluster.Estimated}
	own := b.points(kind, gang)
	var logs, weights []float64
	var names []string
	for _, ref := range b.references(kind) {
		target := b.known(ref, "", model, gang)
		if target == nil || target.Rate == 0 {
			continue
		}
		gains, n := 0.0, 0.0 // of this kind over ref on the models where both are known
		var apart []float64
		for _, p := range own {
			if q := b.known(ref, "", p.model, gang); q != nil && q.Rate > 0 {
				d := p.log - math.Log(q.Rate)
				gains, n, apart = gains+d, n+1, append(apart, d)
			}
		}
		if n == 0 {
			continue
		}
		mean, unlike := gains/n, 0.0
		for _, d := range apart {
			unlike += (d - mean) * (d - mean) / n
		}
		logs = append(logs, math.Log(target.Rate)+mean)
		weights = append(weights, math.Exp(-unlike/(2*likeness*likeness)))
		names = append(names, ref.Name())
	}
	if len(logs) > 0 {
		mean, spread := weighed(logs, weights)
		out.Rate, out.Spread, out.Basis = believable(math.Exp(mean)), round(spread), "gains of "+few(names)
		return out, true
	}
	if p := b.otherGang(kind, model, gang); p != nil {
		out.Rate, out.Spread = believable(p.Rate/float64(p.Gang)*float64(gang)), p.Spread
		out.Basis = fmt.Sprintf("its rate on %d of them, per GPU", p.Gang)
		return out, true
	}
	return out, false
}

// points gives where a kind is known to run at a gang size, by model.
func (b *Book) points(kind cluster.Kind, gang int) []point {
	var out []point
	for _, m := range b.models() {
		if p := b.known(kind, "", m, gang); p != nil && p.Rate > 0 {
			out = append(out, point{m, math.Log(p.Rate)})
		}
	}
	return out
}

// otherGang gives what is known of a kind on a model with the gang size nearest to one, of
// two as near the smaller; nil where nothing is.
func (b *Book) otherGang(kind cluster.Kind, model string, gang int) *cluster.Profile {
	var best *cluster.Profile
	least := math.Inf(1)
	for i := range b.entries {
		e := &b.entries[i]
		if e.Kind != kind && string(e.Kind) != kind.Name() || e.With != "" || e.Model != model || e.Gang == gang {
			continue
		}
		p := b.known(kind, "", model, e.Gang)
		apart := math.Abs(math.Log(float64(e.Gang) / float64(gang)))
		if p.Rate > 0 && (apart < least || apart == least && p.Gang < best.Gang) {
			best, least = p, apart
		}
	}
	return best
}

// references gives the kinds from which others are estimated: the site's and the
// tenant's own, without the kind itself and the one that stands for it.
func (b *Book) references(kind cluster.Kind) []cluster.Kind {
	var out []cluster.Kind
	for i := range b.entries {
		k := b.entries[i].Kind
		mine := k.Tenant() == "" && string(k) != kind.Name() || k.Tenant() == kind.Tenant() && k != kind
		if mine && (len(out) == 0 || out[len(out)-1] != k) {
			out = append(out, k)
		}
	}
	return out
}

// models gives the models that the book speaks of, sorted.
func (b *Book) models() []string {
	var out []string
	for i := range b.entries {
		if at, there := slices.BinarySearch(out, b.entries[i].Model); !there {
			out = slices.Insert(out, at, b.entries[i].Model)
		}
	}
	return out
}

// weighed gives a weighted mean and standard deviation.
func weighed(xs, weights []float64) (mean, spread float64) {
	sum := 0.0
	for i, x := range xs {
		mean, sum = mean+weights[i]*x, sum+weights[i]
	}
	if sum == 0 { // everybody is unlike: nobody more than another
		for i := range weights {
			weights[i] = 1
		}
		return weighed(xs, weights)
	}
	mean /= sum
	for i, x := range xs {
		spread += weights[i] * (x - mean) * (x - mean) / sum
	}
	return mean, math.Sqrt(spread)
}

// few names the first of several, and how many there are.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func believable(rate float64) float64 { return round(min(max(rate, slowest), fastest)) }
