package slurm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSockets(t *testing.T) {
	t.Parallel()
	for has, want := range map[string]int{
		"gpu:v100:4(S:0-1)": 2, "gpu:v100:2(S:0),gpu:v100:2(S:1)": 2, "gpu:v100:8(S:0,2-3)": 3, "gpu:v100:4(S:1)": 1,
		"gpu:v100:4": 0, "": 0, "gpu:v100:4(S:x)": 0, "shard:v100:8(S:0-1)": 0, "gpu:4(S:0-1),shard:8(S:0-3)": 2,
	} {
		if got := sockets(has); got != want {
			t.Errorf("%q: %d sockets, want %d", has, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Group{
		"":                                    nil,
		"No topology information available\n": nil,
		"SwitchName=s1 Level=0 LinkSpeed=1 Nodes=v[1-2]\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=v[3-4]\nSwitchName=top Level=1 LinkSpeed=1 Nodes=v[1-4] Switches=s[1-2]\n":      {{"s1", []string{"v1", "v2"}}, {"s2", []string{"v3", "v4"}}},
		"BlockName=b1 BlockIndex=0 Nodes=v[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=v[3-4] BlockSize=2\nAggregatedBlock=b[1-2] BlockIndex=2 Nodes=v[1-4] BlockSize=4\n": {{"b1", []string{"v1", "v2"}}, {"b2", []string{"v3", "v4"}}},
	} {
		got, err := groups(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %s %v", text, d, err)
		}
	}
	if _, err := groups("SwitchName=s1 Level=0 Nodes=v[2-1]\n"); err == nil {
		t.Error("took a list of nodes that is none")
	}
}
