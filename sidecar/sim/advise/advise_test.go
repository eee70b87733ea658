package advise

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/research/hived"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

func job(tenant string, submit, waited, runs cluster.Span, nodes, gpus int) Job {
	return Job{Job: cellworld.Job{Tenant: tenant, Submit: submit * cluster.Hour, Runs: runs * cluster.Hour, Nodes: nodes, GPUs: gpus}, Waited: waited * cluster.Hour}
}

func quota(of ...any) []cluster.CellQuota {
	var out []cluster.CellQuota
	for i := 0; i < len(of); i += 2 {
		out = append(out, cluster.CellQuota{Chain: "node", Type: of[i].(string), Cells: of[i+1].(int)})
	}
	return out
}

func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		what string
		jobs []Job
		want []cluster.CellQuota
	}{
		{"two that need not wait for each other", []Job{job("a", 0, 0, 2, 1, 8), job("a", 0, 0, 2, 1, 1)}, quota("node", 1, "gpu", 1)},
		{"one waited for the other", []Job{job("a", 0, 0, 2, 1, 8), job("a", 0, 2, 2, 1, 1)}, quota("node", 1)},
		{"one after the other", []Job{job("a", 0, 0, 2, 1, 4), job("a", 2, 0, 2, 1, 2), job("a", 4, 0, 2, 1, 1)}, quota("socket", 1)},
		{"a gang on two nodes: two sockets might be of one", []Job{job("a", 0, 0, 2, 2, 4)}, quota("socket", 3)},
		{"of odd size", []Job{job("a", 0, 0, 2, 1, 3), job("a", 0, 0, 2, 1, 3)}, quota("socket", 2)},
		{"three GPUs fill up", []Job{job("a", 0, 0, 2, 1, 3), job("a", 0, 0, 2, 1, 1)}, quota("socket", 1)},
		{"no order", []Job{job("a", 4, 0, 2, 1, 2), job("a", 0, 0, 4, 1, 2)}, quota("pcie", 1)},
	} {
		got, err := Advise(cluster.Cells(hived.Nodes(2)), c.jobs)
		if err != nil || got.LeftOut != 0 || got.Short != nil || len(got.VCs) != 1 || !reflect.DeepEqual(got.VCs[0].Cells, c.want) {
			t.Errorf("%s: %+v, %v; want %v", c.what, got, err, c.want)
		}
	}
}

// The total need may exceed the cluster: then the advice says by how much.
func TestAdviseTellsWhatIsShort(t *testing.T) {
	var jobs []Job
	for _, tenant := range []string{"b", "a", "c"} {
		jobs = append(jobs, job(tenant, 0, 0, 2, 1, 8), job(tenant, 0, 0, 2, 1, 2))
	}
	big := job("c", 0, 0, 1, 1, 16)
	other := job("c", 0, 0, 1, 1, 1)
	other.Model = "k80"
	got, err := Advise(cluster.Cells(hived.Nodes(3)), append(jobs, big, other))
	if err != nil || got.LeftOut != 2 || len(got.VCs) != 3 || got.VCs[0].Tenant != "a" || got.VCs[0].GPUs != 10 || got.VCs[2].Jobs != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := cells.Faults{{Kind: cells.Infeasible, Chain: "node", Type: "pcie", Needed: 3}}
	if !reflect.DeepEqual(got.Short, want) {
		t.Errorf("short is %v, want %v", got.Short, want)
	}
	if got, err = Advise(cluster.Cells(hived.Nodes(4)), jobs); err != nil || got.Short != nil {
		t.Errorf("four nodes are short of %v (%v)", got.Short, err)
	}
	if got, err = Advise(cluster.Cells{Types: hived.Nodes(1).Types}, jobs); err != nil || got.Short != nil || len(got.VCs) != 3 {
		t.Errorf("without a cluster: %+v (%v)", got, err)
	}
}

// Jobs go to the chain of their model, if its nodes can hold them.
func TestAdviseByChain(t *testing.T) {
	d := cluster.Cells{Types: []cluster.CellType{
		{Name: "v", Model: "v100"}, {Name: "small", Child: "v", Split: 4, Node: true}, {Name: "large", Child: "v", Split: 8, Node: true},
		{Name: "rack", Child: "large", Split: 2}, {Name: "k", Model: "k80"}, {Name: "old", Child: "k", Split: 2, Node: true}}}
	a, b, c := job("a", 0, 0, 1, 1, 8), job("a", 0, 0, 1, 1, 2), job("a", 0, 0, 1, 1, 3)
	a.Model, b.Model, c.Model = "v100", "k80", "v100"
	got, err := Advise(d, []Job{a, b, c})
	if err != nil || got.LeftOut != 0 {
		t.Fatal(got, err)
	}
	chains := map[string]int{}
	for _, v := range got.VCs {
		for _, q := range v.Cells {
			if q.Chain == "" {
				t.Errorf("%+v names no chain", q)
			}
		}
		chains[v.Cells[0].Chain] += v.GPUs
	}
	if want := map[string]int{"old": 2, "rack": 16}; !reflect.DeepEqual(chains, want) {
		t.Errorf("GPUs by chain are %v, want %v", chains, want)
	}
	var faults cells.Faults
	if _, err := Advise(cluster.Cells{Types: []cluster.CellType{{Name: "x"}}}, nil); !errors.As(err, &faults) {
		t.Errorf("a description that makes no sense gave %v", err)
	}
}

