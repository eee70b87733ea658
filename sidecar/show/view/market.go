package view

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// Stake is the entitlement of a job's party to every model, with reasons.
type Stake struct {
	Party  string          `json:"party"`
	Kind   cluster.Kind    `json:"kind"`
	Policy string          `json:"policy"`
	Models []ModelStake    `json:"models"` // by pool
	Trades []cluster.Trade `json:"trades,omitempty"`
	// CellTrades are the trades of cells of the job's tenant that are agreed.
	CellTrades []cluster.CellTrade `json:"cell_trades,omitempty"`
	WhyNot     string              `json:"why_not,omitempty"` // the policy has no answer
	Bound      string              `json:"bound,omitempty"`   // how far the division may be from the best, in words
	Late       bool                `json:"late,omitempty"`    // its deadline cannot be met
	// Unasked is true if the policy has not been asked since the party arrived: until then it has
	// a part of its tenant's weighted share.
	Unasked bool `json:"unasked,omitempty"`

	ofJob bool // the party is the job itself
}

// ModelStake is the entitlement to one model.
type ModelStake struct {
	Model   string           `json:"model"`
	Due     cluster.MicroGPU `json:"due_micro_gpus"`
	Speedup float64          `json:"speedup"` // over the reference model; 1 if unknown
	Low     float64          `json:"low"`
	High    float64          `json:"high"`
	Source  cluster.Source   `json:"source,omitempty"` // "" = unknown
	// Trial is the job that measures the speed of the party's kind on this model; "" = none.
	Trial string `json:"trial,omitempty"`
}

// StakeOf gives the stake of a job; nil = it has none.
func StakeOf(job cluster.JobKey, snap *cluster.Snapshot, plan *cluster.Plan) *Stake {
	at, ok := engine.StakeOf(*snap, job)
	if !ok {
		return nil
	}
	s := &Stake{Party: at.Party, ofJob: snap.Settings.DivideJobs, Kind: at.Kind, Policy: snap.Settings.Divide, Unasked: true}
	who := people(snap)
	for p, x := range at.Speedups {
		m := ModelStake{Model: x.Model, Speedup: x.Value, Low: x.Low, High: x.High, Source: x.Source, Trial: who.name(at.Trials[p])}
		for _, due := range plan.State.Parties {
			if due.Party == at.Party && due.Pool == x.Model {
				m.Due = due.Entitlement
			}
		}
		s.Models = append(s.Models, m)
	}
	if s.ofJob {
		s.Party = "job " + who.name(job)
	}
	if d := snap.Allocation; d != nil && d.Policy == s.Policy {
		s.Unasked = !slices.ContainsFunc(d.Parts, func(p cluster.Part) bool { return p.Party == at.Party })
		s.WhyNot, s.Bound, s.Late = d.Why, explain.Bound(d), slices.Contains(d.Late, job)
		for _, t := range d.Trades {
			if t.FastTo.Kind == s.Party || t.SlowTo.Kind == s.Party {
				s.Trades = append(s.Trades, t)
			}
		}
		tenant := ""
		if c, ok := who[job]; ok {
			tenant = c.Record.Tenant
		}
		for _, t := range d.CellTrades {
			if t.FastTo.Tenant == tenant || t.SlowTo.Tenant == tenant {
				s.CellTrades = append(s.CellTrades, t)
			}
		}
	}
	return s
}

// Words words the stake, with a line for each model and trade. named is the model that the job
// requests.
func (s *Stake) Words(named string) []string {
	head := fmt.Sprintf("%s divides them; jobs of type %s are due", s.Policy, s.Kind)
	if s.ofJob {
		head = fmt.Sprintf("%s divides them; this job is due", s.Policy)
	}
	if named != "" {
		head = fmt.Sprintf("it names %s and stays there; such jobs of its type are due", named)
	}
	if s.WhyNot != "" {
		head = fmt.Sprintf("%s has no answer (%s); using weighted shares until the inputs change", s.Policy, s.WhyNot)
	}
	lines := []string{head}
	if s.Bound != "" {
		lines = append(lines, "  "+s.Bound)
	}
	if s.Unasked {
		lines = append(lines, "  a part of the tenant's share by weight, until the policy has divided again")
	}
	if s.Late {
		lines = append(lines, "  its deadline cannot be kept: the policy ignores it")
	}
	for _, m := range s.Models {
		line := fmt.Sprintf("  %s %s: %s", gpuCount(m.Due), m.Model, explain.Worth(m.Speedup, m.Source))
		if m.Trial != "" {
			line += fmt.Sprintf("; job %s is the trial for this model", m.Trial)
		}
		lines = append(lines, line)
	}
	for i := range s.Trades {
		lines = append(lines, fmt.Sprintf("  by trade %d %s", s.Trades[i].ID, explain.Trade(&s.Trades[i])))
	}
	for i := range s.CellTrades {
		lines = append(lines, fmt.Sprintf("  by trade %d of cells %s", s.CellTrades[i].ID, explain.CellTrade(&s.CellTrades[i])))
	}
	return lines
}

