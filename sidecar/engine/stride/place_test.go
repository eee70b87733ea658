package stride

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// mixed makes a cluster of servers of four GPUs: one of V100s, three of K80s. Tickets are
// each user's, by model.
func mixed(tickets ...[]cluster.MicroGPU) State {
	s := State{Models: 2, Servers: []Server{{0, 4}, {1, 4}, {1, 4}, {1, 4}}}
	for _, t := range tickets {
		s.Users = append(s.Users, User{Tickets: t})
	}
	return s
}

// placeAll places jobs one after the other, and gives the model of each.
func placeAll(t *testing.T, s State, queue []Queued) (models []int) {
	t.Helper()
	for len(queue) > 0 {
		c, ok := s.Place(queue)
		if !ok {
			t.Fatalf("no place for %d jobs", len(queue))
		}
		q := queue[c.Job]
		s.Jobs = append(s.Jobs, Placed{Key: q.Key, User: q.User, On: c.On, Speed: q.Speed, May: q.May})
		models = append(models, c.Model)
		queue = slices.Delete(queue, c.Job, c.Job+1)
	}
	return models
}

// Gandiva_fair §3.4: a user with 4 V100 and 4 K80 submits 8 jobs. "Say the job is a VAE that gets
// 1.25x speedup …: four jobs run fully on the V100 while four jobs run on the K80. In contrast,
// if the job is a DCGAN that gets a 5x speedup on the V100, Gandiva_fair will continue to
// time-share the eight jobs on the V100". A job that nobody knows goes to the newest model
// "until the user exhausts their V100 allocation", then to the next (§3.5).
func TestGandivaFairChoosesTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		speed []float64
		may   []bool
		fast  int // jobs of eight on V100s
	}{
		"VAE":                      {speed: []float64{1.25, 1}, fast: 4},
		"DCGAN":                    {speed: []float64{5, 1}, fast: 8},
		"slower on the V100":       {speed: []float64{0.1, 1}, fast: 0},
		"never seen":               {fast: 4},
		"nonsense":                 {speed: []float64{math.NaN(), -1}, fast: 4},
		"without end":              {speed: []float64{math.Inf(1), 1}, fast: 0},
		"too large for the K80":    {speed: []float64{1.25, 1}, may: []bool{true, false}, fast: 8},
		"known on one model alone": {speed: []float64{0, 1}, fast: 0},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := queue(1, 0, 8, 1)
			for i := range jobs {
				jobs[i].Speed, jobs[i].May = c.speed, c.may
			}
			fast := 0
			for _, m := range placeAll(t, mixed([]cluster.MicroGPU{4 * gpu, 4 * gpu}), jobs) {
				if m == 0 {
					fast++
				}
			}
			if fast != c.fast {
				t.Errorf("%d of 8 jobs are on V100s, want %d", fast, c.fast)
			}
		})
	}
}

// Algorithm 2, line by line.
func TestGandivaFairAlgorithm2(t *testing.T) {
	s := mixed([]cluster.MicroGPU{gpu, 3 * gpu}, []cluster.MicroGPU{gpu, 3 * gpu})
	s.Jobs = []Placed{{Key: 1, User: 0, On: []Part{{1, 2}}}}
	// Line 2: user 1 has nothing yet. Line 3: the highest priority, then who came first.
	q := []Queued{{Key: 2, User: 0, GPUs: 1}, {Key: 3, User: 1, GPUs: 1}, {Key: 5, User: 1, GPUs: 2, Priority: 1}, {Key: 4, User: 1, GPUs: 2, Priority: 1, Speed: []float64{1, 1}}}
	c, ok := s.Place(q)
	// Lines 4-5: on a V100 it has half a ticket for each GPU, on a K80 one and a half. Line 8:
	// three tickets. Lines 10-11: server 1 has a load.
	want := Choice{Job: 3, Model: 1, On: []Part{{2, 2}}, Tickets: 3 * gpu}
	if !ok || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	// Line 9: as many servers as it takes.
	c, ok = s.Place([]Queued{{Key: 9, User: 1, GPUs: 6, Speed: []float64{0, 1}}})
	want = Choice{Job: 0, Model: 1, On: []Part{{2, 4}, {3, 2}}, Tickets: 3 * gpu}
	if !ok || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	// No model has so many GPUs; a smaller job of the same user still has its turn.
	c, ok = s.Place([]Queued{{Key: 9, User: 1, GPUs: 13, Priority: 1}, {Key: 10, User: 1, GPUs: 1}})
	if !ok || c.Job != 1 {
		t.Errorf("got %+v", c)
	}
	if c, ok = s.Place([]Queued{{Key: 9, User: 1, GPUs: 13}}); ok {
		t.Errorf("got %+v for 13 GPUs of 12", c)
	}
	if c, ok = s.Place(nil); ok {
		t.Errorf("got %+v for nobody", c)
	}
}

