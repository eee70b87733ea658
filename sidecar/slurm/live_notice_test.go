package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// listener follows a line that sets OUT: the shell and its step write the signals that they
// receive there.
const listener = `
trap 'echo shell >> $OUT' USR1
srun perl -e '
	$SIG{USR1} = sub { open(F, ">>", $ARGV[0]); print F "step\n"; close F };
	open(R, ">", "$ARGV[0].ready"); close R;
	sleep 1 while 1' $OUT &
wait; wait; wait
`

// notices: which process receives which signal.
func notices(l *live) {
	home := l.slurm.Home("bob")
	for to, want := range map[string]string{"steps": "step", "batch": "shell", "all": "shell step"} {
		out := filepath.Join(home, "notice-"+to)
		script := "#!/bin/bash\nOUT=$HOME/notice-" + to + listener
		id := job(l.submit("bob", script, "--gres=gpu:1"))
		j := l.until(id, "running", in(cluster.Running))
		l.eventually("the step runs", func() bool { _, err := os.Stat(out + ".ready"); return err == nil }, func() string { return "" })
		n := act(cluster.Notify, j)
		n.Signal, n.SignalTo = "USR1", to
		l.apply(n)
		var heard []string
		l.eventually("notice to "+to+" heard as "+want, func() bool {
			b, _ := os.ReadFile(out)
			heard = strings.Fields(string(b))
			slices.Sort(heard)
			return strings.Join(heard, " ") == want
		}, func() string { return fmt.Sprint(heard) })
		if j, _ := find(l.see(), id); j.State != cluster.Running {
			l.Errorf("notice to %s: %+v", to, j)
		}
	}
	// A script without steps: nothing receives the signal, and no harm is done.
	plain := job(l.submit("bob", sleeper, "--gres=gpu:1"))
	j := l.until(plain, "running", in(cluster.Running))
	n := act(cluster.Notify, j)
	n.Signal, n.SignalTo = "USR1", "steps"
	o := l.client.Apply(l.Context(), []cluster.Action{n})
	if o[0].Error != "" && !o[0].Skipped {
		l.Errorf("notice to a job without steps: %+v", o[0])
	}
	waits := job(l.submit("bob", sleeper, "--gres=gpu:1", "--begin=now+1hour"))
	j, _ = find(l.see(), waits)
	n = act(cluster.Notify, j)
	n.Signal, n.SignalTo = "USR1", "all"
	if o := l.client.Apply(l.Context(), []cluster.Action{n}); !o[0].Skipped {
		l.Errorf("notice to a waiting job: %+v", o[0])
	}
	if j, _ := find(l.see(), plain); j.State != cluster.Running {
		l.Errorf("plain job after its notice: %+v", j)
	}
}
