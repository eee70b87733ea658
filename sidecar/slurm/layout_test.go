package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// Nodes have the lowest switch above them. Slurm is asked again if a node is new. If it does not tell, the last known switches hold.
func TestSwitchesAreSeen(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, 45)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("scontrol", "#!/bin/sh\nexec cat "+dir+"/$2\n")
	write("config", "PreemptType = (null)\n")
	r.on("GET /slurm/v0.0.45/jobs/", text(`{"jobs":[],"last_update":900,"errors":[]}`))
	c := r.client(func(cfg *Config) { cfg.Scontrol = []string{filepath.Join(dir, "scontrol")} })
	want := func(when string, switches ...string) {
		t.Helper()
		for i, n := range r.see(c).Nodes {
			if n.Switch != switches[i] {
				t.Errorf("%s, node %s is under switch %q, want %q", when, n.Name, n.Switch, switches[i])
			}
		}
	}
	want("while nothing is known", "")
	if notes := strings.Join(c.Notes(), " "); !strings.Contains(notes, "Slurm's topology could not be read") {
		t.Errorf("nobody is told: %s", notes)
	}
	write("topology", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=v[1-2]\nSwitchName=top Level=1 LinkSpeed=1 Nodes=v[1-2] Switches=s1\n")
	want("at the next look", "s1")
	os.Remove(filepath.Join(dir, "topology"))
	node := `{"name":"%s","state":["IDLE"],"gres":"gpu:v100:4","cpus":16,"real_memory":8000,"partitions":["main"]}`
	r.on("GET /slurm/v0.0.45/nodes/", text(fmt.Sprintf(`{"nodes":[`+node+`,`+node+`],"last_update":901,"errors":[]}`, "v1", "v3")))
	want("with a new node, untold", "s1", "")
	write("topology", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=v1\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=v3\n")
	want("with a new node", "s1", "s2")
}
