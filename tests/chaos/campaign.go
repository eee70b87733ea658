package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options of a campaign.
type options struct {
	Seed   uint64
	Suite  string        // "" = by the seed
	Gate   string        // one of gates; "" = by the seed
	Kind   string        // of site, one of sites; "" = by the seed
	Length time.Duration // for how long things fail
	First  []string      // substrings of the names of faults that come first
	Only   string        // substring of the faults' names; "" = all faults
	Soak   bool          // nothing fails: load comes and goes, and samples show what grows
	Keep   string        // a folder for logs and records; "" = they are not kept
}

// gates are the kinds of gates. Every other pair of seeds has either, on both suites.
var gates = []string{"licence", "begin"}

// sites are the kinds of sites: tenants share by weight, and two jobs take turns on a GPU, or three; or tenants have virtual clusters.
var sites = []string{"slices", "cells", "thirds", "cells"}

// sharers gives how many jobs take turns on a GPU; 0 = none do.
func (o options) sharers() int {
	switch o.Kind {
	case "slices":
		return 2
	case "thirds":
		return 3
	}
	return 0
}

// license by which jobs are gated; "" = by begin times.
func (o options) license() string {
	if o.Gate == "begin" {
		return ""
	}
	return "fairlease"
}

// outcome is what a campaign tried and what the oracle says of it.
type outcome struct {
	Options options
	Tried   map[string]int // faults, by name
	Deeds   map[string]int // of users, by name
	Hostile map[string]int // those of them that are hostile and that Slurm accepted, by kind
	Spoilt  int            // answers of slurmrestd
	Jobs    int
	Rounds  int
	Slowest time.Duration // from a fault's healing to the next round
	Books   [2]float64    // GPU-seconds of all jobs that can be compared, by the journal and by slurmdbd
	Share   [2]float64    // GPU-seconds that the honest tenant wanted of its promised GPUs, and held
	Wanting time.Duration // for how long it wanted some while things failed
	Failing time.Duration // for how long things failed
	Turns   turns         // of jobs on GPUs
	LeftOut string        // how much the oracle did not judge
	Samples []sample      // of a soak
	Broken  []string      // broken invariants
}

func (o *outcome) faults() int {
	n := 0
	for _, k := range o.Tried {
		n += k
	}
	return n
}

func (o *outcome) print(w io.Writer) {
	list := func(title string, counts map[string]int) {
		fmt.Fprintf(w, "\n%s:\n", title)
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(w, "%5d  %s\n", counts[name], name)
		}
	}
	list("faults", o.Tried)
	list("what users did", o.Deeds)
	list("hostile deeds that Slurm accepted", o.Hostile)
	fmt.Fprintf(w, "\n%d jobs, %d rounds, %d answers of slurmrestd spoilt; slowest recovery %s\n", o.Jobs, o.Rounds, o.Spoilt, o.Slowest.Round(100*time.Millisecond))
	fmt.Fprintf(w, "GPU-seconds by the journal %.0f, by slurmdbd %.0f (%+.2f %%)\n", o.Books[0], o.Books[1], 100*(o.Books[0]/max(o.Books[1], 1)-1))
	fmt.Fprintf(w, "%s, which is honest, wanted %.0f GPU-s of its promised GPUs, and held %.0f (%.0f %%)\n", promised, o.Share[0], o.Share[1], 100*o.Share[1]/max(o.Share[0], 1))
	fmt.Fprintf(w, "it wanted some for %s of the %s in which things failed\n", o.Wanting, o.Failing.Round(time.Second))
	fmt.Fprintln(w, o.LeftOut)
	if o.Options.sharers() > 0 {
		fmt.Fprintf(w, "%d suspensions were seen; a job was suspended for at most %s, all on a GPU for at most %s; thaw resumed %d\n",
			o.Turns.Seen, o.Turns.Job.round(), o.Turns.GPU.round(), o.Turns.Thawed)
	}
	for _, line := range o.Broken {
		fmt.Fprintf(w, "BROKEN  %s\n", line)
	}
	fmt.Fprintf(w, "\nseed %d, Slurm of Debian %s, gates by %s, %s\n", o.Options.Seed, o.Options.Suite, o.Options.Gate, o.Options.Kind)
	if o.Options.Soak {
		o.printSoak(w)
	}
	fmt.Fprintf(w, "chaos_faults %d\nchaos_lost %d\n", o.faults(), len(o.Broken))
}

