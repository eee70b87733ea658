// Package growth holds the engine to work that grows in proportion to a site.
package growth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// round is the input of the program rounds.
type round struct {
	simtest.Site
	Changes int
	Policy  string
	Dir     string
}

const module = "github.com/fairlease/fairlease/"

const (
	times = 4    // by how much a site grows, twice
	law   = 1.45 // the exponent of growth that is still allowed: n log n is below, n^1.5 above
	part  = 0.03 // of the statements that a round runs; one that runs less often may grow as it likes
)

// sites are those that grow: each has much of one thing, which grows alone, and with all else.
var sites = []struct {
	name string
	simtest.Site
	grow func(x *simtest.Site)
}{
	{"jobs", simtest.Site{Nodes: 30, Jobs: 500, Tenants: 5, Gangs: 5, Overrides: 5}, func(x *simtest.Site) { x.Jobs *= times }},
	{"nodes", simtest.Site{Nodes: 250, Jobs: 125, Tenants: 5, Gangs: 5, Overrides: 5}, func(x *simtest.Site) { x.Nodes *= times }},
	{"tenants", simtest.Site{Nodes: 30, Jobs: 125, Tenants: 60, Gangs: 5, Overrides: 5}, func(x *simtest.Site) { x.Tenants *= times }},
	{"overrides", simtest.Site{Nodes: 30, Jobs: 125, Tenants: 5, Gangs: 5, Overrides: 125}, func(x *simtest.Site) { x.Overrides *= times }},
	{"waiting gangs", simtest.Site{Nodes: 30, Jobs: 125, Tenants: 5, Gangs: 125, Overrides: 5}, func(x *simtest.Site) { x.Gangs *= times }},
	{"jobs that differ", simtest.Site{Nodes: 30, Jobs: 250, Tenants: 5, Gangs: 5, Varied: true}, func(x *simtest.Site) { x.Jobs *= times }},
	{"jobs of divided models", simtest.Site{Nodes: 20, Jobs: 200, Tenants: 5}, func(x *simtest.Site) { x.Jobs *= times }},
	{"tenants of divided models", simtest.Site{Nodes: 20, Jobs: 60, Tenants: 15}, func(x *simtest.Site) { x.Tenants *= times }},
}

// kinds are the rounds of sites.
var kinds = []struct {
	name    string
	divided bool
	round
}{
	{"every lease ends", false, round{}},
	{"mid term", false, round{Changes: 20}},
	{"every lease ends under gavel:las", true, round{Policy: "gavel:las"}},
	{"every lease ends under gandiva-fair", true, round{Policy: "gandiva-fair"}},
}

// faster has the files with statements that grow faster, and why. One that no longer has any must leave the list.
var faster = map[string]string{
	"sidecar/engine/expect/expect.go":  "at most all classes of a sum for each job: more of them as jobs differ more",
	"sidecar/engine/rounds/nearest.go": "improvements until 32,768 jobs have been looked at: a small site does not use them up, and a larger one makes more of them",
}

// Statements of a round run in proportion to what a site has: of each, the program built with -cover tells how often it ran.
func TestRoundsGrowInProportion(t *testing.T) {
	dir := t.TempDir()
	type row struct {
		name string
		at   [3]int // rounds of the site and after it has grown once and twice
	}
	var rounds []round
	var rows []row
	for _, k := range kinds {
		for _, x := range sites {
			if k.divided != strings.Contains(x.name, "divided") {
				continue
			}
			for _, how := range []struct {
				name string
				grow func(*simtest.Site)
			}{{x.name, x.grow}, {"all of a site with many " + x.name, func(x *simtest.Site) {
				*x = simtest.Site{Nodes: times * x.Nodes, Jobs: times * x.Jobs, Tenants: times * x.Tenants, Gangs: times * x.Gangs, Overrides: times * x.Overrides, Varied: x.Varied}
			}}} {
				row := row{name: fmt.Sprintf("%s, %s times %d and again", k.name, how.name, times)}
				r := k.round
				r.Site = x.Site
				for size := range row.at {
					if row.at[size] = slices.Index(rounds, r); row.at[size] < 0 {
						row.at[size] = len(rounds)
						rounds = append(rounds, r)
					}
					how.grow(&r.Site)
				}
				rows = append(rows, row)
			}
		}
	}
	for i := range rounds {
		rounds[i].Dir = filepath.Join(dir, strconv.Itoa(i))
	}
	run(t, dir, rounds)
	ran := make([]map[string]float64, len(rounds))
	var all sync.WaitGroup
	for i := range rounds {
		all.Go(func() { ran[i] = read(t, rounds[i].Dir) })
	}
	all.Wait()
	if t.Failed() {
		return
	}
	met := map[string]bool{}
	for _, r := range rows {
		for _, x := range above(ran[r.at[0]], ran[r.at[1]], ran[r.at[2]]) {
			file, _, _ := strings.Cut(x, ":")
			if met[file] = true; faster[file] == "" {
				t.Errorf("%s: %s", r.name, x)
			}
		}
	}
	for file, what := range faster {
		if !met[file] {
			t.Errorf("%s: nothing grows too fast there any more: take it off the list (%s)", file, what)
		}
	}
}

// above tells which statements run too often at a site that has grown, twice.
func above(small, medium, large map[string]float64) (out []string) {
	all := 0.0
	for _, n := range large {
		all += n
	}
	for at, n := range large {
		first, second := exponent(small[at], medium[at]), exponent(medium[at], n)
		if n > part*all && min(first, second) > law {
			out = append(out, fmt.Sprintf("%s ran %.0f, %.0f and %.0f times: by exponents of %.2f and %.2f; %.0f %% of all", at, small[at], medium[at], n, first, second, 100*n/all))
		}
	}
	slices.Sort(out)
	return out
}

// exponent gives by what power of its size a site runs a statement more often after it has grown.
func exponent(before, after float64) float64 {
	return math.Log(after/max(before, 1)) / math.Log(times)
}

// run builds the program and makes the rounds.
func run(t *testing.T, dir string, rounds []round) {
	var counted []string
	for _, pkg := range []string{"engine/...", "cluster", "loop", "sim"} {
		counted = append(counted, module+"sidecar/"+pkg)
		// A result of this test is kept by the go command until a folder changes that it opens.
		if err := filepath.WalkDir(filepath.Join("../../sidecar", strings.TrimSuffix(pkg, "/...")), func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "rounds")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(append(counted, "./rounds", "slices", "sort", "maps", "strings"), ","), "-o", program, "./rounds")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	input, err := json.Marshal(rounds)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program)
	c.Stdin, c.Env = bytes.NewReader(input), append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// read gives how often the statements of a round ran.
func read(t *testing.T, dir string) map[string]float64 {
	file := filepath.Join(dir, "counters.txt")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)                                                  // a statement's place, how many stand together, how often they ran
		if len(f) != 3 || f[2] == "0" || strings.HasPrefix(f[0], "slices/zsort") { // sorting is n log n
			continue
		}
		together, err := strconv.ParseFloat(f[1], 64)
		times, err2 := strconv.ParseFloat(f[2], 64)
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		}
		out[strings.TrimPrefix(f[0], module)] += together * times
	}
	return out
}
