package lease

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A machine of 4 GPUs has a tenant with turns by party, whose first candidate has one GPU. Larger ones of its party use
// the gap beside it instead, unless the first is short of GPU time, or they are of another party.
func TestGapsAreFilled(t *testing.T) {
	const whole = cluster.WholeGPU
	one := Candidate{Case: 1, Key: 1, Pools: []int{0}, GPUs: 1, Shape: 1}
	short, other := one, one
	short.Short, other.Party = true, 1
	two := Candidate{Case: 2, Key: 2, Pools: []int{0}, GPUs: 2, Shape: 2}
	for name, c := range map[string]struct {
		cs               []Candidate
		soft             map[int]int
		grants, renewals []int // cases
	}{
		"two GPUs are idle":         {[]Candidate{one, two}, nil, []int{2}, nil},
		"a lease of two GPUs ends":  {[]Candidate{one, {Case: 2, Key: 2, Pools: []int{0}, GPUs: 2, Shape: 2, Running: true}}, map[int]int{2: 2}, nil, []int{2}},
		"it is short":               {[]Candidate{short, two}, nil, []int{1}, nil},
		"it is of another party":    {[]Candidate{other, two}, nil, []int{1}, nil},
		"there are turns by tenant": {[]Candidate{one, two}, nil, []int{1}, nil},
	} {
		in := Input{Settings: &cluster.Settings{Term: cluster.Minute, Divide: "oef:noncoop"}, Candidates: c.cs,
			Tenants: []Tenant{{Name: "a", Shares: []Share{{Entitlement: 2 * whole}}, Jobs: []int{0, 1}, Turns: [][]int{{0, 1}}}}}
		if name == "there are turns by tenant" {
			in.Tenants[0].Turns = nil
		}
		m := &machine{idle: 2, soft: c.soft, of: map[int]int{2: 0}}
		for who, gpus := range c.soft {
			m.idle, m.line = m.idle-gpus, append(m.line, who)
		}
		got := Choose(in, m, 1)
		var grants, renewals []int
		for _, g := range got.Grants {
			grants = append(grants, in.Candidates[g.Candidate].Case)
		}
		for _, i := range got.Renewed {
			renewals = append(renewals, in.Candidates[i].Case)
		}
		if !slices.Equal(grants, c.grants) || !slices.Equal(renewals, c.renewals) {
			t.Errorf("%s: granted %v, renewed %v; want %v and %v", name, grants, renewals, c.grants, c.renewals)
		}
	}
}
