// Package decisions guards what the engine decides while its code is rewritten: of every round of a world it keeps a
// digest of the plan's meaning (leases, claims, actions, ledger and reasons, but neither names of fields nor words), and
// a test compares them with those that were recorded.
//
// A line of a recording is ten decisions; its columns are named by Columns, so that the first one that differs says where
// to look. All decisions before it were equal. After a change of behaviour that you can explain, record anew:
//
//	go test ./tests/decisions ./tests/scenarios -rewrite
package decisions

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Columns are the parts of a plan that have a digest each.
var Columns = []string{"ledger", "records", "leases", "claims", "actions", "reasons", "market", "cells"}

// fold is how many decisions a line is of.
const fold = 10

// most is how many lines of a world are kept.
const most = 100

// Recording is the digests of what was decided in a world.
type Recording struct {
	lines []string
	first int64 // round of the line that is being written
	n     int   // decisions in it
	sums  []hash.Hash32
}

// Of gives decide, with what it decides recorded.
func (r *Recording) Of(decide func(cluster.Snapshot) cluster.Plan) func(cluster.Snapshot) cluster.Plan {
	return func(s cluster.Snapshot) cluster.Plan {
		p := decide(s)
		r.add(&p)
		return p
	}
}

func (r *Recording) add(p *cluster.Plan) {
	if len(r.lines) == most {
		return
	}
	if r.n == 0 {
		r.first, r.sums = p.Round, make([]hash.Hash32, len(parts))
		for k := range r.sums {
			r.sums[k] = fnv.New32a()
		}
	}
	for k, part := range parts {
		part(r.sums[k], p)
	}
	if r.n++; r.n == fold {
		r.end()
	}
}

// end ends a line.
func (r *Recording) end() {
	if r.n == 0 {
		return
	}
	line := fmt.Sprint(r.first)
	for _, sum := range r.sums {
		line += fmt.Sprintf(" %05x", sum.Sum32()&0xfffff)
	}
	r.lines, r.n = append(r.lines, line), 0
}

// again records all decisions anew.
const again = "go test ./tests/scenarios ./tests/decisions -rewrite"

// Compare compares the recording with the one in a file, or writes it there.
func (r *Recording) Compare(t *testing.T, file string, rewrite bool) {
	t.Helper()
	r.end()
	if rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(r.lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is not there: %s", file, again)
	} else if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range r.lines[:min(len(r.lines), len(was))] {
		if line != was[i] {
			t.Fatalf("%s: line %d has changed: %s; if that is meant: %s", file, i+1, difference(was[i], line), again)
		}
	}
	if len(r.lines) != len(was) {
		t.Fatalf("%s: %d lines, not %d; if that is meant: %s", file, len(r.lines), len(was), again)
	}
}

// difference names the columns in which two lines differ.
func difference(was, is string) string {
	a, b := strings.Fields(was), strings.Fields(is)
	if len(a) != len(b) || a[0] != b[0] {
		return fmt.Sprintf("%q instead of %q", is, was)
	}
	var out []string
	for k, name := range Columns {
		if a[k+1] != b[k+1] {
			out = append(out, name)
		}
	}
	return "from round " + a[0] + " on, decisions differ in " + strings.Join(out, ", ")
}

// parts write the parts of a plan, in the order of Columns.
var parts = []func(io.Writer, *cluster.Plan){ledger, records, leases, claims, actions, reasons, market, cellReport}

func ledger(w io.Writer, p *cluster.Plan) {
	line(w, p.State.Ledger.At)
	for _, t := range p.State.Ledger.Tenants {
		line(w, t.Tenant, t.Pool, t.Base, t.Entitlement, t.Demand, t.Deficit, t.Owed, t.OwedCarry, t.Lots, t.Repays, t.Repaying, t.Destroyed,
			t.Young, t.SelCarry, t.Alloc, t.Due, t.DueCarry, times(t.Buckets))
		extra(w, t.Extra, t.Usable)
	}
	for _, a := range p.State.Ledger.Pools {
		line(w, a.Pool, a.GPUs, a.BadGPUs, a.Capacity, a.Tenants, a.Untouchable, a.Overhead, a.Idle, a.Bad, a.Stops)
	}
	for _, s := range p.Tenants {
		line(w, s.Weight, s.Holds, s.Lent, s.Borrowed, s.Waiting, s.Behind, s.Rho, s.RhoAll)
	}
}

// line writes values as fmt does, but spans to the second: their words for people are cut further.
func line(w io.Writer, values ...any) {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(reflect.ValueOf(v))
	}
	fmt.Fprintln(w, strings.Join(out, " "))
}

