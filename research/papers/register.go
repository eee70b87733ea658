package papers

import (
	"strings"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
)

type job = baseline.Job

// round is a scheduler's view of one round.
type round struct{ *baseline.Round }

// rule assigns GPUs in a round.
type rule func(*round)

func init() {
	for _, x := range []struct {
		name         string
		leases, told bool
		make         func(baseline.Options) rule
	}{
		{"tiresias-l", true, false, newTiresias},
		{"themis", true, true, newThemis},
		{"allox", true, true, newAlloX},
		{"gandiva-fair", true, false, newGandivaFair},
		{"karma", true, false, newKarma},
		{"qssf", false, false, newQSSF},
		{"lucid", false, false, newLucid},
		{"shockwave", true, false, newShockwave},
		{"srtf", true, true, newSRTF},
	} {
		register(baseline.Entry{Name: x.name, Leases: x.leases, Told: x.told}, x.make)
	}
	forModels := func(name string, leases bool, with func(baseline.Options) rule) {
		register(baseline.Entry{Name: name, Leases: leases, Models: true}, with)
	}
	forModels("fifo:random", false, newAtRandom)
	forModels("fifo:settled", true, newSettled)
	forModels("fifo:fastest", true, newMechanism(greedy, nil))
	forModels("las:interior", true, newMechanism(lasInterior, nil))
	forModels("gandiva:packing", true, newMechanism(packed, newPacking))
	forModels("gandiva-fair:split", true, newGandivaSplit)
	for _, by := range []string{"oef:coop", "oef:noncoop"} {
		forModels(by, true, newOEF(by))
	}
	for _, by := range policy.Names() {
		forModels(gavelPrefix+by, true, newMechanism(seeing(by), nil))
		if !strings.HasSuffix(by, unmodelled) {
			forModels(gavelPrefix+by+unmodelled, true, newMechanism(blind(by), nil))
			forModels(gavelPrefix+by+spaceSharing, true, newMechanism(seeing(by), func() pairer { return everyPair }))
		}
	}
}

// register gives a baseline the rounds of this package.
func register(e baseline.Entry, with func(baseline.Options) rule) {
	e.Make = func(o baseline.Options) baseline.Rule {
		assign := with(o)
		return func(r *baseline.Round) { assign(&round{r}) }
	}
	baseline.Register(e)
}