// On nodes of 4 GPUs under 2 switches: the result suffices, no smaller one of the same kind does,
// and it is nearly always the minimum of all choices.
func TestAdviseIsLeast(t *testing.T) {
	d := cluster.Cells{Types: []cluster.CellType{{Name: "gpu", Model: "m"}, {Name: "pcie", Child: "gpu", Split: 2}, {Name: "node", Child: "pcie", Split: 2, Node: true}}}
	all, least := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 3 {
			var jobs []Job
			for range 2 + rng.IntN(8) {
				j := job("a", cluster.Span(rng.IntN(6)), 0, cluster.Span(1+rng.IntN(4)), 1, 1+rng.IntN(4))
				if rng.IntN(4) == 0 {
					j.Nodes = 2
				}
				j.Waited = cluster.Span(rng.IntN(3)/2) * cluster.Hour
				jobs = append(jobs, j)
			}
			got, err := Advise(d, jobs)
			if err != nil {
				t.Fatal(err)
			}
			c := chainsOf(d.Types)[0]
			s := search{chain: &c, tenant: "a"}
			slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
			for _, j := range jobs {
				s.jobs = append(s.jobs, j.Job)
				s.waited += j.Waited
			}
			suffices := func(counts []int) bool {
				ok, err := s.suffices(counts)
				if err != nil {
					t.Fatal(err)
				}
				return ok
			}
			found := make([]int, 3)
			for _, q := range got.VCs[0].Cells {
				found[map[string]int{"gpu": 0, "pcie": 1, "node": 2}[q.Type]] = q.Cells
			}
			if !suffices(found) {
				t.Errorf("%v does not suffice", found)
			}
			for k := range found {
				for _, give := range []int{2, 1, 0} {
					if found[k] == 0 || k == 0 && give > 0 {
						continue
					}
					less := slices.Clone(found)
					less[k]--
					if k > 0 {
						less[k-1] += give
					}
					if suffices(less) {
						t.Errorf("%v was found, %v suffices: %v", found, less, describe(jobs))
					}
				}
			}
			n, best := c.gpus(found), true
			for nodes := range n/4 + 1 {
				for pcies := range n/2 + 1 {
					for gpus := range max(n-4*nodes-2*pcies, 0) {
						best = best && !suffices([]int{gpus, pcies, nodes})
					}
				}
			}
			if all++; best {
				least++
			}
		}
	})
	if t.Logf("%d of %d are the least of all", least, all); 10*least < 9*all {
		t.Errorf("only %d of %d are the least of all", least, all)
	}
}

func describe(jobs []Job) string {
	text := ""
	for _, j := range jobs {
		text += fmt.Sprintf(" %dx%d at %d for %d waited %d;", j.Nodes, j.GPUs, j.Submit/cluster.Hour, j.Runs/cluster.Hour, j.Waited/cluster.Hour)
	}
	return text
}

// Ten days of a workload like HiveD's: the advice for a tenant does not exceed its peak, and
// takes seconds.
func TestAdviseOnATrace(t *testing.T) {
	seeds.Slow(t)
	h := trace.LikeHiveD(1)
	h.Length = 10 * cluster.Day
	var jobs []Job
	for _, j := range cellworld.Gangs(h.Jobs(), 8) {
		jobs = append(jobs, Job{Job: j, Waited: 10 * cluster.Minute})
	}
	got, err := Advise(cluster.Cells(hived.Nodes(279)), jobs)
	if err != nil || len(got.VCs) != len(trace.HiveDTenants) {
		t.Fatal(err)
	}
	for _, v := range got.VCs {
		t.Logf("%s: %d jobs, %d GPUs in %v", v.Tenant, v.Jobs, v.GPUs, v.Cells)
		if v.Tenant == "res-d" && (len(v.Cells) != 1 || v.Cells[0].Type != "gpu") {
			t.Errorf("res-d, whose jobs have one GPU, is advised %v", v.Cells)
		}
	}
}
