package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/scheduler"
)

// view has two jobs and two nodes.
func view() *scheduler.View {
	return &scheduler.View{Version: 1, VC: "nlp", Jobs: []scheduler.Job{{Job: 7}, {Job: 8}}, Nodes: []scheduler.Node{{Name: "n1", Model: "a100"}, {Name: "n2", Model: "a100"}}}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]any{
		`{"order": [8, 7]}`: []cluster.VCTurn{{Job: 8}, {Job: 7}},
		`{"order": []}`:     []cluster.VCTurn(nil),
		`{"placements": [{"job": 8, "model": "a100", "nodes": ["n1","n2"]}, {"job": 7}]}`: []cluster.VCTurn{{Job: 8, Model: "a100", Nodes: []string{"n1", "n2"}}, {Job: 7}},
		``:                                "it wrote no answer",
		`{"order": [8, 7}`:                "its answer is wrong at byte 16: invalid character '}' after array element",
		`{"order": [8`:                    "its answer is wrong at byte 12: the text ends too early",
		`{"order": ["8"]}`:                "its answer is wrong at byte 14: json: cannot unmarshal string",
		`{"order": [8]} x`:                "its answer is wrong at byte 15: invalid character 'x'",
		`{"order": [8]} {}`:               "more follows after the answer",
		`{"orders": [8]}`:                 `unknown field "orders"`,
		`{}`:                              "its answer has not one of both",
		`{"order": [], "placements": []}`: "its answer has not one of both",
		`null`:                            "its answer has not one of both",
		`{"order": [9]}`:                  "its answer names job 9, which is not in its view",
		`{"order": [8, 7, 8]}`:            "its answer names job 8 twice",
		`{"placements": [{"job": 7, "model": "v100"}]}`:                                          `its answer places job 7 on model "v100", which is not in its view`,
		`{"placements": [{"job": 7, "nodes": ["x"]}]}`:                                           `its answer places job 7 on node "x", which is not in its view`,
		`{"placements": [{"job": 7, "nodes": ["n1", "n2"]}, {"job": 8, "nodes": ["n1", "n1"]}]}`: `its answer places job 8 on node "n1" twice`,
		`{"placements": [{"job": 7, "gpus": 4}]}`:                                                `unknown field "gpus"`,
	} {
		turns, err := scheduler.Parse([]byte(text), view())
		if said, fails := want.(string); fails {
			if err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v, want %s", text, err, said)
			}
		} else if err != nil || !reflect.DeepEqual(turns, want) {
			t.Errorf("%s: %v %v", text, turns, err)
		}
	}
}

// No answer makes the reader panic, and each that it takes fits the view.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"order": [8, 7]}`, `{"placements": [{"job": 8, "model": "a100", "nodes": ["n1","n2"]}]}`, `{"order": [8, 7}`, `[]`, `{"order": [1e30]}`, "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		turns, err := scheduler.Parse(text, view())
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("%q", err.Error())
			}
			return
		}
		seen := map[cluster.JobKey]bool{}
		for _, x := range turns {
			if seen[x.Job] || x.Job != 7 && x.Job != 8 || x.Model != "" && x.Model != "a100" {
				t.Errorf("took %+v", x)
			}
			seen[x.Job] = true
		}
	})
}

// script writes a program.
func script(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "order")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{path, "an argument"}
}