// campaign is one run.
type campaign struct {
	*site
	users *users
	plan  *plan
	say   func(string, ...any)
	began time.Time

	mu       sync.Mutex
	faults   []Fault
	tried    map[string]int
	amnesia  []time.Time
	gaps     []Span
	restores []time.Time
	colds    []Span
	wrong    []string // outcomes that no fault may have, as they were seen
	samples  []sample // of a soak
}

// run makes a campaign. An error means that it could not be carried out; what does not hold is in the outcome.
func run(ctx context.Context, o options, say func(string, ...any)) (out *outcome, err error) {
	if o.Suite == "" {
		o.Suite = []string{"forky", "trixie"}[o.Seed%2]
	}
	if o.Gate == "" {
		o.Gate = gates[o.Seed/2%2]
	}
	if o.Kind == "" {
		if o.Kind = sites[o.Seed/4%4]; o.Soak {
			o.Kind = "cells"
		}
	}
	if !slices.Contains(gates, o.Gate) || !slices.Contains(sites, o.Kind) {
		return nil, fmt.Errorf("no gate is called %q, or no site %q; they are %q and %q", o.Gate, o.Kind, gates, sites[:3])
	}
	say("seed %d: Slurm of Debian %s, gates by %s, %s, %s", o.Seed, o.Suite, o.Gate, o.Kind, o.Length)
	plan, err := newPlan(o.Seed, o.Only, o.First...)
	if err != nil {
		return nil, err
	}
	s, err := raise(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if d := s.down(); d != nil && err == nil {
			err = d
		}
	}()
	c := &campaign{site: s, plan: plan, say: say, began: time.Now(), tried: map[string]int{},
		users: &users{site: s, say: say, counts: map[string]int{}, hostile: map[string]int{}}}
	for _, what := range hostile { // the summary also names those that nobody did
		c.users.hostile[what] = 0
	}
	s.proxy.granted = c.users.meddles(ctx, c.plan.meddle)
	for _, x := range s.sidecars {
		if err := x.Start(); err != nil {
			return nil, err
		}
	}
	for i, who := range []int{0, 1, 2, 3} { // jobs that run throughout
		c.users.submit(ctx, manner{script: lasting, args: []string{fmt.Sprintf("--gres=gpu:%d", 1+i%2), "-t", "600", "--comment=saves=term"}}, who)
	}
	for i := range 8 * o.sharers() { // and some that may take turns
		c.users.submit(ctx, manner{script: lasting, args: []string{"--gres=gpu:1", "-t", "600", "--comment=saves=term"}}, i)
	}
	if !c.round(ctx, time.Now()) {
		return nil, fmt.Errorf("no round was ever committed\n%s", c.logs())
	}
	seen := func() (none turns) { return none }
	if o.sharers() > 0 {
		seen = c.watch(ctx)
	}
	working, enough := context.WithCancel(ctx)
	var hands sync.WaitGroup
	failing := Span{From: time.Now()}
	trouble, next := c.fail, c.plan.deed
	if o.Soak {
		trouble, next = c.soak, func() deed {
			d := c.plan.deed()
			d.wait = time.Duration(tide(float64(time.Since(failing.From))/float64(o.Length)) * float64(d.wait))
			return d
		}
	}
	hands.Go(func() { c.users.work(working, next) })
	err = trouble(ctx, o.Length)
	failing.To = time.Now()
	enough()
	hands.Wait()
	if err != nil {
		return nil, err
	}
	s.proxy.granted = nil
	if o.Soak {
		c.wrong = append(c.wrong, grown(c.samples)...)
	}
	facts, err := c.wind(ctx, failing, seen)
	if err != nil {
		return nil, err
	}
	out = &outcome{Options: o, Tried: c.tried, Deeds: c.users.counts, Hostile: facts.Hostile, Spoilt: s.proxy.spoilt(), Jobs: len(facts.Jobs), Rounds: len(facts.Rounds), Broken: judge(facts)}
	out.Turns = facts.Turns
	out.Share[0], out.Share[1] = facts.wanted(promised, facts.Promised)
	out.Wanting, out.Failing = facts.wanting(promised), failing.To.Sub(failing.From)
	out.Samples = c.samples
	all := held(facts.books()[everybody])
	out.Books, out.LeftOut = [2]float64{all.Ours, all.Slurmdb}, facts.leftOut()
	for _, f := range facts.Faults {
		if i := slices.IndexFunc(facts.Rounds, func(at time.Time) bool { return at.After(f.Healed) }); i >= 0 {
			out.Slowest = max(out.Slowest, facts.Rounds[i].Sub(f.Healed))
		}
	}
	if o.Keep != "" {
		if err := c.keep(ctx, o.Keep); err != nil {
			return nil, err
		}
	} else if len(out.Broken) > 0 {
		say("the sidecars' logs:\n%s", c.logs())
	}
	return out, ctx.Err()
}

