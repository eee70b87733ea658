package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
)

func TestConvert(t *testing.T) {
	dir, env := folder(t)
	for name, args := range map[string][]string{
		"convert": {"kinds.csv"}, "convert-anonymous": {"kinds.csv", "--anonymous"}, "convert-brief": {"history.csv", "--brief"},
	} {
		r := run(t, time.Time{}, env, append([]string{"convert"}, args...)...)
		if r.code != failure.OK {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
		golden(t, name, r.out+r.err)
		if name != "convert" {
			continue
		}
		if r.out != kinds {
			t.Errorf("what was plain is not what it was:\n%s", r.out)
		}
	}
	// The simulation of the converted trace equals that of the original.
	if err := os.Mkdir("again", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "again", "history.csv"), run(t, time.Time{}, env, "convert", "history.csv").out)
	one, two := run(t, time.Time{}, env, "simulate", "history.csv", "--nodes", "1x8", "--csv"), run(t, time.Time{}, env, "simulate", "again/history.csv", "--nodes", "1x8", "--csv")
	if one.code != failure.OK || one.out != two.out {
		t.Errorf("%s\nconverted first:\n%s%s", one.out, two.out, two.err)
	}
}

func TestConvertComplaints(t *testing.T) {
	_, env := folder(t)
	for _, c := range []struct {
		args []string
		code int
		err  string // pattern
	}{
		{nil, failure.Misuse, `needs the name of one trace`},
		{[]string{"a", "b"}, failure.Misuse, `needs the name of one trace`},
		{[]string{"none.csv"}, failure.No, `^fairlease: the trace cannot be used\n  none.csv: cannot be read`},
		{[]string{"history.csv", "--format", "x"}, failure.Misuse, `--format x is not known`},
		{[]string{"history.csv", "--zone", "x"}, failure.Misuse, `--zone x is not known`},
		{[]string{"history.csv", "--seed", "1"}, failure.Misuse, `unknown flag`},
	} {
		r := run(t, time.Time{}, env, append([]string{"convert"}, c.args...)...)
		if r.code != c.code || !regexp.MustCompile(c.err).MatchString(r.err) {
			t.Errorf("%q: exit code %d, want %d\n%s\nwant %s", c.args, r.code, c.code, r.err, c.err)
		}
	}
}
