package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/operate/trial"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// login is a folder with fake Slurm commands. Jobs get the model of their --gres. One waits at
// the first query, then runs and reports, and has ended at the seventh.
const login = `#!/bin/bash
cd "$FAKE" || exit 9
case ${0##*/} in
sbatch)
  echo "$*" >> sbatch.log
  case $* in *:p100:*) echo "sbatch: error: Batch job submission failed: Invalid account" >&2; exit 1;; esac
  id=$(($(cat ids 2>/dev/null || echo 100)+1)); echo $id > ids; echo 0 > looks.$id
  case $* in *:k80:*) echo 10 > rate.$id;; *:v100:*) echo 40 > rate.$id;; *:t4:*) echo fails > rate.$id;; *) echo mute > rate.$id;; esac
  echo $id;;
scontrol)
  [ "$2" = node ] && { cat nodes; exit; }
  id=$4 n=$(($(cat looks.$4)+1)) rate=$(cat rate.$4); echo $n > looks.$id
  state=RUNNING exit=0:0
  [ $n = 1 ] || [ -e gated.$rate ] && state=PENDING
  [ $n -ge 7 ] && state=TIMEOUT
  [ $rate = fails ] && [ $n -gt 1 ] && state=FAILED exit=3:0
  [ -e cancelled.$id ] && state=CANCELLED
  [ $state = RUNNING ] && [ $rate != mute ] && [ -d reports/$ME ] && echo "{\"steps\": $((n*rate))}" > reports/$ME/.new && touch -d @$((1900000000+n)) reports/$ME/.new && mv reports/$ME/.new reports/$ME/$id.json
  nodes=n1; [ $state = PENDING ] || [ $state = CANCELLED ] && nodes="(null)"
  echo "JobId=$id JobState=$state Reason=BeginTime ExitCode=$exit NodeList=$nodes StdOut=/home/me/slurm-$id.out";;
scancel)
  echo "$*" >> scancel.log
  for id in "${@:2}"; do r=$(cat rate.$id); [ -e gated.$r ] && touch cancelled.$id; done;;
esac
exit 0
`

// node is a line of scontrol.
func node(name, model string, gpus, used int) string {
	return fmt.Sprintf("NodeName=%s Gres=gpu:%s:%d GresDrain=N/A GresUsed=gpu:%s:%d(IDX:0) State=MIXED Partitions=gpu\n", name, model, gpus, model, used)
}

// desk is an environment for the command profile.
type desk struct {
	t   *testing.T
	dir string
	env []string
	now time.Time
	at  func() // at every reading of the clock
}

func newDesk(t *testing.T, nodes ...string) *desk {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: t.TempDir(), now: time.UnixMilli(1_800_000_000_000), at: func() {}}
	bin := filepath.Join(d.dir, "bin")
	for _, dir := range []string{bin, filepath.Join(d.dir, "reports", me.Username)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(d.dir, "nodes"), strings.Join(nodes, ""))
	write(t, filepath.Join(d.dir, "train.sh"), "#!/bin/bash\n#SBATCH --gres=gpu:8 --account=x-a --output=a-G.out\n")
	for _, name := range []string{"sbatch", "scontrol", "scancel"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(login), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(d.dir)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("FAKE", d.dir)
	t.Setenv("ME", me.Username)
	d.env = []string{"TZ=UTC", "FAIRLEASE_CONFIG=" + empty(t), "FAIRLEASE_PROGRESS_FOLDER=" + filepath.Join(d.dir, "reports")}
	return d
}

// ask runs the program; the clock advances by five seconds per reading.
func (d *desk) ask(ctx context.Context, args ...string) result {
	d.t.Helper()
	var out, errs bytes.Buffer
	p := &program{out: &out, err: &errs, env: d.env, clock: func() time.Time {
		d.at()
		d.now = d.now.Add(5 * time.Second)
		return d.now
	}}
	code := p.run(ctx, append([]string{"profile"}, args...), strings.NewReader(""))
	return result{code, out.String(), errs.String()}
}

func (d *desk) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(d.dir, name))
	return string(text)
}

