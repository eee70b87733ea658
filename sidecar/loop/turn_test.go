package loop

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// bench is a Loop that records all calls in order; errs makes the step of that name fail.
type bench struct {
	Loop
	seen    cluster.Observation
	rules   Rules
	plan    cluster.Plan // result of Decide, except for the round
	orders  []cluster.Override
	errs    map[string]error
	did     []string
	applied []cluster.Action
	settled []cluster.Outcome
	kept    cluster.State // last committed
	rolls   [][]cluster.Member
}

func newBench() *bench {
	b := &bench{seen: sight(noon, batch(1)), rules: everything, errs: map[string]error{}}
	b.Loop = Loop{Cluster: b, Journal: b, Decide: func(s cluster.Snapshot) cluster.Plan {
		b.did = append(b.did, "decide")
		p := b.plan
		p.Round, p.At = s.Round, s.Now
		p.State.Round, p.State.Ledger.At = s.Round, s.Now
		return p
	}, Configure: func() (Rules, cluster.Settings) { return b.rules, settings }}
	return b
}

func (b *bench) step(name string) error {
	b.did = append(b.did, name)
	return b.errs[name]
}

func (b *bench) Observe(context.Context, cluster.Instant) (cluster.Observation, error) {
	return b.seen, b.step("observe")
}

func (b *bench) Apply(_ context.Context, actions []cluster.Action) []cluster.Outcome {
	_ = b.step("apply")
	b.applied = append(b.applied, actions...)
	out := make([]cluster.Outcome, len(actions))
	for i := range actions {
		out[i] = cluster.Outcome{OK: true, At: b.seen.Now, Took: cluster.Span(actions[i].Job)}
		if actions[i].Verb == cluster.Reclaim {
			out[i].Stopped = out[i].At.Add(out[i].Took - 1)
		}
	}
	return out
}

func (b *bench) Open(context.Context) (cluster.State, error) { return b.kept, b.step("open") }

func (b *bench) Commit(_ context.Context, _ cluster.Snapshot, plan cluster.Plan) error {
	if err := b.step("commit"); err != nil {
		return err
	}
	b.kept = plan.State
	return nil
}

func (b *bench) Settle(_ context.Context, _ cluster.Plan, outcomes []cluster.Outcome) error {
	b.settled = outcomes
	return b.step("settle")
}

func (b *bench) Overrides(context.Context, cluster.Instant) ([]cluster.Override, error) {
	return b.orders, b.step("overrides")
}

func (b *bench) Enrol(_ context.Context, members []cluster.Member) error {
	b.rolls = append(b.rolls, members)
	return b.errs["enrol"]
}

// turn makes one turn and gives the calls in it.
func (b *bench) turn(t *testing.T) (Report, string, error) {
	t.Helper()
	b.did = nil
	r, err := b.Turn(context.Background())
	return r, strings.Join(b.did, " "), err
}

func TestATurn(t *testing.T) {
	b := newBench()
	b.plan.Actions = []cluster.Action{{Verb: cluster.Gate, Job: 1}, {Verb: cluster.Grant, Job: 2, Suppressed: true}, {Verb: cluster.Gate, Job: 3}}
	r, did, err := b.turn(t)
	if err != nil || did != "open observe overrides decide commit apply settle" {
		t.Fatalf("did %q (%v): a plan is written down before it is acted on", did, err)
	}
	if len(b.applied) != 2 || b.applied[0].Job != 1 || b.applied[1].Job != 3 {
		t.Errorf("applied %+v, want what is not suppressed", b.applied)
	}
	if len(r.Outcomes) != 3 || !r.Outcomes[1].Skipped || r.Outcomes[1].OK || r.Outcomes[2].Took != 3 || !slices.Equal(r.Outcomes, b.settled) {
		t.Errorf("outcomes %+v, want one for each action, in their order", r.Outcomes)
	}
	if r.Plan.Round != 1 || r.Jobs != 1 || r.Quiet {
		t.Errorf("report %+v", r)
	}
	if _, did, err = b.turn(t); err != nil || strings.Contains(did, "open") {
		t.Errorf("the second turn did %q (%v): the journal is opened once", did, err)
	}
}

