// Command gain lets one user play a strategy against an honest one on a real Slurm, and measures what the strategy is worth: the GPU time
// of the strategist over what it gets when it is honest too, less 1, in percent. Up to -side clusters run beside each other; on one or two
// of each batch both tenants are honest.
//
//	strategies.go  what strategists do            play.go     how users act on Slurm
//	site.go        a Slurm with a daemon          measure.go  who held GPUs, and what that is worth
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// options of a run.
type options struct {
	suites, gates []string
	side          int
	term          time.Duration
	terms         int
	only          *regexp.Regexp
	worst         []string          // keys of the pairings that are played; nil = all
	known         map[string]string // by key, pairings that are not played
	keep          string            // folder for logs and for what slurmdbd has of the jobs; "" = they are not kept
	day           bool              // beside them, or where there are none alone
}

func main() {
	suite := flag.String("suite", "all", "Debian suite of the Slurm: forky (26.05), trixie (24.11) or all")
	gate := flag.String("gate", "all", "how jobs are kept waiting: licence, begin (by begin times) or all")
	side := flag.Int("side", 8, "clusters that run beside each other, 2 or more; one or two of each batch are honest")
	term := flag.Duration("term", 10*time.Second, "length of a lease; all times of the default settings are scaled with it")
	terms := flag.Int("terms", 30, "length of the measurement, in terms")
	only := flag.String("only", "", "strategies whose name matches this regular expression")
	out := flag.String("out", "", "file whose table in Markdown gets the rows, after each batch; other rows of it stay")
	missing := flag.Bool("missing", false, "play only what the table of -out lacks")
	worst := flag.String("worst", "", "file with the table of an earlier run: its eight worst rows are played anew; where it has no rows, the first eight strategies")
	day := flag.Bool("day", false, "also play a working day with limits, lists, licences and reservations, and count its grants that failed; and 1,000 jobs that cannot start")
	keep := flag.String("keep", "", "folder for the logs of the daemons and of slurmctld, and for what slurmdbd has of the jobs")
	list := flag.Bool("list", false, "print the strategies, and play none")
	flag.Parse()
	o := options{suites: testcluster.Suites, gates: gates, side: *side, term: *term, terms: *terms, day: *day, keep: *keep}
	if *suite != "all" {
		o.suites = []string{*suite}
	}
	if *gate != "all" {
		o.gates = []string{*gate}
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil || *side < 2 || *terms < 1 || *term < 5*time.Second || !slices.Contains(gates, o.gates[0]) {
		fmt.Fprintln(os.Stderr, "gain: -only must be a regular expression, -side at least 2, -terms at least 1, -term at least 5s, -gate one of", gates, err)
		os.Exit(2)
	}
	if *list {
		for _, s := range strategies {
			fmt.Printf("%-20s %s\n", s.name, s.does)
		}
		return
	}
	if *worst != "" {
		text, err := os.ReadFile(*worst)
		if err != nil {
			fmt.Fprintln(os.Stderr, "gain: -worst needs a file with the table:", err)
			os.Exit(2)
		}
		o.worst = worstOf(string(text), 8)
	}
	if *missing {
		text, err := os.ReadFile(*out)
		if o.known = cells(string(text)); err != nil {
			fmt.Fprintf(os.Stderr, "gain: -missing needs the table of -out: %v\n", err)
			os.Exit(2)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := gain(ctx, o, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gain:", err)
		os.Exit(1)
	}
}

// pairing is a strategy on one of the Slurms with one of the gates.
type pairing struct {
	suite, gate string
	strategy
}

// ground is the Slurm and the gate of a pairing.
func (p pairing) ground() string { return p.suite + ", " + p.gate }

// base names the honest pairing by which a pairing is judged.
func (p pairing) base() string { return pairing{p.suite, p.gate, p.judgedBy()}.key() }

// chosen gives the pairings of a run, those on the same Slurm with the same gate behind each other.
func chosen(o options) []pairing {
	var out []pairing
	for _, suite := range o.suites {
		for _, gate := range o.gates {
			for _, s := range strategies {
				if p := (pairing{suite, gate, s}); o.only.MatchString(s.name) && o.known[p.key()] == "" && (o.worst == nil || slices.Contains(o.worst, p.key())) {
					out = append(out, p)
				}
			}
			if o.day && suite == "forky" && gate == "licence" {
				out = append(out, pairing{suite, gate, day}, pairing{suite, gate, thousand})
			}
		}
	}
	return out
}

// batches splits pairings into batches of at most side clusters, in each of them the honest rows by which the others are judged, before
// these.
func batches(all []pairing, side int) [][]pairing {
	var out [][]pairing
	var batch []pairing
	for _, p := range all {
		fits := slices.ContainsFunc(batch, func(q pairing) bool { return q.key() == p.base() })
		if len(batch) > 0 && (len(batch) == side || !fits && len(batch) >= side-1) {
			out, batch, fits = append(out, batch), nil, false
		}
		if !fits {
			batch = append(batch, pairing{p.suite, p.gate, p.judgedBy()})
		}
		batch = append(batch, p)
	}
	if len(batch) > 0 {
		out = append(out, batch)
	}
	return out
}

func gain(ctx context.Context, o options, file string) (err error) {
	all := batches(chosen(o), o.side)
	if err := write(file, nil); err != nil || len(all) == 0 { // new strategies have rows from here on
		return err
	}
	ground, err := newGround(ctx, o.term)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ground.down()) }()
	var rows []row
	for i, b := range all {
		fmt.Printf("batch %d of %d: %d clusters, %s\n", i+1, len(all), len(b), time.Now().Format(time.TimeOnly))
		played, err := ground.play(ctx, b, o)
		rows = append(rows, played...)
		judge(rows) // by the honest rows of all batches so far
		if err := errors.Join(err, write(file, rows)); err != nil {
			return errors.Join(err, report(os.Stdout, rows))
		}
	}
	return report(os.Stdout, rows)
}

// write puts rows into the table of a file, which need not exist; "" = nowhere.
func write(file string, rows []row) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(merged(string(text), rows)), 0o644)
}

// report writes all rows, and the figures of those that did not fail. It returns an error if some did.
func report(w io.Writer, rows []row) error {
	judge(rows)
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintln(w, r.String())
	}
	worst, grants, failed, floods, idle := math.Inf(-1), 0, 0, 0, 0.0
	var broken []string
	for _, r := range rows {
		switch {
		case r.err != nil:
			broken = append(broken, r.key())
		case r.isHonest():
		case r.name == thousand.name:
			floods++
			idle = max(idle, r.idle()-idleOn(rows, r.base()))
		case r.name == day.name:
			grants, failed = grants+r.grants, failed+r.failed
		default:
			worst = max(worst, r.gain)
		}
	}
	fmt.Fprintln(w)
	if !math.IsInf(worst, -1) {
		fmt.Fprintf(w, "gain_worst_pct %.1f\n", worst)
	}
	if floods > 0 {
		fmt.Fprintf(w, "flood_idle_pct %.1f\n", idle)
	}
	if grants > 0 {
		fmt.Fprintf(w, "grants_failed_pct %.2f\n", 100*float64(failed)/float64(grants))
	}
	if broken != nil {
		return fmt.Errorf("%d of %d rows failed, and are in no figure: %s", len(broken), len(rows), strings.Join(broken, "; "))
	}
	return nil
}
