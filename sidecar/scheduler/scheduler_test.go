package scheduler_test

import (
	"context"
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
	"github.com/fairlease/fairlease/sidecar/scheduler"
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
		`{"placements": [{"job": 7, "model": "v100"}]}`: `its answer places job 7 on model "v100", which is not in its view`,
		`{"placements": [{"job": 7, "nodes": ["x"]}]}`:  `its answer places job 7 on node "x", which is not in its view`,
		`{"placements": [{"job": 7, "gpus": 4}]}`:       `unknown field "gpus"`,
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
		"misses its deadline":      {text: `sleep 60`, want: "its deadline of 500ms passed"},
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

// zombie reports whether a process has ended and nobody has asked for its status yet.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestTrusted(t *testing.T) {
	good := script(t, "")[0]
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{good, link, "/bin/sh"} {
		if err := scheduler.Trusted(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	open := func(mode, folder os.FileMode) string {
		path := script(t, "")[0]
		for at, m := range map[string]os.FileMode{path: mode, filepath.Dir(path): folder} {
			if err := os.Chmod(at, m); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	for path, want := range map[string]string{
		"order":                             "is no absolute path",
		filepath.Join(good, "nowhere"):      "not a directory",
		filepath.Join(t.TempDir(), "order"): "install the program, or take the scheduler out",
		filepath.Dir(good):                  "is no executable file",
		open(0o644, 0o755):                  "is no executable file (mode -rw-r--r--); run chmod 0755",
		open(0o775, 0o755):                  "others than its owner may write to",
		open(0o757, 0o755):                  "run chmod go-w",
		open(0o755, 0o777):                  "others than its owner may write to",
	} {
		if err := scheduler.Trusted(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