// The users of accounts are stored as users of the accounts' tenants: once, and again after a
// change or an error.
func TestUsersOfTenants(t *testing.T) {
	b := newBench()
	b.seen.Accounts = append(b.seen.Accounts, cluster.Account{Name: "speech", Parent: "nlp", Shares: 1})
	b.seen.Members = []cluster.Member{{Tenant: "nlp", User: "alice"}, {Tenant: "root", User: "root"}, {Tenant: "speech", User: "bob"}}
	b.errs["enrol"] = errors.New("full")
	if _, _, err := b.turn(t); err == nil || !errors.Is(err, ErrJournal) {
		t.Errorf("a roll that was not written down: %v", err)
	}
	delete(b.errs, "enrol")
	for range 2 {
		if _, _, err := b.turn(t); err != nil {
			t.Fatal(err)
		}
	}
	b.seen.Members = b.seen.Members[:1]
	if _, _, err := b.turn(t); err != nil {
		t.Fatal(err)
	}
	all := []cluster.Member{{Tenant: "nlp", User: "alice"}, {Tenant: "nlp", User: "bob"}}
	if diff := cmp.Diff([][]cluster.Member{all, all, all[:1]}, b.rolls); diff != "" {
		t.Error(diff)
	}
}

// A requeued attempt continues until the requeue, a little after the look; a granted one begins only
// after the grant. The next decision knows these times, unless the action failed.
func TestARequeueAndAGrantAreRememberedByTheirTime(t *testing.T) {
	b := newBench()
	b.plan.Actions = []cluster.Action{{Verb: cluster.Reclaim, Job: 3}, {Verb: cluster.Gate, Job: 2}, {Verb: cluster.Reclaim, Job: 1, Suppressed: true}, {Verb: cluster.Grant, Job: 4}}
	b.plan.State.Records = []cluster.Record{{Key: 1}, {Key: 2}, {Key: 3}, {Key: 4}}
	if _, _, err := b.turn(t); err != nil {
		t.Fatal(err)
	}
	decide := b.Decide
	b.Decide = func(s cluster.Snapshot) cluster.Plan {
		for i, want := range []cluster.Instant{0, 0, noon.Add(2), noon.Add(4)} { // the requeue ended the attempt a millisecond before the reclaim was over
			if got := s.Cases[i].Record.Acted; got != want {
				t.Errorf("something was done to job %d at %d, want %d", i+1, got, want)
			}
			if b.kept.Records[i].Acted != 0 {
				t.Error("what is written down changed afterwards")
			}
		}
		return decide(s)
	}
	if _, _, err := b.turn(t); err != nil {
		t.Fatal(err)
	}
}

// "An error means that the round did not happen": nothing is written after a look
// that failed, and nothing is done after a commit that failed.
func TestATurnThatFails(t *testing.T) {
	broken := errors.New("it broke")
	for _, c := range []struct {
		step, did string
		journal   bool
	}{
		{"open", "open", true},
		{"observe", "open observe", false},
		{"overrides", "open observe overrides", true},
		{"commit", "open observe overrides decide commit", true},
	} {
		t.Run(c.step, func(t *testing.T) {
			b := newBench()
			b.plan.Actions = []cluster.Action{{Verb: cluster.Gate, Job: 1}}
			b.errs[c.step] = broken
			r, did, err := b.turn(t)
			if !errors.Is(err, broken) || errors.Is(err, ErrJournal) != c.journal || did != c.did || len(b.applied) != 0 {
				t.Fatalf("did %q, applied %v: %v", did, b.applied, err)
			}
			if len(r.Plan.Actions) != 0 {
				t.Errorf("reports %+v of a round that did not happen", r)
			}
			delete(b.errs, c.step)
			if r, did, err = b.turn(t); err != nil || !strings.HasSuffix(did, "decide commit apply settle") || r.Plan.Round != 1 {
				t.Errorf("the next turn did %q: %v", did, err)
			}
		})
	}
}

// After a commit with an unknown result the journal counts, not the memory.
func TestAfterAFailedCommitTheJournalIsReadAgain(t *testing.T) {
	b := newBench()
	b.errs["commit"] = errors.New("connection lost")
	_, _, _ = b.turn(t)
	b.kept.Round = 5 // another daemon has committed rounds
	delete(b.errs, "commit")
	if r, did, err := b.turn(t); err != nil || !strings.HasPrefix(did, "open") || r.Plan.Round != 6 {
		t.Errorf("did %q, round %d: %v", did, r.Plan.Round, err)
	}
}

