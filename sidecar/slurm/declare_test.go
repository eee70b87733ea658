package slurm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestWhatAJobDeclares(t *testing.T) {
	t.Parallel()
	const script = `"command":"/home/alice/train.sh --lr 0.1","submit_line":"sbatch %s train.sh --lr 0.1 --requeue --signal=USR2"`
	said := func(s cluster.Saving) cluster.Saving {
		s.Source, s.At = cluster.FromDeclaration, 100_000
		return s
	}
	notice := func(signal, to, evidence string, takes cluster.Span) cluster.Saving {
		return said(cluster.Saving{Manner: cluster.SavesOnNotice, Takes: takes, Signal: signal, SignalTo: to, Evidence: evidence})
	}
	for _, c := range []struct {
		name, fields string
		want         cluster.Saving
	}{
		{"nothing", `"name":"x"`, cluster.Saving{}},
		{"the script's own arguments are not sbatch's", fmt.Sprintf(script, "-N2"), cluster.Saving{}},
		{"a comment", `"comment":"saves=30m save-time=90s"`, said(cluster.Saving{Manner: cluster.SavesEvery, Every: 30 * cluster.Minute, Takes: 90 * cluster.Second, Evidence: "saves=30m"})},
		{"a wrong word", `"comment":"saves=banana"`, cluster.Saving{}},
		{"the first of two words", `"comment":"saves=never,saves=term"`, said(cluster.Saving{Manner: cluster.SavesNever, Evidence: "saves=never"})},
		{"only how long a save takes", `"comment":"save-time=90s"`, cluster.Saving{Takes: 90 * cluster.Second}},
		{"a signal", fmt.Sprintf(script, "--signal=USR1@90"), notice("USR1", "steps", "--signal=USR1@90", 90*cluster.Second)},
		{"a signal by number, to the batch script, in two words", fmt.Sprintf(script, "--signal B:12"), notice("USR2", "batch", "--signal=B:12", 60*cluster.Second)},
		{"a signal that nothing handles", fmt.Sprintf(script, "--signal=KILL@90"), cluster.Saving{}},
		{"a signal without a time", fmt.Sprintf(script, "--signal=USR1@soon"), cluster.Saving{}},
		{"a signal before a requeue", fmt.Sprintf(script, "--requeue --signal=SIGTERM@30"), notice("TERM", "steps", "--signal=SIGTERM@30", 30*cluster.Second)},
		{"a comment before a signal", `"comment":"saves=term",` + fmt.Sprintf(script, "--signal=USR1@90"),
			said(cluster.Saving{Manner: cluster.SavesOnTerm, Signal: "USR1", SignalTo: "steps", Evidence: "saves=term"})},
		{"a comment that says how long the notice must be", `"comment":"save-time=20s",` + fmt.Sprintf(script, "--signal=USR1@300"),
			notice("USR1", "steps", "--signal=USR1@300", 20*cluster.Second)},
		{"a signal in words, before another", `"comment":"signal=b:usr2,signal=B:TERM",` + fmt.Sprintf(script, "--signal=USR1@300"),
			said(cluster.Saving{Manner: cluster.SavesOnNotice, Takes: 300 * cluster.Second, Signal: "TERM", SignalTo: "batch", Evidence: "--signal=USR1@300"})},
		{"a signal in words, to the site's choice", `"comment":"signal=SIGTERM"`, said(cluster.Saving{Manner: cluster.SavesOnNotice, Signal: "TERM", Evidence: "signal=TERM"})},
		{"notices without a signal", `"comment":"signal=none,saves=term"`, said(cluster.Saving{Manner: cluster.SavesOnTerm, Signal: "none", Evidence: "saves=term"})},
		{"notices without a signal, and nothing else", `"comment":"signal=none"`, cluster.Saving{Signal: "none"}},
		{"a requeue", fmt.Sprintf(script, "-J train.sh --requeue"), said(cluster.Saving{Manner: cluster.SavesOnTerm, Evidence: "--requeue", Implied: true})},
		{"the last word on requeues", fmt.Sprintf(script, "--requeue --no-requeue"), cluster.Saving{}},
		{"output that goes on", fmt.Sprintf(script, "--open-mode append"), cluster.Saving{}},
		{"output that does not", fmt.Sprintf(script, "--open-mode=truncate"), cluster.Saving{}},
		{"a wrapped command", `"command":"","submit_line":"sbatch --gpus=1 --wrap python x.py --requeue"`, cluster.Saving{}},
		{"salloc", `"batch_flag":false,"submit_line":"salloc --signal=USR1@90"`, cluster.Saving{}},
	} {
		jobs := translated(t, []byte(`{"jobs":[`+waitingJob(7, c.fields)+`]}`))
		if d := cmp.Diff(c.want, jobs[0].Declares); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestCommandsOfAType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fields, want string }{
		{`"command":"/home/alice/train.sh --lr 0.1 --seed 17"`, "/home/alice/train.sh --lr #.# --seed #"},
		{`"command":"","submit_line":"sbatch -N1 --wrap python train.py --seed 3"`, "--wrap python train.py --seed #"},
		{`"command":"","submit_line":"sbatch --wrap=hostname"`, "--wrap hostname"},
		{`"command":"","submit_line":"sbatch train.sh"`, ""},
		{`"name":"x"`, ""},
		{`"command":"a\u0000b\nc"`, "a?b?c"},
	} {
		if got := translated(t, []byte(`{"jobs":[`+waitingJob(7, c.fields)+`]}`))[0].Command; got != c.want {
			t.Errorf("%s: %q; want %q", c.fields, got, c.want)
		}
	}
	long := strings.Repeat("é", 80)
	one, other := commandLine(&wireJob{command: long + "a"}), commandLine(&wireJob{command: long + "b"})
	if one == other || len(one) > maxCommand {
		t.Errorf("long commands are %q and %q", one, other)
	}
}

