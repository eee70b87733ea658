package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

const goodCells = `cellHierarchy:
  - {name: node, split: 4, child: gpu, node: true}
  - {name: gpu, model: v100}
physicalCluster:
  - {type: node, nodes: "v[01-02]"}
vcAssignment:
  - {vc: nlp, cells: [{type: node, number: 1}]}
`

// hived makes a configuration with virtual clusters.
func hived(t *testing.T, dir, cells string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(dir, "f.yaml")
	text := short + "config: {accept_above: 0}\npreset: hived\ncells: {file: cells.yaml}\nfiles: {heartbeats: " + dir + ", state: " + dir + "/state.json}\n"
	for path, text := range map[string]string{file: text, filepath.Join(dir, "cells.yaml"): cells} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Load(file, nil)
}

// A description that does not match the cluster is not used: a reload is refused with file and
// line, and the old one stays.
func TestCellsThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	missing := strings.Replace(goodCells, "v[01-02]", "v[01-03]", 1)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, "a", newShared(), newLive(), dir, short+"config: {accept_above: 0}\n")
		until(t, "a round is made", func() bool { _, there := r.heartbeat("gpu"); return there })
		reload := func(cells, says string) {
			r.service.read = func() (*config.Config, error) { return hived(t, dir, cells) }
			n := len(r.log.with(says))
			r.hangup <- syscall.SIGHUP
			until(t, "it says: "+says, func() bool { return len(r.log.with(says)) > n })
		}
		reload(missing, "is not taken over, the old one stays")
		if line := r.log.with("not taken over")[1]["error"]; line != dir+"/cells.yaml:5: physicalCluster[0].nodes: Slurm has no node with GPUs named v03; correct the list, or add the node to slurm.conf" {
			t.Error(line)
		}
		if r.inForce.Load().Preset != "astraea" {
			t.Error("a configuration was taken over that was refused")
		}
		reload(goodCells, "configuration taken over")
		if r.inForce.Load().Rules().Cells == nil || len(r.log.with("cells: vision: without a virtual cluster")) != 1 {
			t.Error("the cells were not taken over, or it was not said who has none")
		}
		was := r.inForce.Load().Rules().Cells
		reload(goodCells, "configuration taken over")
		if r.inForce.Load().Rules().Cells != was {
			t.Error("a reload without a change makes another description")
		}
		reload(missing, "is not taken over, the old one stays")
		if r.inForce.Load().Rules().Cells != was {
			t.Error("the old description did not stay")
		}
		r.end(t)
	})
}

// While Slurm is away the check is impossible; the first look makes it.
func TestCellsAtTheFirstLook(t *testing.T) {
	dir := t.TempDir()
	c, err := hived(t, dir, strings.Replace(goodCells, "model: v100", "model: a100", 1))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		on, log := newLive(), &lines{}
		on.away = errors.New("no answer")
		d := &Daemon{Cluster: on, Decide: simtest.Checked(t), Config: c, Log: zerolog.New(log),
			Connect: func(context.Context) (Store, error) { return &desk{shared: newShared(), name: "a"}, nil }}
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(t.Context()) }()
		until(t, "it says that Slurm is away", func() bool { return len(log.with("round failed; nothing is changed until one succeeds")) > 0 })
		on.mu.Lock()
		on.away = nil
		on.mu.Unlock()
		var problems config.Problems
		if err := <-ended; !errors.Is(err, ErrCells) || !errors.As(err, &problems) ||
			problems.Error() != dir+`/cells.yaml:5: physicalCluster[0].nodes: v[01-02]: Slurm has 4 v100, type "node" has 4 a100; correct cellHierarchy, or list the node under another type` {
			t.Errorf("the daemon ended with %v", err)
		}
	})
}

// A daemon of another cluster ends at once, leading or not, with both names. So does one whose
// slurmrestd suddenly belongs to another cluster.
func TestAnotherClustersDaemon(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		journal := newShared()
		first := start(t, "a", journal, newLive(), dir, short)
		until(t, "the first leads", func() bool { journal.mu.Lock(); defer journal.mu.Unlock(); return journal.of.Name == "virtual" })
		d := &Daemon{Cluster: newLive(), Decide: simtest.Checked(t), Config: settings(t, dir, short), Log: zerolog.Nop(),
			Identify: func(context.Context) (cluster.Identity, error) { return cluster.Identity{Name: "beta"}, nil },
			Connect:  func(context.Context) (Store, error) { return &desk{shared: journal, name: "b"}, nil }}
		if err := d.Serve(t.Context()); !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), "virtual, not beta") {
			t.Errorf("another cluster's standby ended with %v", err)
		}
		journal.mu.Lock()
		journal.of = cluster.Identity{Name: "gamma"} // as if the journal had been replaced
		journal.mu.Unlock()
		first.service.rounds.candidate.mine = cluster.Identity{}
		if err := <-first.ended; !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), "gamma, not virtual") {
			t.Errorf("the leading daemon ended with %v", err)
		}
		first.stop()
	})
}
