package stride

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	gpu     = cluster.WholeGPU
	quantum = cluster.Minute
)

// jobs makes n jobs of a user, with so many GPUs each; the user's tickets are divided among
// them.
func jobs(from cluster.JobKey, n, gpus int, tickets cluster.MicroGPU) []Job {
	var list []Job
	for i := range n {
		list = append(list, Job{Key: from + cluster.JobKey(i), GPUs: gpus, Stride: Stride(n*gpus, tickets)})
	}
	return list
}

// alone runs jobs on one server, and gives the quanta that each ran for.
func alone(list []Job, gpus, quanta int) map[cluster.JobKey]int {
	list = slices.Clone(list)
	ran := map[cluster.JobKey]int{}
	for range quanta {
		for _, i := range Next(list, gpus) {
			ran[list[i].Key]++
			list[i] = list[i].After(quantum, quantum)
		}
	}
	return ran
}

// run runs a split stride, and gives the quanta that each job ran for and what became of it.
func (s Split) run(quanta int) (map[cluster.JobKey]int, Split) {
	ran := map[cluster.JobKey]int{}
	for range quanta {
		turn := s.Next()
		for _, i := range turn.Large {
			ran[s.Large[i].Key]++
		}
		for n, list := range turn.Small {
			for _, k := range list {
				ran[s.Nodes[n].Jobs[k].Key]++
			}
		}
		s = s.After(turn, quantum, quantum)
	}
	return ran, s
}

// servers makes nodes of four GPUs.
func servers(n int) (s Split) {
	for i := range n {
		s.Nodes = append(s.Nodes, Node{Name: fmt.Sprint("node ", i), GPUs: 4})
	}
	return s
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}

// Gandiva_fair §3.1, Table 2: on a server of four GPUs three users with the same tickets have two
// jobs each, of one, two and four GPUs. "Gang-Aware Stride (6 intervals)": 66.7, 33.3, 16.7 %.
func TestGandivaFairTable2(t *testing.T) {
	list := slices.Concat(jobs(1, 2, 1, 100*gpu), jobs(3, 2, 2, 100*gpu), jobs(5, 2, 4, 100*gpu))
	ran := alone(list, 4, 6)
	for key, want := range map[cluster.JobKey]int{1: 4, 2: 4, 3: 2, 4: 2, 5: 1, 6: 1} {
		if ran[key] != want {
			t.Errorf("job %d ran in %d of 6 intervals, want %d", key, ran[key], want)
		}
	}
}

// Gandiva_fair §3.1: "Since we do not update the pass value of skipped jobs, they (e.g., the 4-GPU
// job) are guaranteed to have minimum pass values in the next time quantum and will get
// scheduled then. Thus … a service delay of at most 1-time quantum": in Table 2, a job that is
// skipped for want of GPUs runs in the quantum after.
func TestGandivaFairServiceDelay(t *testing.T) {
	list := slices.Concat(jobs(1, 2, 1, 100*gpu), jobs(3, 2, 2, 100*gpu), jobs(5, 2, 4, 100*gpu))
	skipped, times := -1, 0
	for q := range 600 {
		run, order := Next(list, 4), byPass(list)
		if skipped >= 0 && !slices.Contains(run, skipped) {
			t.Fatalf("quantum %d: job %d is skipped again", q, list[skipped].Key)
		}
		skipped = -1
		first := slices.IndexFunc(order, func(i int) bool { return !slices.Contains(run, i) })
		if last := slices.Index(order, run[len(run)-1]); first < last {
			skipped = order[first]
			times++
		}
		for _, i := range run {
			list[i] = list[i].After(quantum, quantum)
		}
	}
	if times == 0 {
		t.Fatal("no job was ever skipped")
	}
}

// Gandiva_fair §3.1, on Figure 2: "the small jobs in aggregate will get 2 out of every 3 slots
// while the 8-GPU job will get 1 out of every 3." The small jobs have 200 tickets in all,
// 100 on each of two servers, and the 8-GPU job 100.
func TestGandivaFairFigure2(t *testing.T) {
	s := servers(2)
	for _, j := range slices.Concat(jobs(1, 2, 1, 50*gpu), jobs(3, 2, 2, 50*gpu)) {
		s = s.WithSmall(0, j)
	}
	for _, j := range jobs(5, 3, 4, 100*gpu) {
		s = s.WithSmall(1, j)
	}
	s = s.WithLarge(Large{Job{Key: 99, GPUs: 8, Pass: Never, Stride: Stride(8, 100*gpu)}, []Part{{0, 4}, {1, 4}}})
	ran, _ := s.run(300)
	if ran[99] != 100 {
		t.Errorf("the large job ran in %d of 300 slots, want 100", ran[99])
	}
	if ran[5]+ran[6]+ran[7] != 200 {
		t.Errorf("the second server's small jobs ran in %d of 300 slots, want 200", ran[5]+ran[6]+ran[7])
	}
}