// fail has things fail, one episode after another, and waits after each until a round is committed.
func (c *campaign) fail(ctx context.Context, length time.Duration) error {
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; {
		episode := c.plan.episode()
		heals := make([]func(context.Context) error, len(episode))
		begun := make([]time.Time, len(episode))
		for i, x := range episode {
			c.say("%s (%s)", x.name, x.hold)
			begun[i] = time.Now()
			heal, err := x.strike(ctx, c, x.who, x.hold)
			if err != nil && len(episode) == 1 {
				return fmt.Errorf("%s: %w", x.name, err)
			} else if err != nil { // the other fault may be in its way: half done is half undone
				c.say("%s failed beside %s: %.300v", x.name, episode[1-i].name, err)
			}
			heals[i] = heal
			c.tried[x.name]++
		}
		order := []int{0}
		if len(episode) == 2 {
			order = []int{0, 1}
			if episode[1].hold < episode[0].hold {
				order = []int{1, 0}
			}
		}
		for _, i := range order {
			x := episode[i]
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(begun[i].Add(x.hold))):
			}
			healed := time.Now()
			if heals[i] != nil {
				if err := heals[i](ctx); err != nil {
					c.say("healing: %s: %.300v", x.name, err)
					again := i
					defer func() { _ = heals[again](ctx) }()
				}
				healed = time.Now()
			}
			c.mu.Lock()
			c.faults = append(c.faults, Fault{What: x.name, Began: begun[i], Healed: healed, GoesOn: x.goesOn && len(episode) == 1})
			c.mu.Unlock()
		}
		last := c.faults[len(c.faults)-1].Healed
		for i := range episode { // together they are healed when the last one is
			c.faults[len(c.faults)-1-i].Healed = last
		}
		if !c.round(ctx, last) {
			c.say("no rounds within %s", patience)
		} else {
			c.say("healed; rounds go on %.1f s later", time.Since(last).Seconds())
		}
	}
	return nil
}

// round waits until rounds are committed after a moment. Jobs are submitted meanwhile, so that there is something to decide.
func (c *campaign) round(ctx context.Context, after time.Time) bool {
	nudge := time.Now().Add(4 * time.Second)
	return until(ctx, patience, func() bool {
		if time.Now().After(nudge) {
			c.users.submit(ctx, manners[0], 0)
			nudge = time.Now().Add(10 * time.Second)
		}
		n, err := ask[int](ctx, c.site, "select count(*)::int from rounds where recorded_at > $1", after)
		return err == nil && n >= goingOn
	})
}

func (c *campaign) forgets(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.amnesia = append(c.amnesia, at)
}