// The answer of a real Slurm in v0.0.44.
func TestRealSubmitLines(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/jobs-26.05-v0.0.44.json")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	works := map[string]string{}
	for _, j := range translated(t, data) {
		found[j.Command] = true
		if was, ok := works[j.Command]; j.Work == "" || ok && was != j.Work {
			t.Errorf("%v does %q, others with that command %q", j.ID, j.Work, was)
		}
		works[j.Command] = j.Work
		if j.Declares != (cluster.Saving{}) {
			t.Errorf("%v declares %+v", j.ID, j.Declares)
		}
	}
	if len(found) != 2 || !found["--wrap exec sleep #"] || !found["--wrap exit #"] {
		t.Errorf("commands: %v", found)
	}
}

// FuzzDeclared reads arbitrary comments, command lines and submit lines.
func FuzzDeclared(f *testing.F) {
	f.Add("saves=30m,save-time=90s", "/home/a/train.sh 1", "sbatch --signal=B:USR1@90 --requeue train.sh 1")
	f.Add("saves=banana", "", "sbatch --open-mode=append --wrap=x")
	f.Add("", "x", "sbatch --signal")
	f.Fuzz(func(t *testing.T, comment, script, line string) {
		w := wireJob{comment: comment, command: script, submitLine: line, batch: true, submit: 5}
		said, _ := hintWords(&w)
		s := declared(&w, said, cluster.ParseHints(said, 0))
		if (s.Manner != cluster.UnknownManner) != (s.Source == cluster.FromDeclaration) || (s.Manner == cluster.UnknownManner) != (s.Evidence == "") {
			t.Errorf("no source, or no evidence: %+v", s)
		}
		if (s.Manner == cluster.SavesEvery) != (s.Every > 0) || s.Takes < 0 || s.Signal == "" && s.SignalTo != "" {
			t.Errorf("senseless: %+v", s)
		}
		if c := commandLine(&w); len(c) > maxCommand || strings.ContainsAny(c, "\x00\n0123456789") && len(c) < maxCommand-8 {
			t.Errorf("command %q", c)
		}
	})
}