func text(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() {
		return fmt.Sprint(v)
	}
	switch x := v.Interface().(type) {
	case cluster.Span:
		return x.Slurm()
	case fmt.Stringer:
		return x.String()
	}
	var parts []string
	switch v.Kind() {
	case reflect.Interface:
		return text(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			parts = append(parts, text(v.Field(i)))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			parts = append(parts, text(v.Index(i)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}

// times gives the GPU time in slices of the window. Their work is part of the sums by which extra differs.
func times(buckets []cluster.Bucket) []any {
	out := make([]any, len(buckets))
	for i, b := range buckets {
		out[i] = struct{ A, B, C any }{b.Start, b.Alloc, b.Due}
	}
	return out
}

// extra writes the work of an account, which is GPU time unless a policy divides GPU models.
func extra(w io.Writer, x cluster.Extra, usable cluster.MicroGPU) {
	if x != (cluster.Extra{}) || usable != 0 {
		line(w, x.Faster, x.Alloc, x.Due, usable)
	}
}

func records(w io.Writer, p *cluster.Plan) {
	line(w, p.State.NextKey)
	for r := range p.State.All() {
		due, carry := cluster.DueBy(r, p.State.Ledger.At)
		line(w, r.Key, r.ID, r.Tenant, r.Submit, r.Restarts, r.State, r.First, r.Done, r.UserBegin, r.UserNodes, r.UserLimit, r.SiteFactor)
		line(w, r.Gate, r.Locked, r.Pinned, r.Alloc, due, carry, r.DueRate, r.Held, r.HeldSince, r.Suspend, r.Ran)
		line(w, r.Terms, r.Moved, r.Failed, r.AvoidUntil, r.AvoidNodes, r.Lost, r.KnownLost, r.UnknownLost, r.Stops, r.Spent, r.Saved, r.Beyond, r.Uncharged)
		extra(w, r.Extra, 0)
		if r.Stopping != nil {
			s := r.Stopping
			line(w, struct{ A, B, C, D, E any }{s.Since, s.Certainty, s.Restarts, s.GPUs, s.Work})
		}
		if r.Conduct != nil {
			c := r.Conduct
			line(w, struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R any }{c.Steps, c.At, c.In, c.First, c.FirstIn, c.Model,
				c.Saved, c.Reports, c.Every, c.Attempts, c.Ran, c.Longest, c.Ours, c.Noticed, c.Booked, c.Spent, c.Last, c.LastAt})
			took(w, c.Takes)
		}
	}
	var lost []any
	for _, x := range p.Losses {
		if x.Time > 0 {
			lost = append(lost, struct{ A, B, C, D, E, F any }{x.Job, x.Term, x.Pool, x.Type, x.Time, x.Certainty})
		}
	}
	habits := make([]any, len(p.State.Habits))
	for i := range habits {
		h := &p.State.Habits[i]
		habits[i] = struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q any }{h.Type, h.Resumed, h.Restarted, h.Last, h.LastAt, h.Redone, h.OnTerm,
			h.OnNotice, h.Completed, h.Shortest, h.Longest, h.Reports, h.Every, h.SavedAt, h.Starts, h.Needed, h.At}
		took(w, h.Takes)
	}
	line(w, habits, lost)
}

// took writes how long a save takes, where that is known.
func took(w io.Writer, takes cluster.Span) {
	if takes > 0 {
		line(w, takes)
	}
}

func leases(w io.Writer, p *cluster.Plan) {
	for _, all := range [][]cluster.Lease{p.State.Leases, p.Ended} {
		for _, l := range all {
			line(w, l.Job, l.Term, l.State, l.Class, l.Pool, l.Size.Devices, l.Nodes, l.Granted, l.Start, l.End, l.NoticedAt, l.Ended, l.Adopted, l.Parts, l.Why)
		}
		line(w)
	}
}

func claims(w io.Writer, p *cluster.Plan) {
	for _, c := range p.State.Claims {
		line(w, c.Job, c.Pool, c.Nodes, c.At, c.Made, c.Gathers, c.Parts)
	}
}

func actions(w io.Writer, p *cluster.Plan) {
	for _, a := range p.Actions {
		line(w, a.Verb, a.Job, a.ID, a.Record, a.UnsplitArray, a.Array, a.Until, a.Nodes, a.NodeList, a.Reservation, a.Accounts, a.Limit, a.SiteFactor,
			a.Lock, a.Unlock, a.Licenses, a.Resume, a.Restarts, a.Signal, a.SignalTo, a.Suppressed)
		reason(w, &a.Reason)
	}
	line(w, p.Next)
}

func reasons(w io.Writer, p *cluster.Plan) {
	for _, v := range p.Statuses {
		fmt.Fprint(w, v.Job, v.Rho)
		reason(w, &v.Reason)
	}
	for _, e := range p.Events {
		line(w, e.Kind, e.Job, e.Node)
	}
}

// reason writes a reason without its note, which is words.
func reason(w io.Writer, r *cluster.Reason) {
	line(w, r.Code, r.Pool, r.Need, r.Free, r.Behind, r.Other, r.OtherBehind, r.Queue, r.OtherJob, r.Rho, r.Rank, r.Until, r.For, r.To, r.Speed,
		r.Trial, r.Right, r.Cell, r.Chain, r.Cut, r.Spent, r.Fits)
}

func market(w io.Writer, p *cluster.Plan) {
	type profile struct { // without the fields of estimates, which are no state
		Kind, With cluster.Kind
		Model      string
		Gang       int
		Rate       float64
		Source     cluster.Source
		Samples    int
		Spread     float64
		At         cluster.Instant
		Basis      string
	}
	var profiles []profile
	for _, e := range p.State.Profiles {
		profiles = append(profiles, profile{e.Kind, e.With, e.Model, e.Gang, e.Rate, e.Source, e.Samples, e.Spread, e.At, e.Basis})
	}
	line(w, p.State.Parties, profiles, p.State.Paces)
	if q := p.AllocationRequest; q != nil {
		line(w, q.Policy, q.At, q.Pools, q.Prices, q.Trades, q.NextTrade)
		for _, b := range q.Bids {
			line(w, b.Party, b.Tenant, b.Weight, b.Speeds, b.Basis, b.Margins, b.Gang, b.Demand, b.Milli, b.Pinned, b.Job, b.Elapsed, b.Steps, b.Did, b.Deadline)
		}
	}
	if d := p.State.Allocation; d != nil {
		line(w, d.Policy, d.Pools, d.Parts, d.Objective, d.Late, d.Trades, d.Undone, d.NextTrade)
	}
}

func cellReport(w io.Writer, p *cluster.Plan) {
	line(w, p.State.Lost, p.State.Lent)
	if c := p.Cells; c != nil {
		line(w, c.Views, c.Bound, c.Fragmentation, len(c.Unsafe))
	}
}