// The output of a profile: one model was measured as four times as fast as another, and the
// others have a reason why they were not measured.
func TestProfile(t *testing.T) {
	d := newDesk(t, node("k1", "k80", 4, 0), node("v1", "v100", 4, 3), node("a1", "a100", 4, 4), node("p1", "p100", 4, 0), node("t1", "t4", 4, 0), node("m1", "mi50", 4, 0))
	r := d.ask(t.Context(), "bert", "train.sh", "-A", "nlp", "--minutes", "3", "--", "--lr", "0.1 x")
	if r.code != failure.No {
		t.Errorf("exit code %d, though models were not measured", r.code)
	}
	golden(t, "profile", r.out+"\n"+r.err)
	if got := d.read("sbatch.log"); !strings.Contains(got, "--parsable --job-name=profile-bert --comment=kind=bert,gpus=idle --time=3 --partition=gpu --nodes=1 --gres=gpu:k80:1 --account=nlp train.sh --lr 0.1 x\n") ||
		strings.Contains(got, "a100") {
		t.Errorf("sbatch was given\n%s", got)
	}
	r = d.ask(t.Context(), "bert", "train.sh", "--models", "v100,k80,v100", "--json")
	var trials []trial.Trial
	if err := json.Unmarshal([]byte(r.out), &trials); err != nil || r.code != failure.OK || len(trials) != 2 || trials[1].Profile == nil || trials[1].Profile.Speedup < 3.9 {
		t.Errorf("exit code %d, %v\n%s", r.code, err, r.out)
	}
}

