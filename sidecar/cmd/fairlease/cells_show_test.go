package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// floor is a hand-made round of a cluster with cells.
type floor struct {
	snap cluster.Snapshot
	plan cluster.Plan
}

const floorAt = cluster.Instant(1_800_000_000_000) // 2027-01-15 08:00:00 UTC

// newFloor gives racks of two nodes with 4 GPUs, and w1, a node alone.
func newFloor(racks int) *floor {
	f := &floor{}
	f.snap = cluster.Snapshot{Round: 1, Now: floorAt, NextKey: 1000, Settings: cluster.Settings{Preset: "hived"},
		Tenants: []cluster.Tenant{{Name: "chem"}, {Name: "nlp", Weight: 1}, {Name: "vision", Weight: 1}}}
	d := &cluster.Cells{Types: []cluster.CellType{
		{Name: "rack", Child: "node", Split: 2}, {Name: "node", Child: "pair", Split: 2, Node: true}, {Name: "pair", Child: "gpu", Split: 2}, {Name: "gpu", Model: "v100"}}}
	f.snap.Cells = d
	node := func(name string) string {
		f.snap.Nodes = append(f.snap.Nodes, cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}})
		return name
	}
	for i := range racks {
		d.Tops = append(d.Tops, cluster.TopCell{Name: fmt.Sprintf("r%02d", i+1), Type: "rack",
			Nodes: []string{node(fmt.Sprintf("v%03d", 2*i+1)), node(fmt.Sprintf("v%03d", 2*i+2))}})
	}
	d.Tops = append(d.Tops, cluster.TopCell{Name: "w1", Type: "node", Nodes: []string{node("w1")}})
	f.plan = cluster.Plan{Round: 1, At: floorAt, Cells: &cluster.CellReport{Fragmentation: []cluster.Fragmentation{
		{Chain: "rack", Type: "gpu", Broken: 9, Cells: 8*racks + 4}, {Chain: "rack", Type: "node", Broken: 4, Cells: 2*racks + 1}, {Chain: "rack", Type: "rack", Broken: 3, Cells: racks}}}}
	f.plan.State = cluster.State{Round: 1, NextKey: 1000, Ledger: cluster.Ledger{At: floorAt}}
	return f
}

// job adds a job that holds GPUs, by a lease if it has a class, or waits for a reason.
func (f *floor) job(key cluster.JobKey, tenant, user string, class cluster.LeaseClass, why cluster.Reason, parts ...cluster.CellPart) {
	r := cluster.Record{Key: key, ID: cluster.JobID{ID: 100 + int64(key)}, Tenant: tenant, User: user, Account: tenant, Submit: floorAt, State: cluster.Waiting, First: floorAt}
	j := cluster.Job{ID: r.ID, Record: r.ID.ID, User: user, Account: tenant, Partitions: []string{"gpu"}, State: cluster.Waiting, Submit: floorAt, Request: cluster.Request{Size: cluster.Whole(8)}}
	l := cluster.Lease{Job: key, Term: 1, State: cluster.Active, Class: class, Pool: "v100", Granted: floorAt, Start: floorAt, End: floorAt.Add(15 * cluster.Minute), Parts: parts}
	for _, p := range parts {
		h := cluster.Holding{Node: p.Node, Model: "v100"}
		for g := range 4 {
			if p.GPUs>>g&1 == 1 {
				h.Index, h.Size = append(h.Index, g), cluster.Whole(h.Size.Devices+1)
			}
		}
		l.Nodes, l.Size = append(l.Nodes, h), cluster.Whole(l.Size.Devices+h.Size.Devices)
	}
	if len(parts) > 0 {
		r.State, j.State, j.Holds, j.End = cluster.Running, cluster.Running, l.Nodes, floorAt.Add(cluster.Hour)
		j.Request.Size = l.Size
	}
	if class != "" {
		why.Right, why.Until = class, l.End
		f.plan.State.Leases = append(f.plan.State.Leases, l)
	}
	f.plan.State.Records = append(f.plan.State.Records, r)
	f.snap.Cases = append(f.snap.Cases, cluster.Case{Job: j, Record: r, Control: cluster.FullControl})
	f.plan.Statuses = append(f.plan.Statuses, cluster.JobStatus{Job: key, Reason: why})
}

