package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// poisoned is a bench with so many jobs, whose engine panics on some of them, by id, and whose
// journal refuses others.
func poisoned(t *testing.T, jobs int, breaks, refuses []int64) (b *bench, kept *[]*Breakdown, committed *cluster.Snapshot) {
	t.Helper()
	b = newBench()
	b.seen.Jobs = nil
	for id := range int64(jobs) {
		b.seen.Jobs = append(b.seen.Jobs, batch(id+1))
	}
	b.seen.Progress = []cluster.Progress{{Job: cluster.JobID{ID: breaks[0]}, Steps: 1, At: noon}}
	kept, committed = new([]*Breakdown), new(cluster.Snapshot)
	b.Keep = func(s cluster.Snapshot, broke *Breakdown) {
		if len(s.Cases) != jobs {
			t.Errorf("a snapshot of %d jobs is kept, not of %d", len(s.Cases), jobs)
		}
		*kept = append(*kept, broke)
	}
	b.Decide = func(s cluster.Snapshot) cluster.Plan {
		b.did = append(b.did, "decide")
		p := cluster.Plan{Round: s.Round, At: s.Now, State: cluster.State{Round: s.Round, NextKey: s.NextKey, Ledger: cluster.Ledger{At: s.Now}}}
		for i := range s.Cases {
			c := &s.Cases[i]
			if !c.Gone && slices.Contains(breaks, c.Job.ID.ID) && c.Job.Aside == "" {
				var none []int
				_ = none[c.Job.ID.ID] // index out of range
			}
			c.Record.State = c.Job.State
			p.State.Records = append(p.State.Records, c.Record)
		}
		return p
	}
	b.Journal = refusing{b, refuses, committed}
	return b, kept, committed
}

// refusing is a journal that refuses some jobs unless they are set aside.
type refusing struct {
	Journal
	jobs []int64
	snap *cluster.Snapshot
}

type refusal struct{ keys []cluster.JobKey }

func (refusal) Error() string            { return "refused" }
func (refusal) Why() string              { return "a number out of range" }
func (r refusal) Jobs() []cluster.JobKey { return r.keys }

func (j refusing) Commit(ctx context.Context, s cluster.Snapshot, p cluster.Plan) error {
	var r refusal
	for i := range s.Cases {
		if c := &s.Cases[i]; slices.Contains(j.jobs, c.Job.ID.ID) && c.Job.Aside == "" {
			r.keys = append(r.keys, c.Record.Key)
		}
	}
	if len(r.keys) > 0 {
		return r
	}
	*j.snap = s
	return j.Journal.Commit(ctx, s, p)
}

// aside gives, by id, why jobs are set aside.
func aside(s *cluster.Snapshot) map[int64]string {
	out := map[int64]string{}
	for i := range s.Cases {
		if c := &s.Cases[i]; c.Job.Aside != "" {
			out[c.Job.ID.ID] = c.Job.Aside
		}
	}
	return out
}

// Jobs on which the engine panics, and jobs that the journal refuses, are set aside. The round is
// made with the rest, and so are the next ones, without another search.
func TestPoisonIsSetAside(t *testing.T) {
	for name, bad := range map[string][]int64{"one": {7}, "the first": {1}, "the last": {50}, "several": {2, 3, 31, 50}} {
		t.Run(name, func(t *testing.T) {
			b, kept, s := poisoned(t, 50, bad, []int64{20, 40})
			r, did, err := b.turn(t)
			if err != nil || r.Plan.Round != 1 {
				t.Fatalf("%v: %s", err, did)
			}
			got := aside(s)
			for _, id := range append(bad, 20, 40) {
				if got[id] == "" {
					t.Errorf("job %d is not set aside", id)
				}
			}
			if len(got) != len(bad)+2 || !strings.Contains(got[bad[0]], "out of range") || !strings.Contains(got[20], "a number out of range") {
				t.Errorf("set aside are %v", got)
			}
			for i := range s.Cases {
				c := &s.Cases[i]
				if why, out := got[c.Job.ID.ID]; out != (c.Control == cluster.Unmanaged) || out && (c.ControlWhy != "is set aside: "+why || c.Job.Request.Size.Devices != 0 || c.Job.User != "alice") {
					t.Errorf("%+v", c)
				}
			}
			if len(s.Progress) != 0 {
				t.Error("the report of a job that is set aside is still there")
			}
			if len(*kept) != 1 || !strings.Contains((*kept)[0].Stack, "rescue_test.go") {
				t.Errorf("kept %v; want the first snapshot, and where it broke", *kept)
			}
			if n := strings.Count(did, "decide"); n > 10*(len(bad)+1) {
				t.Errorf("%d decisions", n)
			}
			if _, did, err := b.turn(t); err != nil || strings.Count(did, "decide") != 1 || len(*kept) != 1 || len(aside(s)) != len(bad)+2 {
				t.Errorf("the next turn: %s %v", did, err)
			}
			b.seen.Jobs = b.seen.Jobs[10:] // 1 to 10 have ended
			if _, _, err := b.turn(t); err != nil {
				t.Error(err)
			}
			for key := range b.aside {
				if key <= 10 {
					t.Errorf("job %d is over, and still set aside", key)
				}
			}
		})
	}
}