// Gandiva_fair §2.1, Figure 1: two servers of four GPUs, two jobs of two GPUs of A and of B and one
// of C, with the same tickets. Their fair shares are 3, 3 and 2 GPUs, on (d)'s servers and on a
// single one of eight.
func TestGandivaFairFigure1(t *testing.T) {
	a, b, c := jobs(1, 2, 2, 100*gpu), jobs(3, 2, 2, 100*gpu), jobs(5, 1, 2, 100*gpu)
	s := servers(2)
	s = s.WithSmall(0, c[0])
	for k := range 2 {
		s = s.WithSmall(k, a[k])
		s = s.WithSmall(k, b[k])
	}
	split, _ := s.run(40)
	for what, ran := range map[string]map[cluster.JobKey]int{"split": split, "single": alone(slices.Concat(a, b, c), 8, 40)} {
		for user, got := range map[string]int{"A": ran[1] + ran[2], "B": ran[3] + ran[4]} {
			near(t, what+", "+user, 2*float64(got)/40, 3, 0.1)
		}
		near(t, what+", C", 2*float64(ran[5])/40, 2, 0.1)
	}
}

// Gandiva_fair §5.1, Figure 4: one server of four GPUs; three users, with four jobs each of one,
// two and four GPUs. "The gang-aware stride scheduler gives each user their ideal fair share of
// 1.33 GPUs"; then "jobs of User1 and User3 complete and … User2 starts to get the full
// throughput of the 4 GPU server".
func TestGandivaFairFigure4(t *testing.T) {
	one, second, four := jobs(1, 4, 1, 100*gpu), jobs(5, 4, 2, 100*gpu), jobs(9, 4, 4, 100*gpu)
	ran := alone(slices.Concat(one, second, four), 4, 240)
	for user, from := range map[string]cluster.JobKey{"1 GPU": 1, "2 GPUs": 5, "4 GPUs": 9} {
		size := map[string]int{"1 GPU": 1, "2 GPUs": 2, "4 GPUs": 4}[user]
		got := 0
		for k := range cluster.JobKey(4) {
			got += ran[from+k] * size
		}
		near(t, "user with jobs of "+user, float64(got)/240, 4.0/3, 0.02)
	}
	ran = alone(second, 4, 240)
	near(t, "user 2 alone", 2*float64(ran[5]+ran[6]+ran[7]+ran[8])/240, 4, 0)
}

// placing is a cluster of one model on which jobs are placed and run.
type placing struct {
	State
	split Split
}

// placed makes a cluster of servers of four GPUs; tickets are the users'.
func placed(nodes int, tickets ...cluster.MicroGPU) *placing {
	p := &placing{State: State{Models: 1}, split: servers(nodes)}
	for range nodes {
		p.Servers = append(p.Servers, Server{GPUs: 4})
	}
	for _, t := range tickets {
		p.Users = append(p.Users, User{Tickets: []cluster.MicroGPU{t * gpu}})
	}
	return p
}

// fill places a queue, and makes the split stride of what stands.
func (p *placing) fill(t *testing.T, queue []Queued) {
	t.Helper()
	for len(queue) > 0 {
		c, ok := p.Place(queue)
		if !ok {
			t.Fatalf("no place for %d jobs", len(queue))
		}
		p.Jobs = append(p.Jobs, Placed{Key: queue[c.Job].Key, User: queue[c.Job].User, On: c.On})
		queue = slices.Delete(queue, c.Job, c.Job+1)
	}
	p.settle(t)
}

// settle balances, and makes the split stride of what stands; passes begin again.
func (p *placing) settle(t *testing.T) {
	t.Helper()
	for moves := 0; ; moves++ {
		c, ok := p.Balance(gpu / 100)
		if !ok {
			break
		}
		if moves > 10*len(p.Jobs) {
			t.Fatal("balancing does not end")
		}
		p.Jobs[c.Job].On = c.On
	}
	strides := p.Strides()
	p.split = servers(len(p.Servers))
	for i := range p.Jobs {
		j := &p.Jobs[i]
		job := Job{Key: j.Key, GPUs: j.gpus(), Pass: Never, Stride: strides[i]}
		if len(j.On) > 1 {
			p.split = p.split.WithLarge(Large{job, j.On})
		} else {
			p.split = p.split.WithSmall(j.On[0].Node, job)
		}
	}
}