// bind binds a cell on nodes.
func (f *floor) bind(vc, kind string, gpus uint64, nodes []string, b cluster.BoundCell) {
	b.VC, b.Chain, b.Type = vc, "rack", kind
	for _, n := range nodes {
		b.Parts = append(b.Parts, cluster.CellPart{Node: n, GPUs: gpus, Type: kind})
	}
	f.plan.Cells.Bound = append(f.plan.Cells.Bound, b)
}

func (f *floor) view(vc, kind string, reserved, pinned, bound, lost, lent int) {
	f.plan.Cells.Views = append(f.plan.Cells.Views, cluster.CellView{VC: vc, Chain: "rack", Type: kind,
		Reserved: reserved, Pinned: pinned, Bound: bound, Lost: lost, Free: reserved - bound - lost, Lent: lent})
}

// smallFloor has every kind of cell, lease and fault.
func smallFloor() *floor {
	f := newFloor(9)
	const all = 0xf
	holding := cluster.Reason{Code: cluster.ReasonHolding}
	part := func(node string, gpus uint64) cluster.CellPart { return cluster.CellPart{Node: node, GPUs: gpus} }
	f.job(1, "nlp", "ann", cluster.Guaranteed, holding, part("v001", all), part("v002", all))
	f.job(2, "vision", "bob", cluster.Guaranteed, holding, part("v003", 3))
	f.job(3, "chem", "cy", cluster.Opportunistic, holding, part("v003", 4), part("v005", all))
	f.job(4, "nlp", "dee", cluster.Guaranteed, cluster.Reason{Code: cluster.ReasonNotice, For: 9}, part("v007", 1))
	f.job(5, "", "root", "", cluster.Reason{Code: cluster.ReasonUntouched, Note: "interactive"}, part("v018", 8))
	f.job(6, "chem", "cy", cluster.Shared, holding, part("w1", 1))
	f.job(9, "nlp", "ann", "", cluster.Reason{Code: cluster.ReasonCells, Need: cluster.CountOf(8), Pool: "v100", Cell: "rack", Chain: "rack", For: 1, Right: cluster.Guaranteed,
		Until: floorAt.Add(15 * cluster.Minute), Rank: 1})
	f.job(10, "vision", "bob", "", cluster.Reason{Code: cluster.ReasonLost, Need: cluster.CountOf(8), Pool: "v100", Cell: "node", Chain: "rack"})
	f.job(11, "vision", "bob", "", cluster.Reason{Code: cluster.ReasonUnsafe})
	f.plan.State.Leases[3].State = cluster.Noticed
	f.plan.State.Lost = []cluster.CellLoss{{VC: "vision", Chain: "rack", Type: "node", Cells: 1}}
	f.snap.Nodes[8].Bad, f.snap.Nodes[9].Bad = "down", "down"
	f.snap.Nodes[12].Drained = []int{2}
	f.snap.Nodes = append(f.snap.Nodes[:13:13], f.snap.Nodes[14:]...) // v014 is gone
	f.bind("nlp", "rack", all, []string{"v001", "v002"}, cluster.BoundCell{Used: 8, Holders: []cluster.JobKey{1}})
	f.bind("nlp", "node", all, []string{"v012"}, cluster.BoundCell{Pinned: true})
	f.bind("nlp", "node", all, []string{"v007"}, cluster.BoundCell{Used: 1, Holders: []cluster.JobKey{4}})
	f.bind("vision", "pair", 3, []string{"v003"}, cluster.BoundCell{Used: 2, Holders: []cluster.JobKey{2}})
	f.bind("vision", "pair", 12, []string{"v003"}, cluster.BoundCell{Used: 0, Bad: 1, Holders: []cluster.JobKey{99}, Guests: []cluster.JobKey{3}})
	f.view("nlp", "rack", 2, 0, 1, 0, 1)
	f.view("nlp", "node", 1, 1, 1, 0, 0)
	f.view("vision", "node", 2, 0, 0, 1, 0)
	f.view("vision", "pair", 2, 0, 2, 0, 0)
	return f
}

