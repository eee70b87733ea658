package stride

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// anyJobs draws the jobs of some users for a server.
func anyJobs(t *rapid.T, gpus int) []Job {
	var list []Job
	for u := range rapid.IntRange(1, 4).Draw(t, "users") {
		tickets := cluster.MicroGPU(rapid.IntRange(1, 4).Draw(t, "tickets")) * 100 * gpu
		n, size := rapid.IntRange(1, 4).Draw(t, "jobs"), rapid.IntRange(1, gpus).Draw(t, "size")
		list = append(list, jobs(cluster.JobKey(100*u+1), n, size, tickets)...)
	}
	return list
}

// Whatever the jobs: the one with the smallest pass runs, so nobody whose turn it is waits; no
// more run than fit, and none is left out that fits; order does not matter, and passes are
// data that a restart does not change.
func TestNextIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := rapid.IntRange(1, 8).Draw(t, "GPUs")
		list := anyJobs(t, gpus)
		for range 50 {
			run := Next(list, gpus)
			free := gpus
			for _, i := range run {
				free -= list[i].GPUs
			}
			if free < 0 {
				t.Fatalf("%v run on %d GPUs", run, gpus)
			}
			for i := range list {
				if !slices.Contains(run, i) && list[i].GPUs <= free {
					t.Fatalf("job %d fits and does not run", i)
				}
				if !slices.Contains(run, i) && list[i].Pass < list[run[0]].Pass {
					t.Fatalf("it is job %d's turn, and it does not run", i)
				}
			}
			text, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			var read []Job
			if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, list) {
				t.Fatalf("%v, %v: got %v", err, list, read)
			}
			slices.Reverse(read)
			for k, i := range Next(read, gpus) {
				if read[i].Key != list[run[k]].Key {
					t.Fatalf("in another order job %d runs, not %d", read[i].Key, list[run[k]].Key)
				}
			}
			for _, i := range run {
				list[i] = list[i].After(quantum, quantum)
			}
		}
	})
}

// Where jobs of one GPU want all that there is, shares are by tickets, to two quanta a job.
func TestSharesAreByTickets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := rapid.IntRange(1, 8).Draw(t, "GPUs")
		tickets := rapid.SliceOfN(rapid.IntRange(1, 3), 2, 4).Draw(t, "tickets")
		var list []Job
		sum := 0
		for u, n := range tickets {
			list = append(list, jobs(cluster.JobKey(1000*u), 4*gpus, 1, cluster.MicroGPU(n)*100*gpu)...)
			sum += n
		}
		const quanta = 300
		ran := alone(list, gpus, quanta)
		for u, n := range tickets {
			got := 0
			for k := range 4 * gpus {
				got += ran[cluster.JobKey(1000*u+k)]
			}
			if want := float64(quanta*gpus*n) / float64(sum); math.Abs(float64(got)-want) > float64(2*4*gpus) {
				t.Fatalf("user %d of tickets %v has %d GPU quanta, want %.1f", u, tickets, got, want)
			}
		}
	})
}

// "If all servers are load balanced, … the fairness provided by the split Stride scheduler can be
// shown to be identical to running a single cluster-level gang-aware Stride scheduler" (§3.1):
// with the same small jobs on each server, every job runs as often as on one server of all
// GPUs, to a hundredth of the time.
func TestSplitIsSingleUnderBalancedLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
		s := servers(nodes)
		var single []Job
		for u := range rapid.IntRange(1, 3).Draw(t, "users") {
			size := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "size")
			each := max(4/size, rapid.IntRange(1, 4).Draw(t, "jobs on each node"))
			for k, j := range jobs(cluster.JobKey(100*u+1), nodes*each, size, cluster.MicroGPU(rapid.IntRange(1, 3).Draw(t, "tickets"))*100*gpu) {
				s = s.WithSmall(k%nodes, j)
				single = append(single, j)
			}
		}
		for i := range rapid.IntRange(1, 2).Draw(t, "large jobs") {
			l := Large{Job: Job{Key: cluster.JobKey(1000 + i), GPUs: 4 * nodes, Stride: Stride(4*nodes, 100*gpu)}}
			for n := range nodes {
				l.On = append(l.On, Part{n, 4})
			}
			s = s.WithLarge(l)
			single = append(single, l.Job)
		}
		const quanta = 2000
		split, _ := s.run(quanta)
		one := alone(single, 4*nodes, quanta)
		for _, j := range single {
			if a, b := split[j.Key], one[j.Key]; math.Abs(float64(a-b)) > quanta/100 {
				t.Fatalf("job %d of %d GPUs ran for %d quanta of %d, and with a single stride for %d", j.Key, j.GPUs, a, quanta, b)
			}
		}
	})
}