// shares gives the GPUs that each user had on the average of some quanta.
func (p *placing) shares(quanta int) []float64 {
	ran, _ := p.split.run(quanta)
	shares := make([]float64, len(p.Users))
	for i := range p.Jobs {
		shares[p.Jobs[i].User] += float64(ran[p.Jobs[i].Key]*p.Jobs[i].gpus()) / float64(quanta)
	}
	return shares
}

// leave takes a user's jobs away.
func (p *placing) leave(t *testing.T, users ...int) {
	t.Helper()
	p.Jobs = slices.DeleteFunc(p.Jobs, func(j Placed) bool { return slices.Contains(users, j.User) })
	p.settle(t)
}

// queue makes n jobs of a user.
func queue(from cluster.JobKey, user, n, gpus int) []Queued {
	var list []Queued
	for i := range n {
		list = append(list, Queued{Key: from + cluster.JobKey(i), User: user, GPUs: gpus})
	}
	return list
}

// Gandiva_fair §5.2, Figure 5: two servers of four P100; "User1 submits one 8-GPU job …, User2
// submits two 2-GPU jobs …, and User3 submits four 1-GPU jobs": 2.66 GPUs each, and when User1's
// job completes, 4 each.
func TestGandivaFairFigure5(t *testing.T) {
	p := placed(2, 100, 100, 100)
	p.fill(t, slices.Concat(queue(1, 0, 1, 8), queue(2, 1, 2, 2), queue(4, 2, 4, 1)))
	for u, got := range p.shares(300) {
		near(t, fmt.Sprint("user ", u+1), got, 8.0/3, 0.03)
	}
	p.leave(t, 0)
	for u, got := range p.shares(300) {
		if u > 0 {
			near(t, fmt.Sprint("then user ", u+1), got, 4, 0)
		}
	}
}

// Gandiva_fair §5.3, Figure 6: 48 P100, 70 users with one job each and as many tickets as it has
// GPUs: 62 of 1, 3 of 2, 3 of 4, 2 of 8. The classes get 31, 3, 6 and 8 GPUs; when the
// large jobs are done the others get 0.6 GPU for a ticket, of the full cluster. Jobs live on
// servers: then three jobs of four GPUs and three of two cannot be spread finer than that two
// share a server, or one has it with four small ones, half the time each.
func TestGandivaFairFigure6(t *testing.T) {
	var sizes []int
	for _, class := range []struct{ users, gpus int }{{62, 1}, {3, 2}, {3, 4}, {2, 8}} {
		sizes = append(sizes, slices.Repeat([]int{class.gpus}, class.users)...)
	}
	var tickets []cluster.MicroGPU
	var jobs []Queued
	for u, size := range sizes {
		tickets = append(tickets, cluster.MicroGPU(size))
		jobs = append(jobs, Queued{Key: cluster.JobKey((u*37)%70 + 1), User: u, GPUs: size})
	}
	p := placed(12, tickets...)
	p.fill(t, jobs)
	classes := func() map[int]float64 {
		sum := map[int]float64{}
		for u, got := range p.shares(600) {
			sum[sizes[u]] += got
		}
		return sum
	}
	got := classes()
	for size, want := range map[int]float64{1: 31, 2: 3, 4: 6, 8: 8} {
		near(t, fmt.Sprint("jobs of ", size), got[size], want, 0.05*want)
	}
	near(t, "all", got[1]+got[2]+got[4]+got[8], 48, 0.5)
	p.leave(t, 68, 69)
	got = classes()
	for size, want := range map[int]float64{1: 37.2, 2: 3.6, 4: 7.2} {
		near(t, fmt.Sprint("then jobs of ", size), got[size], want, map[int]float64{1: 0.05, 2: 0.2, 4: 0.2}[size]*want)
	}
	near(t, "then all", got[1]+got[2]+got[4], 48, 0.5)
}

// Gandiva_fair §5.3, Figure 7: 64 K80, three users with 128 jobs each of one, four and two GPUs: 21.3
// GPUs each; then two users with 32 each; then one with 64.
func TestGandivaFairFigure7(t *testing.T) {
	p := placed(16, 100, 100, 100)
	p.fill(t, slices.Concat(queue(1, 0, 128, 1), queue(201, 1, 128, 4), queue(401, 2, 128, 2)))
	for u, got := range p.shares(600) {
		near(t, fmt.Sprint("user ", u+1), got, 64.0/3, 0.5)
	}
	p.leave(t, 2)
	for u, got := range p.shares(600) {
		if u < 2 {
			near(t, fmt.Sprint("without user 3, user ", u+1), got, 32, 0.5)
		}
	}
	p.leave(t, 0)
	near(t, "user 2 alone", p.shares(600)[1], 64, 0)
}
