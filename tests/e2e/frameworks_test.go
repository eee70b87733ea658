package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// saveAndExit is a training script that saves and ends with code 0 at SIGTERM, as transformers does with JIT checkpoints.
const saveAndExit = `import os, signal, sys, time
path = "saved." + os.environ["SLURM_JOB_ID"]
step = int(open(path).read()) if os.path.exists(path) else 0
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
print("start", step, flush=True)
while step < 6000:
    time.sleep(0.1)
    step += 1
    if stop:
        with open(path + ".new", "w") as f:
            f.write(str(step))
        os.replace(path + ".new", path)
        print("saved", step, flush=True)
        sys.exit(0)
`

// requeuesItself is a training script that saves and requeues its job at USR1, as Lightning and submitit do.
const requeuesItself = `n=$(cat saved.$SLURM_JOB_ID 2>/dev/null || echo 0)
trap 'echo $n > saved.$SLURM_JOB_ID; echo saved $n; scontrol requeue $SLURM_JOB_ID; exit 0' USR1
echo start $n
while :; do sleep 0.1; n=$((n+1)); done
`

// Frameworks that end at the notice, run under "fairlease run", and those that requeue themselves: their jobs go on from
// what they saved, and are not COMPLETED. Each gets the signal that it asked for, or that a rule gives it. Their GPUs go
// to the job that they are meant for, though a job of a partition that is not managed waits for them all the time.
func TestFrameworksThatLeaveAtTheNotice(t *testing.T) {
	o := testcluster.Options{Accounts: []testcluster.Account{{Name: "nlp", Users: []string{"alice"}}, {Name: "vision", Users: []string{"bob"}}, {Name: "third", Users: []string{"dan"}}},
		QOS: []testcluster.QOS{{Name: "long"}}, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.settings.MinLease, r.settings.Notice = 12*cluster.Second, 6*cluster.Second
		r.settings.Signals = []cluster.SignalRule{{QOS: "long", Signal: "USR2", To: "steps"}, {Account: "nlp", Signal: "USR1", To: "steps"}}
		home := r.lends("alice")
		library, err := filepath.Abs("../../contrib/python/fairlease")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(home, "fairlease-library", "fairlease"), os.DirFS(library)); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"train.py": saveAndExit, "train.sh": requeuesItself} {
			if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		jobs := map[string]string{}
		for name, x := range map[string]struct {
			command, option string
			gpus            int
		}{
			"signal by QOS, fairlease run":  {"./fairlease run --notice USR2 -- python3 train.py", "--qos=long", 1},
			"signal by job, python3 -m":     {"env PYTHONPATH=fairlease-library python3 -m fairlease run --notice HUP -- python3 train.py", "--comment=signal=HUP", 1},
			"signal by account, of its own": {"bash train.sh", "--comment=mine", 2},
		} {
			script := "#!/bin/bash\n#SBATCH --open-mode=append --output=out.%j\nsrun " + x.command + "\n"
			jobs[name] = r.submit("alice", script, "-A", "nlp", fmt.Sprintf("--gres=gpu:%d", x.gpus), x.option)
		}
		for _, id := range jobs {
			r.waitState(id, 20*time.Second, "RUNNING")
		}
		waits := r.submit("dan", sleeps(3600), "-A", "third", "-p", "free", "--gres=gpu:1")
		gang := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		r.govern()
		r.waitState(gang, 90*time.Second, "RUNNING")
		if state := r.state(waits); state != "PENDING" {
			t.Errorf("the job of the partition that is not managed is %s", state)
		}
		for name, id := range jobs {
			if j, _ := r.Job(r.ctx(), id); j["JobState"] != "PENDING" || j["Restarts"] != "1" {
				t.Errorf("%s: the job is %s after %s restarts, want it queued again after one", name, j["JobState"], j["Restarts"])
			}
		}
		r.keptBefore(jobs)
		for name, id := range jobs {
			var saved, started []int
			r.until(name+" has begun again", 90*time.Second, func() bool {
				saved, started = nil, nil
				for line := range strings.Lines(r.output("alice", "out."+id)) {
					word, n, _ := strings.Cut(strings.TrimSpace(line), " ")
					at, _ := strconv.Atoi(n)
					switch word {
					case "saved":
						saved = append(saved, at)
					case "start":
						started = append(started, at)
					}
				}
				return len(started) > 1
			})
			if started[1] == 0 || started[1] != saved[0] {
				t.Errorf("%s: attempts started at steps %v, saved at %v: want the second to start where the first saved", name, started, saved)
			}
		}
		if state := r.state(waits); state != "PENDING" {
			t.Errorf("the job of the partition that is not managed is %s", state)
		}
	})
}

// keptBefore fails unless the fence of the hand-over stood before each job had its notice.
func (r *rig) keptBefore(jobs map[string]string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	fence := slices.IndexFunc(r.actions, func(a cluster.Action) bool {
		return a.Verb == cluster.Reserve && a.Reservation == cluster.ReservationPrefix+"next"
	})
	for name, id := range jobs {
		told := slices.IndexFunc(r.actions, func(a cluster.Action) bool { return a.Verb == cluster.Notify && a.ID.String() == id })
		if fence < 0 || told < fence || !r.outcomes[fence].OK {
			r.t.Errorf("%s: its notice was action %d, the fence action %d", name, told, fence)
		}
	}
}