// A failed settle is an error, but the round has happened.
func TestASettleThatFails(t *testing.T) {
	b := newBench()
	b.plan.Actions = []cluster.Action{{Verb: cluster.Gate, Job: 1}}
	b.errs["settle"] = errors.New("disk full")
	r, _, err := b.turn(t)
	if !errors.Is(err, ErrJournal) || r.Plan.Round != 1 || len(r.Outcomes) != 1 {
		t.Errorf("report %+v: %v", r, err)
	}
	delete(b.errs, "settle")
	if r, _, err := b.turn(t); err != nil || r.Plan.Round != 2 {
		t.Errorf("the next round is %d: %v", r.Plan.Round, err)
	}
}

func TestAQuietTurn(t *testing.T) {
	quiet := func(t *testing.T, b *bench, want bool) {
		t.Helper()
		r, did, err := b.turn(t)
		if err != nil || r.Quiet != want || want == strings.Contains(did, "decide") || r.Jobs != 1 {
			t.Errorf("quiet %t (%s, %v), want %t", r.Quiet, did, err, want)
		}
	}
	b := newBench()
	b.plan.Next = noon.Add(cluster.Minute)
	b.plan.Actions = []cluster.Action{{Verb: cluster.Gate, Job: 1}}
	b.seen.Unchanged = true
	quiet(t, b, false) // the first turn never is
	quiet(t, b, false) // the effects of the actions must be observed
	b.plan.Actions = nil
	b.seen.Now = noon.Add(10 * cluster.Second)
	quiet(t, b, false)
	b.seen.Now = noon.Add(20 * cluster.Second)
	quiet(t, b, true)
	b.rules.Mode = Observe // a switch of mode is never missed
	quiet(t, b, false)
	quiet(t, b, true)
	b.orders = []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "user", Name: "alice", Until: noon.Add(cluster.Hour)}}
	quiet(t, b, false)
	quiet(t, b, true)
	b.seen.Unchanged = false
	quiet(t, b, false)
	b.seen.Unchanged = true
	quiet(t, b, true)
	b.seen.Now = noon.Add(cluster.Minute) // time alone changes a decision now
	quiet(t, b, false)
}

func TestPreviewWritesAndDoesNothing(t *testing.T) {
	b := newBench()
	b.plan.Actions = []cluster.Action{{Verb: cluster.Gate, Job: 1}}
	snap, plan, err := b.Preview(context.Background())
	if err != nil || snap.Round != 1 || plan.Round != 1 || strings.Join(b.did, " ") != "open observe overrides decide" {
		t.Errorf("did %v: %v", b.did, err)
	}
	b.seen.Unchanged = true // as the preview saw
	if r, did, err := b.turn(t); err != nil || r.Quiet || r.Plan.Round != 1 {
		t.Errorf("the turn after it did %q (%v): what a preview saw is still news", did, err)
	}
}

func TestATurnRefusesWhatCannotBeTrue(t *testing.T) {
	b := newBench()
	b.kept.Ledger.At = noon.Add(cluster.Hour)
	if _, did, err := b.turn(t); err == nil || !strings.Contains(err.Error(), "books are ahead of the clock") || strings.Contains(did, "decide") {
		t.Errorf("did %q: %v", did, err)
	}
}

// A plan's question is answered before the next round, which is not quiet for that reason alone.
func TestAQuestionIsAnswered(t *testing.T) {
	b := newBench()
	b.plan.AllocationRequest = &cluster.AllocationRequest{Policy: "p", Digest: "1"}
	b.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		return cluster.Allocation{Policy: q.Policy, Digest: q.Digest}
	}
	b.turn(t)
	b.seen.Unchanged, b.plan.AllocationRequest = true, nil
	var known *cluster.Allocation
	decide := b.Decide
	b.Decide = func(s cluster.Snapshot) cluster.Plan {
		known = s.Allocation
		p := decide(s)
		p.State.Allocation = s.Allocation
		return p
	}
	if r, _, _ := b.turn(t); r.Quiet || known == nil || known.Digest != "1" {
		t.Errorf("the round after the answer is quiet: %v, and knows %+v", r.Quiet, known)
	}
	if r, _, _ := b.turn(t); !r.Quiet {
		t.Error("nothing has changed, but the round is not quiet")
	}
}

