package engine_test

import (
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// While nothing happens, the record of a job that waits stays as it is, though it is due more from round to round.
func TestRecordsOfJobsThatWaitStay(t *testing.T) {
	site, err := (simtest.Site{Nodes: 4, Jobs: 60, Tenants: 3}).Open()
	if err != nil {
		t.Fatal(err)
	}
	var last cluster.State
	records := map[cluster.JobKey]cluster.Record{}
	waited, decide := 0, site.Loop.Decide
	site.Loop.Brief, site.Lend = false, false
	site.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		p := decide(s)
		for _, r := range p.State.Records {
			was, known := records[r.Key]
			if records[r.Key] = r; !known || r.State != cluster.Waiting || was.State != r.State || was.DueRate != r.DueRate || was.Terms != r.Terms || was.Locked != r.Locked {
				continue
			}
			if waited++; !reflect.DeepEqual(was, r) {
				t.Fatalf("round %d: the record\n%+v\nbecame\n%+v", p.Round, was, r)
			}
			before, _ := cluster.DueBy(&was, last.Ledger.At)
			now, _ := cluster.DueBy(&r, p.State.Ledger.At)
			if grown := now - before; r.DueRate > 0 && (grown-cluster.GPUTime(cluster.MulDiv(int64(r.DueRate), int64(p.At.Sub(last.Ledger.At)), int64(cluster.WholeGPU))))/2 != 0 {
				t.Fatalf("round %d: at %d millionths it was due %d GPU-ms more", p.Round, r.DueRate, grown)
			}
		}
		last = p.State
		return p
	}
	for k := range 30 {
		if _, err := site.Turn(k % 3 / 2); err != nil {
			t.Fatal(err)
		}
	}
	if waited < 500 {
		t.Errorf("%d jobs waited in a round as in the one before", waited)
	}
}
