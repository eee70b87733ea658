package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A gang on two nodes is under one switch of Slurm's topology, though the first idle nodes are under two.
func TestAGangIsUnderOneSwitch(t *testing.T) {
	o := testcluster.Options{
		Nodes:    []testcluster.NodeGroup{{Prefix: "v", Count: 5, Model: "v100", GPUs: 4}},
		Topology: "SwitchName=s1 Nodes=v[1-2]\nSwitchName=s2 Nodes=v[3-5]\nSwitchName=top Switches=s[1-2]\n",
	}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.govern()
		r.waitState(r.submit("bob", sleeps(600), "-A", "vision", "--gres=gpu:4", "-w", "v2"), time.Minute, "RUNNING")
		gang := r.submit("alice", sleeps(600), "-A", "nlp", "-N", "2", "--gres=gpu:4")
		r.waitState(gang, time.Minute, "RUNNING")
		if out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-j", gang, "-o", "%N"); err != nil || strings.TrimSpace(out) != "v[3-4]" {
			t.Errorf("the gang is on %s (%v), want v[3-4]", out, err)
		}
		r.halt()
	})
}

// The proposal for a real Slurm has its racks, and is usable as it is.
func TestCellsOfSlurm(t *testing.T) {
	o := testcluster.Options{
		Nodes:    []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4}, {Prefix: "k", Count: 2, Model: "k80", GPUs: 2}},
		Topology: "SwitchName=s1 Nodes=v[1-2]\nSwitchName=s2 Nodes=v[3-4],k1\nSwitchName=s3 Nodes=k2\nSwitchName=top Switches=s[1-3]\n",
	}
	onBoth(t, o, func(t *testing.T, r *rig) {
		cells := filepath.Join(t.TempDir(), "cells.yaml")
		config := r.configure("preset: hived\ncells: {file: " + cells + "}\n")
		if out, err := r.fairlease(config, "cells", "init", "-o", cells); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(cells)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"{name: v100-rack, split: 2, child: v100-node}", "- v[1-2]  # s1\n      - v[3-4]  # s2\n", "  - type: k80-node\n    nodes: k[1-2]\n",
			"  - vc: nlp  # 50.0 % by weight\n    cells:\n      - {type: k80-node, number: 1}\n      - {type: v100-node, number: 2}\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		for _, args := range [][]string{{"cells", "check"}, {"round", "--dry-run"}} {
			if out, err := r.fairlease(config, args...); err != nil || strings.Contains(out, "remark") {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
		wrong := strings.Replace(string(text), "vc: nlp", "vc: nlpp", 1)
		if err := os.WriteFile(cells, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"cells", "check"}, {"round", "--dry-run"}, {"serve"}} {
			if out, err := r.fairlease(config, args...); err == nil || !strings.Contains(out, `: "nlpp" is no tenant: Slurm has no such account below root; did you mean nlp?`) || !strings.Contains(out, cells+":") {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
	})
}