func TestAsk(t *testing.T) {
	for name, x := range map[string]struct{ text, want, said string }{
		"answers":                  {text: `read -r line; case $line in *'"vc":"nlp"'*) [ "$1" = "an argument" ] && [ "$(pwd)" = / ] && [ -z "$SECRET" ] && echo '{"order":[8]}'; esac`},
		"reads nothing":            {text: `echo '{"order":[8]}'`},
		"speaks on standard error": {text: `echo careful >&2; echo '{"order":[8]}'`, said: "careful"},
		"misses its deadline":      {text: `sleep 60`, want: "its deadline of 500 ms passed"},
		"crashes":                  {text: `echo '{"order":[8]}'; echo no such file >&2; exit 3`, want: "it ended with exit status 3", said: "no such file"},
		"is killed":                {text: `kill -9 $$`, want: "it ended with signal: killed"},
		"writes garbage":           {text: `echo hello`, want: "its answer is wrong at byte 1: invalid character 'h'"},
		"writes nothing":           {text: `:`, want: "it wrote no answer"},
		"writes without end":       {text: `yes`, want: "its answer is longer than 1048704 bytes for 2 jobs"},
		"floods standard error":    {text: `head -c 9000000 /dev/zero | tr '\0' x >&2; echo '{"order":[8]}'`, said: strings.Repeat("x", 2048)},
		"leaves children behind":   {text: `sleep 60 & echo '{"order":[8]}'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SECRET", "x")
			began := time.Now()
			deadline := 20 * cluster.Second
			if strings.Contains(x.want, "deadline") {
				deadline = cluster.Second / 2
			}
			turns, said, err := scheduler.Ask(context.Background(), &cluster.VCScheduler{Command: script(t, x.text), Deadline: deadline}, view())
			if x.want == "" && (err != nil || len(turns) != 1 || turns[0].Job != 8) || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
				t.Errorf("%v, %v; want %q", turns, err, x.want)
			}
			if said != x.said {
				t.Errorf("on standard error: %.100q", said)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A program that forks leaves no process behind, whether it answers or misses its deadline.
func TestAskEndsChildren(t *testing.T) {
	for _, last := range []string{`echo '{"order":[8]}'`, "sleep 60"} {
		file := filepath.Join(t.TempDir(), "pid")
		command := script(t, fmt.Sprintf("(trap '' TERM HUP; sleep 60) & echo $! > %s; %s", file, last))
		began := time.Now()
		_, _, err := scheduler.Ask(context.Background(), &cluster.VCScheduler{Command: command, Deadline: 2 * cluster.Second}, view())
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %v (%v)", last, took, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; syscall.Kill(pid, 0) == nil && !zombie(pid); i++ {
			if time.Sleep(10 * time.Millisecond); i > 500 {
				t.Fatalf("%s: its child %d lives on", last, pid)
			}
		}
	}
}

// The file that was checked is the file that runs, under the name that the command has for it.
func TestAskRunsWhatIsChecked(t *testing.T) {
	order := script(t, `[ "$0" = "$1" ] && echo '{"order":[8]}'`)[0]
	ask := func(command ...string) error {
		_, _, err := scheduler.Ask(context.Background(), &cluster.VCScheduler{Command: command, Deadline: 20 * cluster.Second}, view())
		return err
	}
	if err := ask(link(t, order, 0o755), order); err != nil {
		t.Error(err)
	}
	named := link(t, "/bin/sh", 0o755)
	if err := ask(named, "-c", `[ "$0" = `+named+` ] && echo '{"order":[8]}'`); err != nil {
		t.Error(err)
	}
	for _, command := range [][]string{{link(t, order, 0o777), order}, {"/bin/sh", made(t, 0o666, 0o755)}} {
		if err := ask(command...); err == nil || !strings.Contains(err.Error(), "others than its owner may write to") {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// zombie reports whether a process has ended and nobody has asked for its status yet.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// me is the user of the tests.
var me = uint32(os.Getuid())

// made makes a file and its folder, with modes.
func made(t *testing.T, mode, folder os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made")
	err := os.WriteFile(path, nil, 0o600)
	for at, m := range map[string]os.FileMode{path: mode, filepath.Dir(path): folder} {
		err = errors.Join(err, os.Chmod(at, m))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// link makes a link in a folder of a mode.
func link(t *testing.T, to string, folder os.FileMode) string {
	t.Helper()
	path := made(t, 0o644, folder)
	if err := errors.Join(os.Remove(path), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrusted(t *testing.T) {
	good := made(t, 0o755, 0o755)
	inside := filepath.Join(filepath.Dir(good), "link")
	if err := os.Symlink("made", inside); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{good}, {inside}, {link(t, good, 0o755)}, {link(t, filepath.Dir(good), 0o755) + "/./link"}, {"/bin/sh", "-c", "x", "/" + strings.Repeat("x", 999), "/a\x00b"},
		{good, made(t, 0o644, 0o755)}, {good, "/dev/null", filepath.Join(filepath.Dir(good), "absent"), "/absent/order.py", good + "/x", filepath.Dir(good)}} {
		file, err := scheduler.Trusted(command, me)
		if is, _ := filepath.EvalSymlinks(command[0]); err != nil || file != is {
			t.Errorf("%q: %s, %v, want %s", command, file, err, is)
		}
	}
	loop := link(t, "made", 0o755)
	for want, commands := range map[string][][]string{
		"is no absolute path": {{"order"}},
		"not a directory":     {{filepath.Join(good, "nowhere")}},
		"install the program, or take the scheduler out":          {{filepath.Join(t.TempDir(), "order")}},
		"is no executable file":                                   {{filepath.Dir(good)}},
		"is no executable file (mode -rw-r--r--); run chmod 0755": {{made(t, 0o644, 0o755)}},
		"leads through more than 40 symbolic links":               {{loop}, {good, loop}},
		// Others could swap the link, and so choose the program.
		"others than its owner may write to": {{made(t, 0o775, 0o755)}, {made(t, 0o755, 0o777)}, {link(t, good, 0o777)}, {link(t, link(t, good, 0o777), 0o755)},
			{good, made(t, 0o664, 0o755)}, {good, "-v", made(t, 0o644, 0o777)}, {good, link(t, good, 0o777)}, {good, filepath.Join(filepath.Dir(made(t, 0o644, 0o777)), "absent")}},
		"run chmod go-w":    {{made(t, 0o757, 0o755)}},
		"others may create": {{good, filepath.Join(filepath.Dir(made(t, 0o644, 0o777|os.ModeSticky)), "absent")}},
	} {
		for _, command := range commands {
			if file, err := scheduler.Trusted(command, me); err == nil || !strings.Contains(err.Error(), want) || file != "" {
				t.Errorf("%q: %s, %v, want %s", command, file, err, want)
			}
		}
	}
}

// Files and links of anyone but root and the user who runs the program are refused, also in a folder in which each may write to their own files only.
func TestTrustedOwners(t *testing.T) {
	order, to := made(t, 0o755, 0o777|os.ModeSticky), link(t, "/bin/sh", 0o777|os.ModeSticky)
	if me == 0 {
		for _, path := range []string{order, to} {
			if err := os.Lchown(path, 1, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, command := range [][]string{{order}, {to}, {"/bin/sh", order}} {
		if file, err := scheduler.Trusted(command, me+2); err == nil || !strings.Contains(err.Error(), "who could have fairlease run any program; run chown -h root") {
			t.Errorf("%q: %s, %v", command, file, err)
		}
	}
	if file, err := scheduler.Trusted([]string{order}, max(me, 1)); err != nil {
		t.Errorf("its owner runs it: %s, %v", file, err)
	}
}

// A program that the service does not see is named before it fails every time.
func TestUsable(t *testing.T) {
	if err := scheduler.Usable([]string{"/bin/sh", "-c", "x"}); err != nil {
		t.Error(err)
	}
	for path, by := range map[string]string{"/home/nlp/order": "/home (ProtectHome", "/root/order": "/root (ProtectHome", "/run/user/1/order": "/run/user (ProtectHome", "/tmp/order": "/tmp (PrivateTmp", "/var/tmp/order": "/var/tmp (PrivateTmp"} {
		for _, command := range [][]string{{path}, {"/bin/sh", path}} {
			if err := scheduler.Usable(command); err == nil || !strings.Contains(err.Error(), "the service does not see "+path+" in "+by+" in fairlease.service); install it under /usr/local/lib/fairlease") {
				t.Errorf("%q: %v", command, err)
			}
		}
	}
	if err := scheduler.Usable([]string{"/homes/order"}); err == nil || strings.Contains(err.Error(), "see") {
		t.Errorf("a folder whose name begins alike: %v", err)
	}
}