// §3.5: "if the user will benefit from having their jobs migrated from one GPU model to another and
// if the resulting improvement is greater than a threshold …, the scheduler picks the one that
// will gain the most and migrates one job".
func TestGandivaFairMigratesForPerformance(t *testing.T) {
	s := mixed([]cluster.MicroGPU{2 * gpu, 4 * gpu}, []cluster.MicroGPU{2 * gpu, 4 * gpu})
	slow, fast := []float64{1.5, 1}, []float64{4, 1}
	s.Jobs = []Placed{
		{Key: 1, User: 0, On: []Part{{1, 1}}, Speed: slow},
		{Key: 2, User: 1, On: []Part{{2, 1}}, Speed: fast},
		{Key: 3, User: 1, On: []Part{{3, 1}}, Speed: fast},
		{Key: 4, User: 1, On: []Part{{3, 1}}},
	}
	var moved []cluster.JobKey
	for {
		c, ok := s.Better(0.2)
		if !ok {
			break
		}
		moved = append(moved, s.Jobs[c.Job].Key)
		s.Jobs[c.Job].On = c.On
		if len(moved) > 9 {
			break
		}
	}
	if !slices.Equal(moved, []cluster.JobKey{2, 3, 1}) {
		t.Errorf("moved %v", moved)
	}
	s.Jobs[0].On = []Part{{1, 1}}
	if c, ok := s.Better(0.6); ok {
		t.Errorf("a gain of a half moves %+v, the threshold is 0.6", c)
	}
	s.Jobs[0].May = []bool{false, true}
	if c, ok := s.Better(0.2); ok {
		t.Errorf("moved %+v to where it cannot run", c)
	}
}

// Balancing lowers the load of the highest, ends, changes nothing the second time, and leaves no
// server unpacked that was packed.
func TestBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{Models: 2}
		for range rapid.IntRange(2, 6).Draw(t, "servers") {
			s.Servers = append(s.Servers, Server{Model: rapid.IntRange(0, 1).Draw(t, "model"), GPUs: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "GPUs")})
		}
		for range rapid.IntRange(1, 3).Draw(t, "users") {
			s.Users = append(s.Users, User{Tickets: []cluster.MicroGPU{gpu * cluster.MicroGPU(rapid.IntRange(0, 9).Draw(t, "tickets")), 4 * gpu}})
		}
		for k := range rapid.IntRange(1, 15).Draw(t, "jobs") {
			n := rapid.IntRange(0, len(s.Servers)-1).Draw(t, "on")
			s.Jobs = append(s.Jobs, Placed{
				Key: cluster.JobKey(k), User: rapid.IntRange(0, len(s.Users)-1).Draw(t, "user"),
				On: []Part{{n, rapid.IntRange(1, s.Servers[n].GPUs).Draw(t, "size")}},
			})
		}
		threshold := gpu / 10
		for moves := 0; ; moves++ {
			before, packed := s.loads(s.wanted()), s.allPacked()
			c, ok := s.Balance(threshold)
			if !ok {
				return
			}
			from, to := s.Jobs[c.Job].On[0], c.On[0]
			if from.GPUs != to.GPUs || s.Servers[from.Node].Model != s.Servers[to.Node].Model || to.GPUs > s.Servers[to.Node].GPUs {
				t.Fatalf("from %+v to %+v", from, to)
			}
			if before[from.Node]-before[to.Node] <= threshold {
				t.Fatalf("loads of %d and %d are in balance", before[from.Node], before[to.Node])
			}
			s.Jobs[c.Job].On = c.On
			after := s.loads(s.wanted())
			if max(after[from.Node], after[to.Node]) >= before[from.Node] {
				t.Fatalf("loads %d and %d become %d and %d", before[from.Node], before[to.Node], after[from.Node], after[to.Node])
			}
			for n, ok := range s.allPacked() {
				if packed[n] && !ok {
					t.Fatalf("server %d is not packed any more", n)
				}
			}
			if moves > 200 {
				t.Fatal("balancing does not end")
			}
		}
	})
}

// allPacked tells of each server whether it is packed.
func (s *State) allPacked() []bool {
	out := make([]bool, len(s.Servers))
	for n := range out {
		var small []int
		for i := range s.Jobs {
			if len(s.Jobs[i].On) == 1 && s.Jobs[i].On[0].Node == n {
				small = append(small, i)
			}
		}
		out[n] = s.packed(n, small, -1, -1)
	}
	return out
}
