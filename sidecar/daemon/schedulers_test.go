package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A virtual cluster's own scheduler orders its jobs from its first answer on. While it fails the built-in order does, the reason is known, and
// the log says so at most once a minute.
func TestASchedulerOfTheSite(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "order")
	write := func(text string) {
		if err := os.WriteFile(program+".new", []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	write(`cat > ` + dir + `/view; echo '{"order": [2, 1]}'`)
	cfg, err := hived(t, dir, strings.Replace(goodCells, "vc: nlp,", "vc: nlp, scheduler: "+program+",", 1))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newLive()
		c.submit("nlp", 2, 4)
		on := newShared()
		r := &rig{log: &lines{}, desk: &desk{shared: on, name: "a"}, dir: dir, ended: make(chan error, 1)}
		r.Daemon = &Daemon{Cluster: c, Decide: simtest.Checked(t), Config: cfg, Log: zerolog.New(r.log), Connect: func(context.Context) (Store, error) { return r.desk, on.gone }}
		r.serve(t)
		order := func() cluster.VCOrder {
			r.service.gate.enter()
			defer r.service.gate.leave()
			if len(r.service.rounds.last.VCOrders) == 0 {
				return cluster.VCOrder{}
			}
			return r.service.rounds.last.VCOrders[0]
		}
		until(t, "its answer is in a snapshot", func() bool { return len(order().Turns) == 2 && order().Turns[0].Job == 2 })
		view, err := os.ReadFile(dir + "/view")
		if err != nil || !strings.Contains(string(view), `"version":1,"vc":"nlp"`) || strings.Count(string(view), `"job":`) != 2 {
			t.Errorf("it saw %s (%v)", view, err)
		}
		write("echo no licence >&2; exit 3")
		c.submit("nlp", 1, 4)
		until(t, "it has failed", func() bool { return order().Why == "it ended with exit status 3" })
		pass(cluster.Minute.Duration() * 3)
		if lines := r.log.with("the scheduler of a virtual cluster failed"); len(lines) == 0 || len(lines) > 5 || lines[0]["stderr"] != "no licence" || lines[0]["vc"] != "nlp" {
			t.Errorf("the log has %v", lines)
		}
		write(`echo '{"order": [3]}'`)
		c.submit("nlp", 1, 4)
		until(t, "it has recovered", func() bool { return order().Why == "" && len(order().Turns) == 1 })
		r.end(t)
	})
}
