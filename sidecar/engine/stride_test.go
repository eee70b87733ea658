package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Gandiva_fair §5.2 and Figure 5: of three users with equal tickets, one has an 8-GPU job, one two 2-GPU jobs, and one four 1-GPU
// jobs. Each gets its 2.66 of 8 GPUs. When the first has left, the others get 4 each.
func TestStrideGandivaFair52(t *testing.T) {
	for _, d := range []simtest.Division{
		{GPUs: []int{8}, Due: [][]float64{{8. / 3}, {8. / 3}, {8. / 3}}, Jobs: [][]int{{8}, {2, 2}, {1, 1, 1, 1}}},
		{GPUs: []int{8}, Due: [][]float64{{4}, {4}}, Jobs: [][]int{{2, 2}, {1, 1, 1, 1}}},
	} {
		c := d.CarryOut(t, "gandiva-fair", cluster.ByStride, 60)
		if off, _ := c.Off(&d, 60); off > 2 {
			t.Errorf("%v: after 60 terms a user is off by %.1f rounds of a job, want 2 at most", d.Jobs, off)
		}
	}
}

// By stride, in drawn markets of one-GPU jobs, every tenant keeps within eight rounds of what it is due, and the jobs of equal tenants get equal
// time. Gangs do not starve: a tenant that is due less than a gang waits at most for twelve times the time in which it is due one.
func TestStrideMarkets(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	worst, waits, apart := 0.0, 0.0, 0.0
	for seed := range seeds.Of(t, 8) {
		for _, by := range []string{"gandiva-fair", "gavel:las"} {
			for _, gangs := range [][]int{{1}, {1, 2, 4, 8}} {
				d := simtest.NewDivision(100+seed, gangs)
				if by == "gavel:las" {
					d = d.Apart()
				}
				c := d.CarryOut(t, by, cluster.ByStride, 60)
				if waits = max(waits, c.Waits(&d)); c.Waits(&d) > 12 {
					t.Errorf("seed %d, %s, gangs %v: a tenant waited for %.1f times the time of a gang", seed, by, gangs, c.Waits(&d))
				}
				if off, _ := c.Off(&d, 60); len(gangs) == 1 {
					if worst = max(worst, off); off > 8 {
						t.Errorf("seed %d, %s: a tenant of one-GPU jobs is off by %.1f rounds", seed, by, off)
					}
				}
			}
		}
		n, gang := 2+int(seed%5), 1<<(seed%4)
		d := simtest.Division{GPUs: []int{8 * (1 + int(seed%2))}}
		for range n {
			d.Due = append(d.Due, []float64{float64(d.GPUs[0]) / float64(n)})
			var jobs []int
			for sum := 0; sum < 2*d.GPUs[0]/n || sum == 0; sum += gang {
				jobs = append(jobs, gang)
			}
			d.Jobs = append(d.Jobs, jobs)
		}
		c := d.CarryOut(t, "gandiva-fair", cluster.ByStride, 60)
		off, _ := c.Off(&d, 60)
		if apart = max(apart, off); off > 3 {
			t.Errorf("seed %d: of %d equal tenants with gangs of %d on %d GPUs, one is off by %.1f rounds", seed, n, gang, d.GPUs[0], off)
		}
	}
	t.Logf("one-GPU jobs: off by %.1f rounds at most; gangs wait for %.1f times the time of a gang; equal tenants off by %.1f rounds", worst, waits, apart)
}

// By stride, jobs of a virtual cluster get equal time from when the later of two has joined, whatever their sizes: their tickets
// per GPU are equal (Gandiva_fair eq. 3). None starves, and a newcomer makes up for nothing.
func TestStrideOfDrawnJobsInAVC(t *testing.T) {
	most := 0.0
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 2).Draw(rt, "nodes")
		w := newCellsOn(t, simtest.Nodes("n", "v100", nodes, 8), nodeCells(8, nodes, vc("a", "node", nodes)), "a")
		w.Settings.Chooser, w.Settings.NewFirst, w.Settings.Interval = "gandiva-fair", false, minute
		w.Settings.StopAllowance, w.Settings.StopOverheadMilli = 0, 0
		gangs := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 4, 8}), 2, 7).Draw(rt, "gangs")
		late := rapid.IntRange(0, len(gangs)-1).Draw(rt, "late")
		ids := make([]cluster.JobID, len(gangs))
		time := func(i int) float64 { return float64(w.Alloc(ids[i])) / float64(cluster.Times(gangs[i], term)) }
		for i, gang := range gangs[late:] {
			ids[late+i] = w.submit("a", gang, forever, nil)
		}
		w.Run(cluster.Span(rapid.IntRange(0, 40).Draw(rt, "before")) * term)
		for i, gang := range gangs[:late] {
			ids[i] = w.submit("a", gang, forever, nil)
		}
		const terms = 40
		was, got := make([]float64, len(gangs)), make([]float64, len(gangs))
		for i := range gangs {
			was[i] = time(i)
		}
		w.Run(terms * term)
		for i := range gangs {
			got[i] = time(i) - was[i]
		}
		for i := range gangs {
			for j := range gangs {
				if d := got[i] - got[j]; d > most {
					if most = d; d > 4 {
						rt.Errorf("jobs of %v GPUs, %d of them late, on %d nodes got %.1f terms of %d: %d and %d differ by %.1f", gangs, late, nodes, got, terms, i, j, d)
					}
				}
			}
		}
	})
	t.Logf("two jobs differ by %.1f terms at most", most)
}
