package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// Lists and structs inside records are replaced, never changed: by that the journal knows records that are as they were.
func TestRecordsOfEarlierRoundsStay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		switch rapid.IntRange(0, 3).Draw(rt, "chooser") {
		case 0:
			c.share()
			c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset"))
		case 1:
			c.world.Settings.Preset, c.world.Settings.Chooser = "hived", "astraea"
			c.world.Rules.Cells = c.drawCells()
		}
		type kept struct {
			records []cluster.Record // copies, which share their lists
			text    string
		}
		var earlier []kept
		keep := func(records []cluster.Record) {
			records = slices.Clone(records)
			text, err := json.Marshal(records)
			if err != nil {
				rt.Fatal(err)
			}
			earlier = append(earlier[max(len(earlier)-5, 0):], kept{records, string(text)})
		}
		d := &engine.Decider{Brief: c.world.Rules.Cells == nil && rapid.Bool().Draw(rt, "brief")}
		c.world.Loop.Brief, c.world.Lend = d.Brief, true
		c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			seen := make([]cluster.Record, len(s.Cases))
			for i := range s.Cases {
				seen[i] = s.Cases[i].Record
			}
			keep(seen)
			p := d.Decide(s)
			keep(p.State.Records)
			for _, k := range earlier {
				if text, err := json.Marshal(k.records); err != nil || string(text) != k.text {
					rt.Fatalf("round %d: records of an earlier round were\n%s\nand became\n%s (%v)", s.Round, k.text, text, err)
				}
			}
			return p
		}
		c.submit()
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			c.disturb()
			c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
		}
	})
}