// Whatever comes and goes, a new job neither waits for what others had before nor
// makes up for it: from then on it has what an equal one has.
func TestJoinAndLeave(t *testing.T) {
	s := servers(2)
	old := jobs(1, 2, 4, 100*gpu)
	s = s.WithSmall(0, Job{Key: 1, GPUs: 4, Pass: Never, Stride: old[0].Stride})
	ran, s := s.run(50)
	if ran[1] != 50 {
		t.Fatalf("alone it ran for %d quanta of 50", ran[1])
	}
	s = s.WithSmall(0, Job{Key: 2, GPUs: 4, Pass: Never, Stride: old[0].Stride})
	ran, s = s.run(50)
	if ran[1] != 25 || ran[2] != 25 {
		t.Errorf("two equal jobs ran for %d and %d quanta of 50", ran[1], ran[2])
	}
	// A large job comes to two servers; one has no jobs yet.
	s = s.WithLarge(Large{Job{Key: 9, GPUs: 8, Pass: Never, Stride: Stride(8, 100*gpu)}, []Part{{0, 4}, {1, 4}}})
	s = s.WithSmall(1, Job{Key: 3, GPUs: 4, Pass: Never, Stride: old[0].Stride})
	before := s
	ran, after := s.run(60)
	if ran[9] < 19 || ran[9] > 31 || ran[1]+ran[2]+ran[9] != 60 {
		t.Errorf("the large job ran for %d quanta of 60, its neighbours for %d", ran[9], ran[1]+ran[2])
	}
	if !reflect.DeepEqual(s, before) {
		t.Error("running changed the value that it was given")
	}
	// The large job pauses for long: it comes back to the present pass, not to all it missed.
	large := after.Large[0]
	s = Split{Nodes: after.Nodes}
	_, s = s.run(500)
	s = s.WithLarge(large)
	if ran, _ = s.run(60); ran[9] > 31 {
		t.Errorf("back again the large job ran for %d quanta of 60", ran[9])
	}
	// One that has had more than the others keeps that.
	if got := Join(70, []Job{{Pass: 30}, {Pass: 40}}); got != 70 {
		t.Errorf("got %d", got)
	}
	if got := Join(Never, []Job{{Pass: 30}, {Pass: 40}}); got != 30 {
		t.Errorf("got %d", got)
	}
	if got := Join(Never, nil); got != 0 {
		t.Errorf("got %d", got)
	}
}

// Part of a quantum counts for that part, exactly; the largest numbers overflow nothing.
func TestPasses(t *testing.T) {
	j := Job{GPUs: 1, Stride: Stride(3, 2*gpu)}
	if j.Stride != One*3/2 {
		t.Errorf("stride %d", j.Stride)
	}
	for range 3 {
		j = j.After(quantum/3, quantum)
	}
	if j.Pass != One*3/2 {
		t.Errorf("pass %d after three thirds of a quantum", j.Pass)
	}
	j = Job{Pass: math.MaxInt64, Stride: math.MaxInt64}.After(math.MaxInt64, 1)
	if j.Pass != far || Stride(1, 0) != slowest || Stride(math.MaxInt32, 1) != slowest || Stride(0, gpu) != One {
		t.Errorf("pass %d", j.Pass)
	}
	if got := (Job{Stride: One}).After(-5, 0); got.Pass != 0 {
		t.Errorf("a job that ran for less than no time has pass %d", got.Pass)
	}
	if run := Next([]Job{{Key: 1, GPUs: 0}, {Key: 2, GPUs: -1}, {Key: 3, GPUs: 9}}, 4); len(run) > 0 {
		t.Errorf("%v run", run)
	}
}

func ExampleNext() {
	jobs := []Job{
		{Key: 1, GPUs: 1, Pass: 0, Stride: One},
		{Key: 2, GPUs: 4, Pass: 0, Stride: 4 * One},
	}
	for range 5 {
		for _, i := range Next(jobs, 4) {
			fmt.Print(jobs[i].Key, " ")
			jobs[i] = jobs[i].After(cluster.Minute, cluster.Minute)
		}
	}
	// Output: 1 2 1 1 1
}