// Ahead is a preview of a round's decisions, with the answer to its question.
type Ahead struct {
	cluster.Plan
	Answer *cluster.Allocation `json:"answer,omitempty"` // nil = the known division stays in force
	Audit  *cluster.Audit      `json:"audit,omitempty"`

	Due []cluster.TenantStatus `json:"-"` // of tenants, with the answer
}

// Write writes the entitlements to each model, and the trades.
func (a *Ahead) Write(p *Page, snap *cluster.Snapshot) {
	if !snap.Settings.Divides() {
		return
	}
	d, when := a.Answer, "from the next round on"
	if d == nil {
		d, when = snap.Allocation, "unchanged"
	} else if now := snap.Allocation; now != nil && now.At > 0 && now.Policy == snap.Settings.Divide {
		when += "; until then as of " + p.wordsAt(a.At, nil).Time(now.At) // long ago where the policy is slow
	}
	p.Printf("\n%s\n", p.Paint(fmt.Sprintf("Divided by %s, %s:", snap.Settings.Divide, when), "bold"))
	if d != nil && d.Why != "" {
		p.Printf("%s: using weighted shares until the inputs change\n", d.Why)
	}
	if text := explain.Bound(d); text != "" {
		p.Printf("%s\n", text)
	}
	t := &Table{Head: []string{"TENANT", "MODEL", ">BY_WEIGHT", ">DUE", ">WANTS", ">HAS"}}
	for i := range a.Due {
		x := &a.Due[i]
		t.Add(x.Tenant, x.Pool, gpuCount(x.Base), gpuCount(x.Entitlement), gpuCount(x.Demand), fmt.Sprint(x.Holds))
	}
	p.Table(t)
	if d != nil {
		for i := range d.Trades {
			p.Printf("Trade %d: %s\n", d.Trades[i].ID, explain.Trade(&d.Trades[i]))
		}
		for i := range d.CellTrades {
			p.Printf("Trade %d of cells: %s\n", d.CellTrades[i].ID, explain.CellTrade(&d.CellTrades[i]))
		}
		for _, key := range d.Late {
			p.Printf("Late:    the deadline of %s cannot be kept: the policy ignores it\n", p.wordsAt(a.At, people(snap).name).Name(key))
		}
		for _, u := range d.Undone {
			p.Printf("Undone:  %s %s of trade %d: %s\n", gpuCount(u.FastGPUs), fastOf(snap.Allocation, u.ID), u.ID, explain.Undone(u.Why))
		}
	}
	p.audited(a.Audit)
}

// fastOf gives the fast model of a trade of the previous division.
func fastOf(was *cluster.Allocation, id int64) string {
	if was != nil {
		for i := range was.Trades {
			if was.Trades[i].ID == id {
				return was.Trades[i].Fast
			}
		}
		for i := range was.CellTrades {
			if was.CellTrades[i].ID == id {
				return was.CellTrades[i].Fast
			}
		}
	}
	return "fast GPUs"
}

// audited writes an audit.
func (p *Page) audited(a *cluster.Audit) {
	if a == nil {
		return
	}
	t := &Table{Head: []string{"TENANT", ">INCENTIVE", ">MOST_ENVY", "OF", ">SAYS+20%", ">SAYS-20%"}}
	for _, x := range a.Tenants {
		envies := cluster.Envy{}
		for _, e := range a.Envy {
			if e.Tenant == x.Tenant && e.Ratio > envies.Ratio {
				envies = e
			}
		}
		t.Add(x.Tenant, fmt.Sprintf("%.3f", x.Incentive), fmt.Sprintf("%.3f", envies.Ratio), envies.Of, gain(x.More), gain(x.Less))
	}
	t.Tint = func(row, column int) string {
		if column == 1 && a.Tenants[row].Incentive < 0.999 {
			return "red"
		}
		return ""
	}
	p.Printf("\n%s\n", p.Paint("Fairness of this division:", "bold"))
	p.Table(t)
	if a.Slack >= 0 {
		p.Printf("Slack:   %.2f%% more throughput is possible with no tenant losing\n", 100*a.Slack)
	}
	for _, m := range a.Misreports {
		what := m.Model
		if m.Than != "" {
			what += " over " + m.Than
		}
		p.Printf("Suspect: %s is declared at %.4g on %s, but observed at %.4g (declared by %s)\n", m.Kind, m.Said, what, m.Seen, m.By)
	}
}

// gain writes a relative gain in per cent.
func gain(part *float64) string {
	if part == nil {
		return "not tried"
	}
	return fmt.Sprintf("%+.1f%%", 100**part)
}