// largeFloor is full of cells bound one by one.
func largeFloor() *floor {
	f := newFloor(200)
	for i := range 300 {
		key, node := cluster.JobKey(i+1), f.snap.Nodes[i].Name
		f.job(key, "nlp", "ann", cluster.Guaranteed, cluster.Reason{Code: cluster.ReasonHolding}, cluster.CellPart{Node: node, GPUs: 3})
		f.bind("nlp", "pair", 3, []string{node}, cluster.BoundCell{Used: 2, Holders: []cluster.JobKey{key}})
	}
	for i := range 60 {
		f.snap.Nodes[320+i].Bad = []string{"down", "", "drained", "", ""}[i%5]
	}
	f.view("nlp", "rack", 4, 0, 0, 0, 0)
	f.view("nlp", "pair", 300, 0, 300, 0, 0)
	f.plan.Cells.Unsafe = []string{"more cells promised than can be had"}
	return f
}

// written commits the round, and gives the environment of a program that reads it.
func (f *floor) written(t *testing.T) []string {
	t.Helper()
	dsn, lead := leading(t)
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context(), f.snap, f.plan); err != nil {
		t.Fatal(err)
	}
	return []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}
}

// now is five minutes after the round.
var floorNow = floorAt.Add(5 * cluster.Minute).Time()

func TestCells(t *testing.T) {
	env := smallFloor().written(t)
	for name, args := range map[string]string{
		"cells-show":               "cells show",
		"cells-show-all":           "cells show --all",
		"cells-show-vc":            "cells show --vc vision",
		"cells-show-json":          "cells show --vc vision --json",
		"explain-cells":            "explain 109",
		"explain-lost":             "explain 110",
		"explain-unsafe":           "explain 111",
		"explain-guaranteed":       "explain 101",
		"explain-opportunistic":    "explain 103",
		"explain-shared":           "explain 106",
		"explain-noticed-in-cells": "explain 104",
	} {
		r := run(t, floorNow, env, strings.Fields(args)...)
		if r.code != failure.OK || r.err != "" {
			t.Errorf("%s: exit code %d\n%s", args, r.code, r.err)
		}
		golden(t, name, r.out)
	}
	if r := run(t, floorNow, env, "cells", "show", "--vc", "astro"); r.code != failure.Misuse || !strings.Contains(r.err, `no virtual cluster "astro"`) {
		t.Errorf("an unknown VC: exit code %d\n%s", r.code, r.err)
	}
	if r := run(t, floorNow, env, "explain", "110", "--json"); !strings.Contains(r.out, `"v013: GPU 2 drained"`) {
		t.Errorf("JSON does not name the hardware:\n%s", r.out)
	}
	if r := run(t, floorNow, env, "cells", "show", "--json"); strings.Count(r.out, `"name": "v0`) != 18 {
		t.Errorf("JSON does not have all nodes:\n%s", r.out)
	}
}

// A large cluster is summarised, unless everything is requested.
func TestManyCells(t *testing.T) {
	env := largeFloor().written(t)
	r := run(t, floorNow, env, "cells", "show")
	golden(t, "cells-show-large", r.out)
	if n := strings.Count(run(t, floorNow, env, "cells", "show", "--all").out, "\n"); n < 200+2*300+300 {
		t.Errorf("all cells are %d lines", n)
	}
}

func TestNoCells(t *testing.T) {
	f := newFloor(1)
	f.snap.Cells, f.plan.Cells = nil, nil
	for _, env := range [][]string{f.written(t), {"FAIRLEASE_DATABASE_URL=" + storetest.Database(t), "FAIRLEASE_CONFIG=" + empty(t)}} {
		if r := run(t, time.Time{}, env, "cells", "show"); r.code != failure.No || !strings.Contains(r.err, "there are no cells in the newest round") {
			t.Errorf("exit code %d\n%s", r.code, r.err)
		}
	}
}