// A slow policy delays no round: rounds use the previous division, and one question is answered
// at a time.
func TestAnAnswerBesideTheRounds(t *testing.T) {
	b := newBench()
	asked, answer := make(chan string, 9), make(chan struct{})
	b.Beside = true
	b.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		asked <- q.Digest
		<-answer
		return cluster.Allocation{Digest: q.Digest}
	}
	b.plan.AllocationRequest = &cluster.AllocationRequest{Digest: "1"}
	b.turn(t)
	b.plan.AllocationRequest = &cluster.AllocationRequest{Digest: "2"}
	b.turn(t)
	if got := <-asked; got != "1" {
		t.Errorf("asked %s first", got)
	}
	if b.memory.Allocation != nil {
		t.Error("there is an answer before it was given")
	}
	close(answer)
	d := <-b.answer // as the next turn will receive it
	b.answer <- d
	b.turn(t)
	if d.Digest != "1" {
		t.Errorf("the answer is %+v", d)
	}
	if got := <-asked; got != "2" {
		t.Errorf("asked %s second", got)
	}
	if len(asked) > 0 {
		t.Error("a question was answered twice")
	}
}

// A policy that panics leads to weighted shares and a reason. Beside the rounds that ends
// nothing. Within a turn it is a bug of the program and panics.
func TestAnAnswerThatBreaksDown(t *testing.T) {
	b := newBench()
	b.Beside = true
	b.Divide = func(cluster.AllocationRequest) cluster.Allocation { panic("no such pivot") }
	b.plan.AllocationRequest = &cluster.AllocationRequest{Policy: "p", Digest: "1", At: noon, NextTrade: 7}
	b.turn(t)
	a := <-b.answer // as the next turn will receive it
	b.answer <- a
	b.plan.AllocationRequest = nil
	r, _, err := b.turn(t)
	want := cluster.Allocation{Policy: "p", Digest: "1", At: noon, NextTrade: 7, Why: "the policy broke down: no such pivot"}
	if err != nil || !reflect.DeepEqual(a.Allocation, want) {
		t.Errorf("it answers %+v (%v), want %+v", a.Allocation, err, want)
	}
	if !strings.Contains(r.Broke, "no such pivot") || !strings.Contains(r.Broke, "TestAnAnswerThatBreaksDown") {
		t.Errorf("of it the turn reports %q, want what and where", r.Broke)
	}
	if r, _, _ = b.turn(t); r.Broke != "" {
		t.Errorf("the next turn reports it again: %q", r.Broke)
	}
}

// The time that an answer is pending is reported, also in a quiet turn.
func TestAnAnswerThatIsLate(t *testing.T) {
	b := newBench()
	answer := make(chan struct{})
	b.Beside = true
	b.Divide = func(q cluster.AllocationRequest) cluster.Allocation { <-answer; return cluster.Allocation{} }
	b.plan.AllocationRequest, b.seen.Unchanged = &cluster.AllocationRequest{Digest: "1", At: noon}, true
	waits := func(want cluster.Span) {
		t.Helper()
		if r, did, _ := b.turn(t); r.Waits != want {
			t.Errorf("in a turn that did %q the answer is waited for since %s, want %s", did, r.Waits, want)
		}
	}
	b.plan.Next = noon.Add(cluster.Hour)
	waits(0)
	b.plan.AllocationRequest = nil
	b.seen.Now = noon.Add(cluster.Minute)
	waits(cluster.Minute)
	close(answer)
	a := <-b.answer
	b.answer <- a
	waits(0)
}

// The first report that shows progress stays, however long rounds are quiet. A save is not lost
// when a later report without one replaces its report.
func TestTheReportsThatTellMostAreKept(t *testing.T) {
	one, two := cluster.JobID{ID: 1}, cluster.JobID{ID: 2}
	got := telling([]cluster.Progress{{Job: one, Steps: 5, At: 10, Saved: 10}, {Job: two, At: 11}},
		[]cluster.Progress{{Job: one, Steps: 7, At: 30}, {Job: one, Steps: 6, At: 20, Saved: 20}, {Job: two, Steps: 1, At: 12}})
	got = telling(got, []cluster.Progress{{Job: one, Steps: 8, At: 40}})
	want := []cluster.Progress{{Job: one, Steps: 5, At: 10, Saved: 10}, {Job: one, Steps: 8, At: 40, Saved: 20}, {Job: two, Steps: 1, At: 12}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// Just after a save is the time to stop a job: it is decided then, even if nothing else has
// changed.
func TestASaveIsNoQuietTurn(t *testing.T) {
	if saved([]cluster.Progress{{Steps: 1}}) || !saved([]cluster.Progress{{Steps: 1}, {Saved: 5}}) {
		t.Error("a save is not seen")
	}
}
