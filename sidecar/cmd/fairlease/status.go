package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/store"
)

// state is what status tells.
type state struct {
	Alive  bool          `json:"alive"` // a daemon is seated and gives signs of life
	Seat   *store.Seated `json:"seat"`
	Mode   string        `json:"mode"`   // as configured here
	Acting []string      `json:"acting"` // partitions, as configured here
	Round  int64         `json:"round"`  // the newest that was written down
	At     *time.Time    `json:"at"`
	Pools  []poolState   `json:"pools"`
	// Jobs counts what the newest round saw, by state.
	Jobs    map[cluster.JobState]int `json:"jobs"`
	Reasons map[cluster.Code]int     `json:"reasons"` // of jobs that wait
	Leases  int                      `json:"leases"`
	Claims  int                      `json:"claims"`
	Bad     []string                 `json:"bad_nodes"`
	Orders  int                      `json:"overrides"`
	Next    *time.Time               `json:"next_lease_end"`
	// Divided is the policy that divides unlike GPU models, Effective what they do for tenants then.
	Divided   string            `json:"divided,omitempty"`
	Effective []store.Effective `json:"effective,omitempty"`
}

// poolState is what the GPUs of one model do.
type poolState struct {
	Pool  string `json:"pool"`
	GPUs  int    `json:"gpus"`
	Busy  int    `json:"busy"`
	Idle  int    `json:"idle"`
	Bad   int    `json:"bad"`
	Claim int    `json:"claimed"`
}

