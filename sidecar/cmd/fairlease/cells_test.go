package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// A valid file shows its levels, an invalid one all its problems with lines.
func TestCellsCheck(t *testing.T) {
	env := []string{"FAIRLEASE_CONFIG=" + empty(t)}
	examples, err := filepath.Abs("../../../etc/cells")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(examples)
	r := run(t, time.Time{}, env, "cells", "check", "--offline", "mixed-models.yaml")
	if r.code != failure.OK || r.err != "" {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	golden(t, "cells-check", r.out)
	r = run(t, time.Time{}, env, "cells", "check", "small-lab.yaml")
	if r.code != failure.OK || !strings.Contains(r.out, "\nremark: Slurm could not be asked (") {
		t.Errorf("Slurm is away: exit code %d\n%s%s", r.code, r.out, r.err)
	}

	text, err := os.ReadFile("mixed-models.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write(t, "bad.yaml", strings.NewReplacer("split: 4, child: k80-gpu", "split: 0, child: k80-gpu", "number: 16", "number: none").Replace(string(text)))
	r = run(t, time.Time{}, env, "cells", "check", "bad.yaml")
	want := "fairlease: bad.yaml cannot be used\n" +
		"  bad.yaml:12: cellHierarchy[5].split: \"k80-node\" is split into 0 cells; write 1 or more\n" +
		"  bad.yaml:39: vcAssignment[2].cells[0].number: \"none\" cannot be used here; write a whole number\n" +
		"next: correct the file; a running daemon keeps the old one\n"
	if r.code != failure.No || r.err != want || r.out != "" {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	var found operate.CellsCheck
	r = run(t, time.Time{}, env, "cells", "check", "bad.yaml", "--json")
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != failure.No || len(found.Problems) != 2 || found.Levels == nil || found.Remarks == nil {
		t.Errorf("exit code %d, %v\n%s", r.code, err, r.out)
	}

	// The configured file, which is not read before it is checked.
	write(t, "f.yaml", "preset: hived\ncells: {file: bad.yaml}\n")
	if r := run(t, time.Time{}, nil, "-c", "f.yaml", "cells", "check", "--offline"); r.code != failure.No || r.err != want {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, nil, "-c", "f.yaml", "config", "check"); r.code != failure.Misuse || !strings.Contains(r.out, "bad.yaml:12: ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	write(t, "bad.yaml", string(text))
	for _, args := range [][]string{{"cells", "check", "--offline", "-P"}, {"config", "check"}, {"config", "show"}} {
		if r := run(t, time.Time{}, nil, append([]string{"-c", "f.yaml"}, args...)...); r.code != failure.OK {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"cells", "check"}, failure.Misuse, "no file of cells is configured"},
		{[]string{"cells", "check", "none.yaml"}, failure.Misuse, "open none.yaml: no such file"},
		{[]string{"cells", "init"}, failure.Absent, "Slurm does not answer"},
	} {
		if r := run(t, time.Time{}, env, c.args...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, r.code, r.out, r.err)
		}
	}
}
