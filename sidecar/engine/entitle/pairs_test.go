package entitle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// sharing gives a site that divides between jobs of one GPU, of tenants and kinds, which may share one.
func sharing(jobs ...string) *cluster.Snapshot {
	var cases []cluster.Case
	for i, of := range jobs {
		tenant, kind, _ := strings.Cut(of, "/")
		j := roundtest.Job(int64(1+i), tenant, 1, cluster.Waiting)
		j.Job.Hints = &cluster.Hints{Share: true, Kind: kind, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 14 << 30}}}
		j.Job.Ask = "gres/gpu:1"
		cases = append(cases, j)
	}
	s := roundtest.Snapshot(cases...)
	s.Nodes[0].Shards = 2
	s.Settings.Divide, s.Settings.DivideJobs, s.Settings.Across = "gavel:las-jobs", true, cluster.AnyUser
	s.Settings.Slices = &cluster.Slices{Quantum: cluster.Minute, Pairs: true, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
	return s
}

// declare adds the rate of a kind, beside another one.
func declare(s *cluster.Snapshot, kind, with cluster.Kind, rate float64) {
	s.Declared = append(s.Declared, cluster.Profile{Kind: kind, With: with, Model: "v100", Gang: 1, Rate: rate, Source: cluster.Declared, Basis: profile.File})
}

// A request names two types if they are known to do more beside each other than in turns, and their jobs may share GPUs.
func TestPairsOfTypes(t *testing.T) {
	const all = "bio/cv+bio/cv bio/cv+bio/lm bio/cv+nlp/lm"
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		want   string
	}{
		{"known to do more", func(*cluster.Snapshot) {}, all},
		{"pairs are off", func(s *cluster.Snapshot) { s.Settings.Slices.Pairs = false }, ""},
		{"of a tenant", func(s *cluster.Snapshot) { s.Settings.Across = cluster.SameTenant }, "bio/cv+bio/cv bio/cv+bio/lm"},
		{"of a user", func(s *cluster.Snapshot) {
			s.Settings.Across = cluster.SameUser
			s.Cases[0].Record.User, s.Cases[1].Record.User, s.Cases[2].Record.User, s.Cases[3].Record.User = "u", "v", "u", "u"
		}, "bio/cv@u+bio/lm@u bio/cv@u+nlp/lm@u"},
		{"where tenants queue", func(s *cluster.Snapshot) { s.Settings.Divide = "gavel:las" }, "bio/cv+bio/cv bio/cv+bio/lm"},
		{"a job that may not", func(s *cluster.Snapshot) { s.Cases[1].Job.Hints.Share = false }, "bio/cv+bio/lm bio/cv+nlp/lm"},
		{"a job that is too large", func(s *cluster.Snapshot) { s.Cases[2].Job.Hints.Memory[0].Bytes = 20 << 30 }, "bio/cv+bio/cv bio/cv+nlp/lm"},
		{"no shards", func(s *cluster.Snapshot) { s.Nodes[0].Shards = 0 }, ""},
		{"an odd number of shards", func(s *cluster.Snapshot) { s.Nodes[0].Shards = 3 }, ""},
		{"one is slower than in turns", func(s *cluster.Snapshot) { s.Declared[2].Rate = 0.45 }, "bio/cv+bio/lm bio/cv+nlp/lm"},
		{"nothing is known", func(s *cluster.Snapshot) { s.Declared = nil }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sharing("bio/cv", "bio/cv", "bio/lm", "nlp/lm")
			for _, x := range []struct {
				kind, with cluster.Kind
				rate       float64
			}{{"cv", "", 1}, {"lm", "", 1}, {"cv", "cv", 0.7}, {"cv", "lm", 0.8}, {"lm", "cv", 0.6}, {"lm", "lm", 0.5}} {
				declare(s, x.kind, x.with, x.rate)
			}
			c.change(s)
			d, _ := due(s, nil)
			var got []string
			for _, p := range d.Request.Pairs {
				got = append(got, p.A+"+"+p.B)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
}

// A program has pairs of the types with the most jobs.
func TestPairsOfManyTypes(t *testing.T) {
	var jobs []string
	for i := range 60 {
		jobs = append(jobs, fmt.Sprintf("bio/t%02d", min(i, 59-i))) // 30 types of two jobs each
	}
	s := sharing(jobs...)
	for i := range 30 {
		kind := cluster.Kind(fmt.Sprintf("t%02d", i))
		declare(s, kind, "", 1)
		declare(s, kind, kind, 1)
	}
	d, _ := due(s, nil)
	same := 0
	for _, p := range d.Request.Pairs {
		if p.A == p.B {
			same++
		}
	}
	if most := mostTypes * (mostTypes + 1) / 2; same != mostTypes || len(d.Request.Pairs) > most {
		t.Errorf("%d pairs, %d of them of one type; want at most %d, and %d", len(d.Request.Pairs), same, most, mostTypes)
	}
}
