package lease

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// dumbLimit is limitOf by going through all tenants.
func dumbLimit(c *chooser, k *Candidate, pool int) *cluster.BindLimit {
	lane := &c.in.Lanes[pool]
	if !lane.Limited || c.bound.binds(k, pool) != BindsLong {
		return nil
	}
	var wanted, lacked, kept, most cluster.MicroGPU
	at := -1
	for t := range c.in.Tenants {
		sh, long := &c.in.Tenants[t].Shares[pool], c.bound.long[t][pool]
		holds := min(c.bound.holds[t][pool], sh.lasting())
		if t == k.Tenant {
			long += k.GPUs
		} else if wants := sh.Away.GPUs + sh.Wants; wants > 0 {
			wanted += wants
			lacked += sh.Away.GPUs + min(max(sh.Wants-holds, 0), fitting(c, t, pool))
			if wants > most {
				most, at = wants, t
			}
		}
		kept += max(long, holds)
	}
	wanted, lacked = whole(wanted, cluster.WholeGPU), whole(lacked, cluster.WholeGPU)
	over := min(wanted, kept+lacked-lane.GPUs)
	own := &c.in.Tenants[k.Tenant].Shares[pool]
	if Beyond(own.lasting(), c.bound.long[k.Tenant][pool]+k.GPUs) < cluster.WholeGPU || over <= lane.Most {
		return nil
	}
	return c.bound.tell(k.Tenant, pool, func() *cluster.BindLimit {
		return &cluster.BindLimit{Tenant: c.in.Tenants[at].Name, Kept: wanted, Until: c.in.Tenants[at].Shares[pool].Away.Until,
			Held: max(over-k.GPUs, 0), Max: lane.Most}
	})
}

// The limit of bound GPUs is the same as by going through all tenants, whoever asks, in whatever order, and whatever leases were made meanwhile.
func TestPropertyTheLimitOfBoundGPUsIsThatOfAllTenants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := func(most int, name string) int { return rapid.IntRange(0, most).Draw(t, name) }
		pools, tenants := 1+gpus(1, "pools"), 1+gpus(4, "tenants")
		in := Input{Settings: &cluster.Settings{}}
		for range pools {
			in.Lanes = append(in.Lanes, Lane{GPUs: cluster.Micro(1 + gpus(16, "pool")), Limited: gpus(5, "limited") > 0, Most: cluster.MicroGPU(gpus(4, "most")) * cluster.WholeGPU / 2, Pays: 1 << 50})
		}
		for range tenants {
			x := Tenant{Name: string(rune('a' + len(in.Tenants)))}
			for range pools {
				share := cluster.MicroGPU(gpus(16, "share")) * cluster.WholeGPU / 2
				x.Shares = append(x.Shares, Share{Entitlement: share, Siblings: share / cluster.MicroGPU(1+gpus(3, "siblings")) / 2, Holds: cluster.Micro(gpus(6, "holds")), Long: cluster.Micro(gpus(4, "long")),
					Wants: cluster.MicroGPU(gpus(12, "wants")) * cluster.WholeGPU / 2, Away: Away{GPUs: cluster.MicroGPU(max(gpus(8, "away")-4, 0)) * cluster.WholeGPU}})
			}
			for range gpus(3, "jobs") {
				x.Jobs = append(x.Jobs, len(in.Candidates))
				k := Candidate{Tenant: len(in.Tenants), Pools: []int{gpus(pools-1, "of")}, GPUs: cluster.MicroGPU(1+gpus(6, "gang")) * cluster.WholeGPU / 2, Running: gpus(3, "runs") == 0}
				k.Binds = Binding(gpus(2, "binds"))
				in.Candidates = append(in.Candidates, k)
			}
			in.Tenants = append(in.Tenants, x)
		}
		if len(in.Candidates) == 0 {
			return
		}
		open := func() *chooser {
			return &chooser{in: in, settled: make([]bool, len(in.Candidates)), bound: openBindings(&in, &Memory{}, pools)}
		}
		clever, dumb := open(), open()
		for range 12 {
			i := gpus(len(in.Candidates)-1, "candidate")
			k := &in.Candidates[i]
			if p := k.Pools[0]; gpus(2, "takes") == 0 {
				clever.bound.take(k, p)
				dumb.bound.take(k, p)
				clever.settled[i], dumb.settled[i] = true, true
			} else if got, want := clever.limitOf(k, p), dumbLimit(dumb, k, p); !reflect.DeepEqual(got, want) {
				t.Fatalf("candidate %d: %+v, want %+v", i, got, want)
			}
		}
	})
}
