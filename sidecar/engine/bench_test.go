package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1000, 10000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := simtest.Crowd(n, 100)
			warm := engine.Decide(s) // opens the accounts
			at := s.Ledger.At
			s.Ledger = warm.Memory.Ledger
			s.Ledger.At = at
			b.ReportAllocs()
			for b.Loop() {
				engine.Decide(s)
			}
		})
	}
}

// The same snapshots where a policy has divided the pools: between jobs, and between tenants' kinds. With reports
// jobs are of 20 kinds of each tenant, which were seen on two models of four, and those that run report.
func BenchmarkDecideDivided(b *testing.B) {
	for _, preset := range []string{"gavel:las", "gandiva-fair"} {
		for _, n := range []int{1000, 10000, 50000} {
			for _, reports := range []bool{false, true} {
				name := fmt.Sprintf("%s/%d", preset, n)
				if reports {
					name += "/reports"
				}
				b.Run(name, func(b *testing.B) {
					s := simtest.Crowd(n, 100)
					s.Settings.Divide, s.Settings.DivideJobs = preset, policy.OfJobs(preset)
					if reports {
						report(&s)
					}
					warm := engine.Decide(s) // opens the accounts, and asks
					at := s.Ledger.At
					s.Ledger, s.Parties = warm.Memory.Ledger, warm.Memory.Parties
					s.Ledger.At = at
					d := engine.Divide(*warm.Question)
					if d.Why != "" {
						b.Fatal(d.Why)
					}
					s.Division = &d
					b.ReportAllocs()
					for b.Loop() {
						engine.Decide(s)
					}
				})
			}
		}
	}
}

// report makes the jobs of a snapshot of kinds, of which something has been observed, and has those that run report.
func report(s *cluster.Snapshot) {
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Job.Comment = fmt.Sprintf("kind=k%02d", i%20)
		if c.Job.State == cluster.Running {
			s.Progress = append(s.Progress, cluster.Progress{Job: c.Job.ID, Steps: float64(i), At: s.Now})
		}
	}
	for _, t := range s.Tenants {
		for k := range 20 {
			for _, gang := range []int{1, 2, 4, 8} {
				for m, model := range []string{"a100", "h100", "k80", "v100"} {
					if (k+m)%2 == 0 {
						s.Profiles = append(s.Profiles, cluster.Profile{Kind: cluster.KindOf(t.Name, fmt.Sprintf("k%02d", k)), Model: model, Gang: gang,
							Rate: float64(1+k%5+m) * float64(gang), Source: cluster.Observed, Samples: 5, Spread: 0.1, At: s.Now})
					}
				}
			}
		}
	}
}

// A user's 2,000 jobs, each of a kind of its own with rates on 60 models, beside the same jobs that say nothing.
func BenchmarkDecideTalkative(b *testing.B) {
	for _, n := range []int{500, 2000} {
		for _, silent := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/silent=%v", n, silent), func(b *testing.B) {
				s := talkative(n)
				for i := range s.Cases {
					if s.Cases[i].Record.ChargedTo = s.Ledger.At; silent {
						s.Cases[i].Job.Comment = ""
					}
				}
				warm := engine.Decide(s)
				at := s.Ledger.At
				s.Ledger, s.Parties, s.Profiles = warm.Memory.Ledger, warm.Memory.Parties, warm.Memory.Profiles
				s.Ledger.At = at
				for b.Loop() {
					engine.Decide(s)
				}
			})
		}
	}
}
