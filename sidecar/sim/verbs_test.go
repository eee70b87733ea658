package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The virtual cluster carries out every verb that there is.
func TestEveryVerbIsCarriedOut(t *testing.T) {
	for _, verb := range append(slices.Clone(cluster.Verbs), cluster.Named{Name: "unheard"}) {
		v := NewVirtual(0, []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: 1}}}}, []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}})
		v.Gate = cluster.Hour
		id := v.Submit(Work{User: "ann", Account: "nlp", Partition: "gpu", Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1}, Runs: cluster.Hour})
		err := v.apply(&cluster.Action{Verb: cluster.Verb(verb.Name), ID: id, Until: v.now.Add(cluster.Hour), Reservation: "r"})
		if refused := err != nil && strings.Contains(err.Error(), "no such action"); refused != (verb.Name == "unheard") {
			t.Errorf("%s: %v: add a case to Virtual.change", verb.Name, err)
		}
	}
}