// An engine that panics whatever is set aside ends the round before anything is written or done.
func TestABreakdownIsNoRound(t *testing.T) {
	b, kept, _ := poisoned(t, 5, []int64{1}, nil)
	b.Decide = func(cluster.Snapshot) cluster.Plan {
		b.did = append(b.did, "decide")
		panic("out of its mind")
	}
	_, did, err := b.turn(t)
	var broke *Breakdown
	if !errors.As(err, &broke) || broke.Cause != "out of its mind" || strings.Contains(did, "commit") || strings.Contains(did, "apply") || len(*kept) != 1 || len(b.aside) != 0 {
		t.Errorf("%v: %s, %d kept, %v set aside", err, did, len(*kept), b.aside)
	}
	if errors.Is(err, ErrJournal) {
		t.Error("it is no error of the journal")
	}
}

// If there are too many to find in one round, it excludes all jobs of their user. The next round
// looks further, and in the end the user's other jobs are back.
func TestALotOfPoison(t *testing.T) {
	var all []int64
	for id := range int64(mostAside + 5) {
		all = append(all, id+1)
	}
	b, _, s := poisoned(t, 60, all, nil)
	for i := range b.seen.Jobs[:40] {
		b.seen.Jobs[i].User = "mallory"
	}
	if _, _, err := b.turn(t); err != nil || len(b.aside) != mostAside || len(aside(s)) != 40 {
		t.Fatalf("%v, %d set aside, %d for the round", err, len(b.aside), len(aside(s)))
	}
	for range 2 {
		if _, _, err := b.turn(t); err != nil || len(b.aside) != len(all) || len(aside(s)) != len(all) {
			t.Errorf("%v, %d set aside, %d for the round", err, len(b.aside), len(aside(s)))
		}
	}
}

// Poison of too many users is an error of the round; the next one continues the search.
func TestPoisonOfManyUsers(t *testing.T) {
	var all []int64
	for id := range int64(2*mostAside + 5) {
		all = append(all, id+1)
	}
	b, _, s := poisoned(t, 60, all, nil)
	for i := range b.seen.Jobs {
		b.seen.Jobs[i].User = fmt.Sprint("user", i)
	}
	if _, _, err := b.turn(t); err == nil || len(b.aside) != mostAside {
		t.Fatalf("%v, %d set aside", err, len(b.aside))
	}
	for range 2 {
		if _, _, err := b.turn(t); err != nil || len(aside(s)) != len(all) {
			t.Errorf("%v, %d set aside", err, len(aside(s)))
		}
	}
}

// Without Keep a breakdown is a panic, so that tests and simulations fail.
func TestABreakdownIsAPanicWhereNobodyKeepsIt(t *testing.T) {
	b, _, _ := poisoned(t, 5, []int64{3}, nil)
	b.Keep = nil
	defer func() {
		if recover() == nil {
			t.Error("nothing was heard of it")
		}
	}()
	b.turn(t)
}

// A plan that the engine has corrected is made and committed, and its snapshot is kept.
func TestASnapshotOfACorrectedPlanIsKept(t *testing.T) {
	b, kept, _ := poisoned(t, 5, []int64{9}, nil)
	decide := b.Decide
	b.Decide = func(s cluster.Snapshot) cluster.Plan {
		p := decide(s)
		p.Events = []cluster.Event{{Kind: cluster.EventDrift, Text: "slow"}, {Kind: cluster.EventDecisionDiffers, Text: "it differs"}}
		return p
	}
	if _, did, err := b.turn(t); err != nil || !strings.Contains(did, "commit") || len(*kept) != 1 || (*kept)[0].Cause != "it differs" {
		t.Errorf("%v: %s, %d kept", err, did, len(*kept))
	}
}
