package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// bourse returns a snapshot of four k80 and four v100. Each tenant has the given number of waiting one-GPU
// jobs, and its speedup on v100 over k80 is given.
func bourse(divide string, jobs int, speedups ...float64) cluster.Snapshot {
	s := boundary(4, 4)
	s.Settings.Divide, s.Settings.DivideJobs = divide, preset.OfJobs(divide)
	s.Nodes[0].GPUs[0].Model = "k80"
	s.Tenants, s.Cases = nil, nil
	for t, speedup := range speedups {
		name := fmt.Sprintf("t%02d", t)
		s.Tenants = append(s.Tenants, cluster.Tenant{Name: name, Weight: 1})
		for range jobs {
			c := waits(cluster.JobKey(len(s.Cases)+1), name, 1)
			c.Job.Name, c.Record.Name = "train", "train"
			s.Cases = append(s.Cases, c)
		}
		kind := cluster.KindOf(name, name+".train")
		s.Declared = append(s.Declared, cluster.Profile{Kind: kind, Model: "k80", Gang: 1, Rate: 2}, cluster.Profile{Kind: kind, Model: "v100", Gang: 1, Rate: 2 * speedup})
	}
	return s
}

func TestAnAudit(t *testing.T) {
	for _, by := range preset.Dividing() {
		s := bourse(by, 6, 1.2, 6)
		q := engine.Decide(s).AllocationRequest
		d := engine.Divide(*q)
		s.Allocation = &d
		a, ok := engine.Audit(s)
		if !ok || a.Policy != by || a.At != s.Now || len(a.Tenants) != 2 || len(a.Envy) != 2 || a.Tenants[0].Tenant != "t00" {
			t.Fatalf("%s: %v %+v", by, ok, a)
		}
		if text, err := json.Marshal(a); err != nil {
			t.Errorf("%s: %v: %s", by, err, text)
		}
		again, _ := engine.Audit(s)
		if first, second := asJSON(t, a), asJSON(t, again); first != second {
			t.Errorf("%s: two audits differ: %s and %s", by, first, second)
		}
		for i, x := range a.Tenants {
			if x.More == nil || x.Less == nil {
				t.Fatalf("%s: no gain of %s", by, x.Tenant)
			}
			// Each policy keeps its promises (OEF Table 1).
			switch by {
			case "gandiva-fair", "gavel:las", "oef:coop":
				if x.Incentive < 1-1e-5 {
					t.Errorf("%s: %s would be better off alone: %v", by, x.Tenant, x.Incentive)
				}
			case "oef:noncoop":
				if *x.More > 1e-5 {
					t.Errorf("%s: %s gains %v by saying more", by, x.Tenant, *x.More)
				}
			}
			if by == "oef:coop" && a.Envy[i].Ratio > 1+1e-5 {
				t.Errorf("%s: %+v", by, a.Envy[i])
			}
		}
		if by == "oef:coop" && (a.Slack < 0 || a.Slack > 1e-5) {
			t.Errorf("%s: slack %v", by, a.Slack)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Division by weight alone treats different GPUs alike: no tenant envies another, but efficiency is lost.
// With 2 of each model they have 2 + 2·1.2 and 2 + 2·6, 18.4 together. t00 can have its 4.4 from 4 k80 and a
// third of a v100, and t01 22 from the rest.
func TestAnAuditOfNoTrade(t *testing.T) {
	a, ok := engine.Audit(bourse("gandiva-fair:no-trade", 6, 1.2, 6))
	if !ok {
		t.Fatal("no audit")
	}
	for _, e := range a.Envy {
		if e.Ratio < 1-1e-6 || e.Ratio > 1+1e-6 {
			t.Errorf("%s envies %s: %v", e.Tenant, e.Of, e.Ratio)
		}
	}
	for _, x := range a.Tenants {
		if *x.More != 0 || *x.Less != 0 || x.Incentive < 1-1e-6 || x.Incentive > 1+1e-6 {
			t.Errorf("%s: incentive %v, gains %v and %v", x.Tenant, x.Incentive, *x.More, *x.Less)
		}
	}
	if want := (4.4+6*(4-1./3))/18.4 - 1; a.Slack < want-1e-5 || a.Slack > want+1e-5 {
		t.Errorf("slack %v, want %v", a.Slack, want)
	}
}

// With many tenants, misreports are computed in turn, and only the greatest envy is reported.
func TestAnAuditOfMany(t *testing.T) {
	s := bourse("gandiva-fair", 1, slices.Repeat([]float64{1.5, 4}, 40)...)
	seen := map[string]bool{}
	for range 3 {
		a, ok := engine.Audit(s)
		if !ok || len(a.Tenants) != 80 || len(a.Envy) != 80 {
			t.Fatalf("%v: %d tenants, %d pairs", ok, len(a.Tenants), len(a.Envy))
		}
		n := 0
		for _, x := range a.Tenants {
			if x.More != nil {
				seen[x.Tenant] = true
				n++
			}
		}
		if n != 32 {
			t.Errorf("misreports of %d tenants in a day", n)
		}
		s.Now = s.Now.Add(cluster.Day)
		s.Ledger.At = s.Now
	}
	if len(seen) != 80 {
		t.Errorf("after three days the misreports of %d tenants are known", len(seen))
	}
}

func TestAnAuditOfNothing(t *testing.T) {
	s := bourse("", 1, 2)
	if _, ok := engine.Audit(s); ok {
		t.Error("there is an audit where nothing is divided")
	}
	if _, ok := engine.StakeOf(s, 1); ok {
		t.Error("there is a stake where nothing is divided")
	}
	if _, ok := engine.Audit(bourse("gandiva-fair", 0, 2)); ok {
		t.Error("there is an audit without jobs")
	}
	for _, by := range []string{"unheard-of", "oef:coop", "gavel:las"} {
		s := bourse(by, 2, 1e9, 1)
		s.Nodes[1].Bad = "down"                                     // one model only
		s.Tenants[1].Weight = 0                                     // only idle GPUs
		s.Allocation = &cluster.Allocation{Policy: by, Digest: "?"} // without parts
		if a, ok := engine.Audit(s); ok {
			asJSON(t, a)
		}
	}
}

func TestAnAuditTellsMisreports(t *testing.T) {
	s := bourse("oef:coop", 2, 6, 2)
	kind := s.Declared[0].Kind
	for model, rate := range map[string]float64{"k80": 2, "v100": 4} {
		s.Profiles = append(s.Profiles, cluster.Profile{Kind: kind, Model: model, Gang: 1, Rate: rate, Source: cluster.Observed, Samples: 20, Spread: 0.01, At: s.Now})
	}
	slices.SortFunc(s.Profiles, func(a, b cluster.Profile) int { return a.Compare(&b) })
	a, _ := engine.Audit(s)
	if len(a.Misreports) != 2 || a.Misreports[0].Kind != kind || a.Misreports[1].Than != "k80" || a.Misreports[1].Said != 6 || a.Misreports[1].Seen != 2 {
		t.Errorf("suspected: %+v", a.Misreports)
	}
}

func TestTheStakeOfAJob(t *testing.T) {
	for _, x := range []struct{ by, party string }{{"gandiva-fair", "t01/t01.train"}, {"gavel:las", "t01/0000000003"}} {
		s := bourse(x.by, 2, 1.2, 6)
		stake, ok := engine.StakeOf(s, 3)
		if !ok || stake.Party != x.party || stake.Kind != "t01/t01.train" || len(stake.Speedups) != 2 || stake.Speedups[1].Value != 6 || stake.Speedups[1].Source != cluster.Declared {
			t.Errorf("%s: %v %+v", x.by, ok, stake)
		}
		s.Cases[2].Job.Request.Model = "v100"
		if stake, _ = engine.StakeOf(s, 3); x.by == "gandiva-fair" && stake.Party != x.party+"@v100" {
			t.Errorf("a job that names a model is of %s", stake.Party)
		}
		if _, ok := engine.StakeOf(s, 99); ok {
			t.Error("a job that is not there has a stake")
		}
	}
}

// A false speed changes the prices of trades too: an audit is the same whether or not prices go by terms of their own, as long as these are equal.
func TestAnAuditLiesInPricesToo(t *testing.T) {
	s := bourse(preset.GandivaFair, 6, 1.2, 2, 6)
	audit := func(terms bool) cluster.Audit {
		q := engine.Decide(s).AllocationRequest
		for i := range q.Bids {
			if own := q.Bids[i].Terms(); terms {
				q.Bids[i].Priced = &own
			}
		}
		return answer.Audit(q, preset.PolicyOf(q.Policy), s.Now, nil)
	}
	plain := audit(false)
	if asJSON(t, audit(true)) != asJSON(t, plain) {
		t.Errorf("prices by terms of their own: %s, without these: %s", asJSON(t, audit(true)), asJSON(t, plain))
	}
	if !slices.ContainsFunc(plain.Tenants, func(x cluster.AuditedTenant) bool { return *x.More != 0 || *x.Less != 0 }) {
		t.Error("no false speed changes anything: nothing was tested")
	}
}