// A dry run and one that does not wait list the jobs that would be, or were, submitted.
func TestProfileWithoutWaiting(t *testing.T) {
	d := newDesk(t, node("k1", "k80", 4, 2), node("k2", "k80", 4, 2), node("v1", "v100", 8, 3))
	r := d.ask(t.Context(), "bert", "train.sh", "--gpus", "4", "--dry-run")
	want := regexp.MustCompile(`^env FAIRLEASE_PROGRESS_EVERY=10 \S+ FAIRLEASE_PROGRESS_URL= sbatch \S+ --comment=kind=bert,gpus=idle --time=5 --partition=gpu --nodes=2 --gres=gpu:k80:2 train.sh
env .* --nodes=1 --gres=gpu:v100:4 train.sh
$`)
	if r.code != failure.OK || !want.MatchString(r.out) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	r = d.ask(t.Context(), "bert", "train.sh", "--gpus", "8", "--dry-run")
	if r.code != failure.OK || !strings.Contains(r.out, "# k80: 4 of 8 GPUs are idle; --wait-for-idle") || !strings.Contains(r.out, "# v100: 5 of 8") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	r = d.ask(t.Context(), "bert", "train.sh", "--gpus", "12", "--dry-run", "--wait-for-idle")
	if r.code != failure.OK || strings.Count(r.out, "cannot hold 12 GPUs") != 2 {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if d.read("sbatch.log") != "" {
		t.Error("a dry run has submitted something")
	}
	d.env = d.env[:len(d.env)-1] // no way to receive reports
	r = d.ask(t.Context(), "bert", "train.sh", "--gpus", "8", "--wait-for-idle", "--no-wait")
	if got := d.read("sbatch.log"); r.code != failure.OK || !strings.Contains(got, "--nodes=2 --gres=gpu:k80:4 train.sh") || !strings.Contains(r.out, "submitted") || !strings.Contains(r.out, "fairlease profiles bert") {
		t.Errorf("exit code %d\n%s%s%s", r.code, r.out, r.err, got)
	}
}

// An interrupt cancels jobs that have not started, and lists the others.
func TestProfileInterrupted(t *testing.T) {
	d := newDesk(t, node("k1", "k80", 4, 0), node("v1", "v100", 4, 0))
	write(t, filepath.Join(d.dir, "gated.10"), "") // the job on k80s waits
	ctx, interrupt := context.WithCancel(t.Context())
	d.at = func() {
		if strings.TrimSpace(d.read("looks.102")) == "3" {
			interrupt()
		}
	}
	r := d.ask(ctx, "bert", "train.sh")
	if r.code != failure.No || !strings.Contains(r.err, "interrupted: jobs that had not started are cancelled; left 102\nnext: scancel 102 ends them") || !strings.Contains(r.err, "k80: job 101 pending (BeginTime)") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if got := d.read("scancel.log"); got != "--state=PENDING 101 102\n" {
		t.Errorf("scancel was given %q", got)
	}
	if !strings.Contains(r.out, "cancelled before it started") || !strings.Contains(r.out, "running") {
		t.Errorf("it says\n%s", r.out)
	}
}

func TestProfileRefuses(t *testing.T) {
	d := newDesk(t, node("k1", "k80", 4, 0))
	write(t, filepath.Join(d.dir, "words.txt"), "no script\n")
	write(t, filepath.Join(d.dir, "empty.sh"), "")
	write(t, filepath.Join(d.dir, "gpus.sh"), "#!/bin/bash\n#SBATCH -t 5 --gpus-per-node=4\necho\n")
	write(t, filepath.Join(d.dir, "array.sh"), "#!/bin/bash\n#SBATCH -a 1-9\n")
	for _, c := range []struct {
		args string
		code int
		err  string // pattern
	}{
		{"bert", failure.Misuse, `needs a job type \(KIND\) and a batch script`},
		{"nlp/bert train.sh", failure.Misuse, `"nlp/bert" is no kind: .*\nnext: the tenant is that of --account`},
		{"b=t train.sh", failure.Misuse, `"b=t" is no kind`},
		{"bert none.sh", failure.Misuse, `the batch script cannot be used\n  open none.sh: no such file`},
		{"bert words.txt", failure.Misuse, `does not begin with #!`},
		{"bert empty.sh", failure.Misuse, `does not begin with #!`},
		{"bert gpus.sh", failure.Misuse, `it has "#SBATCH -t 5 --gpus-per-node=4", which would add to the options`},
		{"bert array.sh", failure.Misuse, `it has "#SBATCH -a 1-9"`},
		{"bert bin", failure.Misuse, `the batch script cannot be used\n  read bin: is a directory`},
		{"bert train.sh --gpus 0", failure.Misuse, `--gpus=0 --minutes=5: a job needs one at least of each`},
		{"bert train.sh --minutes 0", failure.Misuse, `--minutes=0`},
		{"bert train.sh --models h100", failure.Misuse, `no node of partition gpu has a GPU model "h100"\nnext: there are k80`},
		{"bert train.sh --partition cpu", failure.No, `no node of partition cpu has GPUs`},
		{"bert train.sh --lr 3", failure.Misuse, `unknown flag: --lr`},
	} {
		if r := d.ask(t.Context(), strings.Fields(c.args)...); r.code != c.code || !regexp.MustCompile(c.err).MatchString(r.err) || r.out != "" {
			t.Errorf("%s: exit code %d\n%s%s", c.args, r.code, r.out, r.err)
		}
	}
	reports := d.env[len(d.env)-1]
	d.env = append(d.env[:len(d.env)-1], "FAIRLEASE_PROGRESS_FOLDER="+filepath.Join(d.dir, "bin"))
	if r := d.ask(t.Context(), "bert", "train.sh"); r.code != failure.Misuse || !strings.Contains(r.err, "for your jobs' reports") {
		t.Errorf("without a folder of one's own: exit code %d\n%s", r.code, r.err)
	}
	d.env = d.env[:len(d.env)-1]
	if r := d.ask(t.Context(), "bert", "train.sh"); r.code != failure.Misuse || !strings.Contains(r.err, "reports could not be received") {
		t.Errorf("where nobody hears: exit code %d\n%s", r.code, r.err)
	}
	d.env = append(d.env, reports)
	write(t, filepath.Join(d.dir, "nodes"), node("p1", "p100", 4, 0))
	if r := d.ask(t.Context(), "bert", "train.sh"); r.code != failure.No || !strings.Contains(r.err, "sbatch refused all jobs\n  sbatch: Batch job submission failed: Invalid account") {
		t.Errorf("where sbatch refuses: exit code %d\n%s", r.code, r.err)
	}
	if err := os.Remove(filepath.Join(d.dir, "bin", "scontrol")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(d.dir, "bin"))
	if r := d.ask(t.Context(), "bert", "train.sh"); r.code != failure.Absent || !strings.Contains(r.err, "Slurm does not answer\n  cannot run Slurm's command scontrol") {
		t.Errorf("without Slurm: exit code %d\n%s", r.code, r.err)
	}
}