func (p *program) status() *cobra.Command {
	var l listing
	c := &cobra.Command{Use: "status", Short: "is the daemon alive, and how is the cluster?", Args: exactly(),
		Long: `Tell who is seated, when the last round was, and what GPUs and jobs do, from the journal. Where the preset
divides GPU models that are not alike, also what they do for each tenant, by how fast its jobs run on them:

  NOW            the GPUs that its jobs hold
  DUE            those that it is due, after division and trades
  BY_WEIGHT      its share by weight without any trade, as far as its jobs can use that
  MEASURED_RHO   NOW over BY_WEIGHT: above 1 it has more done than without

The exit code is 1 when no daemon gives signs of life.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(cfg *config.Config, s *store.Store) error {
				st, err := readState(c.Context(), cfg, s)
				if err != nil {
					return err
				}
				if l.json {
					err = p.json(st)
				} else {
					p.tellState(l, st)
				}
				if err == nil && !st.Alive {
					return quiet(exitNo)
				}
				return err
			})
		}}
	l.flags(c)
	return c
}

func readState(ctx context.Context, cfg *config.Config, s *store.Store) (*state, error) {
	seat, err := s.Seated(ctx)
	if err != nil {
		return nil, err
	}
	snap, plan, err := s.Last(ctx)
	if err != nil {
		return nil, err
	}
	worth, err := s.Effective(ctx, "")
	if err != nil {
		return nil, err
	}
	rules := cfg.Rules()
	st := &state{Divided: snap.Settings.Divide, Effective: worth, Seat: seat, Alive: seat != nil && seat.Renewed.Add(seat.Silent).Before(seat.Takeover), Mode: string(cfg.Mode), Acting: rules.Acting(),
		Round: plan.Round, Jobs: map[cluster.JobState]int{}, Reasons: map[cluster.Code]int{},
		Leases: len(plan.Memory.Leases), Claims: len(plan.Memory.Claims), Orders: len(snap.Overrides)}
	if plan.Round > 0 {
		at := plan.At.Time()
		st.At = &at
	}
	waits := map[cluster.JobKey]bool{}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Job.State != cluster.Done {
			st.Jobs[c.Job.State]++
		}
		waits[c.Record.Key] = c.Job.State == cluster.Waiting
	}
	for i := range plan.Verdicts {
		if waits[plan.Verdicts[i].Job] {
			st.Reasons[plan.Verdicts[i].Reason.Code]++
		}
	}
	var next cluster.Instant
	for i := range plan.Memory.Leases {
		if end := plan.Memory.Leases[i].End; next == 0 || end < next {
			next = end
		}
	}
	if next > 0 {
		at := next.Time()
		st.Next = &at
	}
	for i := range snap.Nodes {
		if n := &snap.Nodes[i]; n.Bad != "" {
			st.Bad = append(st.Bad, n.Name+" ("+n.Bad+")")
		}
	}
	st.Pools = poolStates(&snap, &plan)
	return st, nil
}

// poolStates counts what GPUs do, in the order of the ledger's pools.
func poolStates(snap *cluster.Snapshot, plan *cluster.Plan) []poolState {
	at := map[string]int{}
	var out []poolState
	for _, a := range plan.Memory.Ledger.Pools {
		at[a.Pool] = len(out)
		out = append(out, poolState{Pool: a.Pool, GPUs: a.GPUs, Bad: a.BadGPUs})
	}
	count := func(holdings []cluster.Holding, add func(*poolState, int)) {
		for _, h := range holdings {
			if i, ok := at[h.Model]; ok {
				add(&out[i], h.GPUs)
			}
		}
	}
	for i := range snap.Cases {
		if c := &snap.Cases[i]; !c.Gone && c.Job.State != cluster.Waiting && c.Job.State != cluster.Done {
			count(c.Job.Holds, func(p *poolState, n int) { p.Busy += n })
		}
	}
	for i := range plan.Memory.Claims {
		count(plan.Memory.Claims[i].Nodes, func(p *poolState, n int) { p.Claim += n })
	}
	for i := range out {
		out[i].Idle = max(out[i].GPUs-out[i].Bad-out[i].Busy, 0)
	}
	return out
}

func (p *program) tellState(l listing, st *state) {
	w := p.words(p.now(), nil)
	t := &table{head: []string{"POOL", ">GPUS", ">BUSY", ">IDLE", ">CLAIMED", ">BAD"}}
	for _, x := range st.Pools {
		t.add(x.Pool, fmt.Sprint(x.GPUs), fmt.Sprint(x.Busy), fmt.Sprint(x.Idle), fmt.Sprint(x.Claim), fmt.Sprint(x.Bad))
	}
	if l.parsable {
		p.table(l, t)
		return
	}
	say := func(name, format string, args ...any) { p.printf("%-9s %s\n", name, fmt.Sprintf(format, args...)) }
	switch {
	case st.Seat == nil:
		say("daemon", "%s", p.paint("none is seated: nobody makes rounds; start one with systemctl start fairlease", "red"))
	case !st.Alive:
		say("daemon", "%s", p.paint(fmt.Sprintf("%s is seated, but has been silent for %s: it is dead or cut off", st.Seat.Holder, cluster.SpanOf(st.Seat.Silent)), "red"))
	default:
		say("daemon", "%s is seated since %s, seen %s ago", st.Seat.Holder, w.Time(cluster.InstantOf(st.Seat.Acquired)), cluster.SpanOf(st.Seat.Silent))
	}
	acting := "no partition is acted on"
	if len(st.Acting) > 0 {
		acting = "acting on " + strings.Join(st.Acting, ", ")
	}
	say("mode", "%s: %s (as configured here)", st.Mode, acting)
	if st.Round == 0 {
		say("round", "none has been written down yet")
		return
	}
	say("round", "%d, written down at %s; rounds in which nothing changes are not", st.Round, w.Time(cluster.InstantOf(*st.At)))
	say("jobs", "%s", countWords(st.Jobs))
	if len(st.Reasons) > 0 {
		say("waiting", "%s", countWords(st.Reasons))
	}
	say("leases", "%d in force, %d claims%s", st.Leases, st.Claims, nextEnd(st, w.Time))
	if st.Orders > 0 {
		say("orders", "%d of administrators in force (fairlease override list)", st.Orders)
	}
	if len(st.Bad) > 0 {
		say("bad", "%s", strings.Join(st.Bad, ", "))
	}
	p.printf("\n")
	p.table(l, t)
	p.effective(l, st)
}

// effective writes what unlike GPU models do for tenants, where a policy divides them.
func (p *program) effective(l listing, st *state) {
	if len(st.Effective) == 0 {
		return
	}
	t := &table{head: []string{"TENANT", ">NOW", ">DUE", ">BY_WEIGHT", ">MEASURED_RHO"}}
	for _, x := range st.Effective {
		rho := "-"
		if x.Rho != nil {
			rho = fmt.Sprintf("%.3f", *x.Rho)
		}
		t.add(x.Tenant, fmt.Sprintf("%.2f", x.Throughput), fmt.Sprintf("%.2f", x.Due), fmt.Sprintf("%.2f", x.Share), rho)
	}
	p.printf("\n%s\n", p.paint(fmt.Sprintf("What GPUs do for tenants by measured speedups, in GPUs of the slowest model (%s divides):", st.Divided), "bold"))
	p.table(l, t)
}

func nextEnd(st *state, say func(cluster.Instant) string) string {
	if st.Next == nil {
		return ""
	}
	return "; the next ends at " + say(cluster.InstantOf(*st.Next))
}