// saw notes an outcome that no fault may have.
func (c *campaign) saw(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// wind ends the campaign: everything is healed, fairlease lets go of Slurm and is looked after, then it governs until all jobs are over.
// Things failed during failing.
func (c *campaign) wind(ctx context.Context, failing Span, seen func() turns) (*Facts, error) {
	f := &Facts{Failing: failing, Amnesia: c.amnesia, Gaps: c.gaps, Restores: c.restores, Logged: c.wrong, Unsent: unsent(c.faults, c.amnesia), Cold: c.colds, Faults: c.faults, Capacity: map[string]float64{}, Promised: promisedCells}
	if c.sharers > 0 {
		f.Sharers, f.Promised = c.sharers, nodes*4/3
	}
	for who := range nodes {
		f.Capacity[c.node(who)] = 4
		_ = c.SetNode(ctx, c.node(who), "resume") // refused where it is up
	}
	// Users release jobs that they hold; the administrator releases jobs that Slurm holds after a
	// failed launch.
	c.letGo(ctx)
	for i := range 10 {
		c.users.submit(ctx, manners[3], i)
	}
	until(ctx, 20*time.Second, func() bool { return c.users.waiting(ctx) >= 4 })
	c.say("release")
	for _, x := range c.sidecars {
		x.Stop(syscall.SIGTERM)
	}
	out, err := c.sidecars[0].Fairlease(ctx, nil, "release")
	c.say("%s", strings.TrimSpace(out))
	if err != nil {
		f.Left = append(f.Left, fmt.Sprintf("fairlease release: %v", err))
	}
	left, err := c.left(ctx)
	if err != nil {
		return nil, err
	}
	f.Left = append(f.Left, left...)
	for _, x := range c.sidecars {
		if err := x.Start(); err != nil {
			return nil, err
		}
	}
	c.say("until all jobs are over")
	if err := c.users.over(); err != nil {
		return nil, err
	}
	until(ctx, 6*time.Minute, func() bool {
		c.letGo(ctx)
		out, err := c.Exec(ctx, "root", "squeue", "-h", "-o", "%i")
		return err == nil && out == ""
	})
	f.Turns = seen()
	if c.samples != nil {
		f.Logged = append(f.Logged, c.whole(ctx)...)
	}
	// A last round books the ends.
	ended := time.Now()
	c.users.submit(ctx, manners[0], 0)
	until(ctx, time.Minute, func() bool {
		out, err := c.Exec(ctx, "root", "squeue", "-h", "-o", "%i")
		return err == nil && out == ""
	})
	booked := until(ctx, patience, func() bool {
		at, err := ask[time.Time](ctx, c.site, "select coalesce(max(at), 'epoch') from ledger")
		busy, err2 := ask[int](ctx, c.site, "select count(*)::int from leases where ended_at is null or ended_at > now()")
		return err == nil && err2 == nil && at.After(ended) && busy == 0
	})
	if !booked {
		c.say("the journal still has leases, or has no round since %s", clock(ended))
	}
	if err := c.collect(ctx, f); err != nil {
		return nil, err
	}
	for _, x := range c.sidecars {
		x.Stop(syscall.SIGTERM)
	}
	return f, nil
}

// letGo releases what is held, by users or by Slurm after a failed launch, resumes nodes that Slurm has drained, as it does where a slurmd
// knows a job that slurmctld forgot ("Duplicate jobid"), and cancels what has lost its account.
func (c *campaign) letGo(ctx context.Context) {
	if drained, err := c.Exec(ctx, "root", "sinfo", "-h", "-N", "-t", "drain", "-o", "%N"); err == nil {
		for node := range strings.FieldsSeq(drained) {
			_ = c.SetNode(ctx, node, "resume") // it may be up by now
		}
	}
	out, err := c.Exec(ctx, "root", "squeue", "-h", "-t", "PD", "-o", "%A %r")
	if err != nil {
		return
	}
	for line := range strings.Lines(out) {
		id, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case why == "JobHeldUser", why == "JobHeldAdmin", strings.Contains(why, "held"):
			_ = c.users.command(ctx, "root", "scontrol", "release", id)
			c.users.count("released at the end: " + why)
		case why == "InvalidAccount":
			c.users.did(id, "cancel")
			_ = c.users.command(ctx, "root", "scancel", id)
		}
	}
}
