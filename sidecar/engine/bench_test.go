package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1000, 10000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := simtest.Crowd(n, 100)
			decideAgain(b, s)
		})
	}
}

// decideAgain decides on a snapshot with open accounts.
func decideAgain(b *testing.B, s cluster.Snapshot) {
	warm, at := engine.Decide(s), s.Ledger.At
	s.Ledger = warm.State.Ledger
	s.Ledger.At = at
	b.ReportAllocs()
	for b.Loop() {
		engine.Decide(s)
	}
}

// The snapshots are those of BenchmarkDecide, but the users of each tenant share equally.
func BenchmarkDecideUsers(b *testing.B) {
	for _, n := range []int{1000, 10000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := simtest.Crowd(n, 100)
			s.Settings.Users = cluster.UsersEqual
			for i := range s.Cases {
				user := fmt.Sprintf("user%02d", i%20)
				s.Cases[i].Job.User, s.Cases[i].Record.User = user, user
			}
			decideAgain(b, s)
		})
	}
}

// The snapshots are the same, but a policy has allocated the pools between jobs or between tenants' job
// types. With reports, each tenant has jobs of 20 types that were measured on two models of four, and running
// jobs report.
func BenchmarkDecideDivided(b *testing.B) {
	for _, by := range []string{"gavel:las", "gandiva-fair"} {
		for _, n := range []int{1000, 10000, 50000} {
			for _, reports := range []bool{false, true} {
				name := fmt.Sprintf("%s/%d", by, n)
				if reports {
					name += "/reports"
				}
				b.Run(name, func(b *testing.B) {
					s := simtest.Crowd(n, 100)
					s.Settings.Divide, s.Settings.DivideJobs = by, preset.OfJobs(by)
					if reports {
						simtest.Report(&s)
					}
					warm := engine.Decide(s) // opens the accounts, and asks
					at := s.Ledger.At
					s.Ledger, s.Parties = warm.State.Ledger, warm.State.Parties
					s.Ledger.At = at
					d := engine.Divide(*warm.AllocationRequest)
					if d.Why != "" {
						b.Fatal(d.Why)
					}
					s.Allocation = &d
					b.ReportAllocs()
					for b.Loop() {
						engine.Decide(s)
					}
				})
			}
		}
	}
}

// One user has 2,000 jobs, each with a type of its own and rates on 60 models. They are compared with the
// same jobs without hints.
func BenchmarkDecideTalkative(b *testing.B) {
	for _, n := range []int{500, 2000} {
		for _, silent := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/silent=%v", n, silent), func(b *testing.B) {
				s := talkative(n)
				for i := range s.Cases {
					if s.Cases[i].Record.ChargedTo = s.Ledger.At; silent {
						s.Cases[i].Job.Hints = nil
					}
				}
				warm := engine.Decide(s)
				at := s.Ledger.At
				s.Ledger, s.Parties, s.Profiles = warm.State.Ledger, warm.State.Parties, warm.State.Profiles
				s.Ledger.At = at
				for b.Loop() {
					engine.Decide(s)
				}
			})
		}
	}
}

// The snapshots have a stop budget and the maximum number of habits, which match every job's type. A sixth of
// the running jobs report, a tenth of these just after a save.
func BenchmarkDecideHabits(b *testing.B) {
	for _, learnt := range []bool{false, true} {
		b.Run(fmt.Sprintf("50000/learnt=%v", learnt), func(b *testing.B) {
			s := simtest.Crowd(50000, 100)
			s.Settings.StopAllowance, s.Settings.StopOverheadMilli, s.Settings.StartCost = 15*cluster.Minute, 20, 5*cluster.Minute
			if learnt {
				teach(&s)
			}
			var d engine.Decider
			warm := d.Decide(s) // opens the accounts
			at := s.Ledger.At
			s.Ledger = warm.State.Ledger
			s.Ledger.At = at
			b.ReportAllocs()
			for b.Loop() {
				d.Decide(s)
			}
		})
	}
}

// teach adds habits and reports to a snapshot.
func teach(s *cluster.Snapshot) {
	seen := map[cluster.JobType]bool{}
	for i := range s.Cases {
		j := &s.Cases[i].Job
		j.Command = fmt.Sprintf("/home/%s/project/train.sh --config base-#.yaml --run %c%c", j.User, 'a'+i%16, 'a'+i/16%2)
		ty := cluster.JobType{User: j.User, Command: j.Command, GPUs: j.Request.Size.Devices}
		if !seen[ty] && len(s.Habits) < 10_000 {
			seen[ty] = true
			s.Habits = append(s.Habits, cluster.Habit{Type: ty, Resumed: 1, Last: cluster.Resumed, LastAt: 1, OnTerm: 1, At: 1,
				Starts: []cluster.StartCost{{Model: "v100", Mean: cluster.Minute, Samples: 3}}})
		}
		if j.State == cluster.Running && i%6 == 0 {
			p := cluster.Progress{Job: j.ID, Steps: 10, At: s.Now.Add(-cluster.Second)}
			if i%60 == 0 {
				p.Saved = p.At
			}
			s.Progress = append(s.Progress, p)
		}
	}
	slices.SortFunc(s.Habits, func(x, y cluster.Habit) int { return x.Type.Compare(y.Type) })
}

// Every job of the same snapshot excludes 1,000 of the nodes by a list of its own.
func BenchmarkDecideExcludes(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := simtest.Crowd(50_000, 100)
			excluding(&s, n)
			warm := engine.Decide(s)
			at := s.Ledger.At
			s.Ledger = warm.State.Ledger
			s.Ledger.At = at
			d := new(engine.Decider)
			b.ReportAllocs()
			for b.Loop() {
				d.Decide(s)
			}
		})
	}
}

// excluding makes every job exclude so many nodes, each from a different one on.
func excluding(s *cluster.Snapshot, nodes int) {
	for i := range s.Cases {
		if j := &s.Cases[i].Job; nodes > 0 {
			from := i % max(len(s.Nodes)-nodes, 1)
			j.Exclude = []string{fmt.Sprintf("n[%05d-%05d]", from, from+nodes-1), fmt.Sprintf("x%d", i)}
		}
	}
}
