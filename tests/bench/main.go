// Command bench measures what the project promises, and prints one line a figure:
//
//	figure NAME VALUE UNIT [allocs COUNT mib MIB]
//
// A figure with allocations is CPU time; its wall time follows under a name with _wall_.
// Without -live it needs no root. With -live it measures on a real Slurm, with -journal how the journal grows in a real
// PostgreSQL. With -hived it
// repeats HiveD's experiments, with -gavel Gavel's; with -models it compares the presets for heterogeneous
// GPU models, with -figures it makes the papers' figures. With -rivals it compares astraea with the best baselines, with
// -saving it measures what is left of fairness by how jobs save, with -curves it compares all baselines by that, with -windows it compares
// astraea with plain Slurm on many weeks. A figure that misses its mark is printed all the same. At the end it says
// which figures are worse than in the recorded run of
// docs/figures.md, if that was on such a machine; with -record it records its own there.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/words"
)

func main() {
	live := flag.Bool("live", false, "measure on a real Slurm (needs root)")
	turns := flag.Bool("slices", false, "measure turns of jobs on GPUs on a real Slurm instead, and how long jobs stand still after a kill (needs root; 20 minutes)")
	jobs := flag.Int("jobs", 10_000, "waiting jobs in the live rounds")
	suite := flag.String("suite", "forky", "Debian suite of the real Slurm: forky (26.05) or trixie (24.11)")
	hived := flag.Bool("hived", false, "repeat HiveD's experiments on cells instead (minutes)")
	gavel := flag.String("gavel", "", "repeat Gavel's simulated experiments instead (minutes each): all, single, single+ss, multiple, multiple+ss, ftf, makespan, makespan+ss, estimates or cost")
	models := flag.Bool("models", false, "compare the presets that divide heterogeneous GPUs instead (minutes)")
	figures := flag.String("figures", "", "make the papers' figures again instead, into this folder")
	only := flag.String("only", "", "of -figures those of one paper: gandiva-fair, gavel or oef; of -rivals, -saving and -curves the traces so named: venus60, venus40, philly64, venus; of -forecast one kind of site (cells, limits, models or users), or new: other weeks of the traces")
	saving := flag.String("saving", "", "measure instead what is left of fairness by how jobs save, on the traces in this folder (minutes)")
	bound := flag.String("bound", "", "measure instead what the limit of jobs that cannot be stopped costs, on the traces in this folder; -only names weeks: judged, chosen or a name (minutes)")
	binds := flag.String("binds", "", "of -bound, values of bind.quiet, bind.horizon and bind.max to compare, as in 24h:4:5,off; empty = the defaults")
	many := flag.String("windows", "", "compare instead astraea with plain Slurm on many windows of the traces in -traces: judged, chosen, all or the beginning of a name (minutes)")
	worthy := flag.String("worth", "", "measure instead how well fairlease worth says what leases gained, on windows of the traces in -traces: judged, chosen, all or the beginning of a name; the figures are of judged with -saves at-end (minutes)")
	set := flag.String("set", "", "of -windows, settings to compare the defaults with, as in 'bind: {max: 10}; jobs: {order: rho}'")
	saves := flag.String("saves", "never", "of -windows and -worth, how jobs save, as for fairlease simulate")
	curves := flag.String("curves", "", "compare instead astraea and all baselines by how many jobs save: tables, and curves into this folder, on the traces of -traces or FAIRLEASE_TRACES (hours)")
	rivals := flag.String("rivals", "", "measure instead fairness, completion time and overhead beside the best baseline's, on the traces in this folder (minutes)")
	backlog := flag.Bool("backlog", false, "measure instead what stops cost where far more jobs wait than can run (a minute)")
	journal := flag.Float64("journal", 0, "measure instead how the journal grows in so many hours of simulated time (needs PostgreSQL; minutes)")
	web := flag.Bool("web", false, "measure instead fairlease web at 200 requests a second (needs PostgreSQL; a minute)")
	foresee := flag.Bool("forecast", false, "measure instead how good forecasts are (minutes)")
	trades := flag.Bool("unreported-trades", false, "of -unreported only the trades (two minutes)")
	silent := flag.Bool("unreported", false, "measure instead what gavel:las-jobs and the trades of gandiva-fair bring where speeds are learnt from jobs that report nothing (minutes)")
	page := flag.Bool("page", false, "measure instead how fast a browser shows the web page (needs Chromium, node and npm's packages: make browser-deps)")
	seed := flag.Uint64("seed", 1, "of HiveD's workload, and Gavel's of costs")
	seeds := flag.Int("seeds", 3, "of -curves, how many runs each point has")
	asking := flag.Bool("asks", false, "measure instead what a tenant gains by asking for more than it needs, or later than it could (a minute)")
	older := flag.Bool("older", false, "measure instead what -decisions measures, beside that of -than, and simulations beside those of commit "+olderCommit+" (minutes)")
	than := flag.String("than", firstWithDecisions, "of -older, the commit whose decisions are measured beside these")
	deciding := flag.Bool("decisions", false, "measure instead decisions, divisions, Scenes, telemetry and two simulations (minutes)")
	long := flag.Bool("years", false, "measure instead two simulations of a year, one with a round a minute and one with the default interval (half an hour)")
	check := flag.Bool("check", false, "measure make check, too; -record always does")
	pairing := flag.Bool("pairs", false, "measure instead pairs of jobs on GPUs, by rounds and by divisions, and turns of two and three, on several windows (minutes)")
	record := flag.Bool("record", false, "record the run's figures in "+figuresFile)
	traces := flag.String("traces", "", "folder with the traces of Philly and Venus, for -hived and -curves")
	flag.Parse()
	measure := func() error { return onSlurm(*suite, *jobs) }
	switch {
	case *pairing:
		measure = func() error {
			if err := onPairDivisions(); err != nil {
				return err
			}
			return onPairWindows()
		}
	case *page:
		measure = onPage
	case *hived:
		measure = func() error { return onHiveD(*seed, *traces) }
	case *web:
		measure = onWeb
	case *foresee:
		measure = func() error { return onForecasts(cmp.Or(*traces, os.Getenv("FAIRLEASE_TRACES")), *only) }
	case *trades:
		measure = unreportedTrades
	case *silent:
		measure = unreported
	case *asking:
		measure = asks
	case *older:
		measure = func() error {
			if err := besideDecisions(*than); err != nil {
				return err
			}
			return besideOlder(cmp.Or(*traces, os.Getenv("FAIRLEASE_TRACES")))
		}
	case *deciding:
		measure = steps
	case *long:
		measure = years
	case *backlog:
		measure = onBacklog
	case *journal > 0:
		measure = func() error { return onJournal(*journal) }
	case *many != "":
		measure = func() error {
			return onWindows(cmp.Or(*traces, os.Getenv("FAIRLEASE_TRACES")), strings.TrimPrefix(*many, "all"), *set, *saves)
		}
	case *worthy != "":
		measure = func() error {
			return onWorth(cmp.Or(*traces, os.Getenv("FAIRLEASE_TRACES")), strings.TrimPrefix(*worthy, "all"), *saves)
		}
	case *turns:
		measure = func() error { return onSlices(*suite) }
	case *rivals != "":
		measure = func() error { return onRivals(*rivals, *only) }
	case *saving != "":
		measure = func() error { return onSaving(*saving, *only) }
	case *bound != "":
		measure = func() error { return onBinding(*bound, *only, *binds) }
	case *curves != "":
		measure = func() error { return onCurves(cmp.Or(*traces, os.Getenv("FAIRLEASE_TRACES")), *curves, *only, *seeds) }
	case *figures != "":
		measure = func() error { return onFigures(*figures, *only) }
	case *models:
		measure = func() error { return onModels(*seed) }
	case *gavel != "":
		measure = func() error { return onGavel(*gavel, *seed) }
	case !*live:
		measure = offline
	}
	err := measure()
	if err == nil && (*check || *record) {
		err = checks()
	}
	if err == nil {
		err = compare(*record)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// offline measures what needs no Slurm, on one core.
func offline() error {
	runtime.GOMAXPROCS(1)
	if err := readme(); err != nil {
		return err
	}
	if err := decisions(); err != nil {
		return err
	}
	if err := telemetry(); err != nil {
		return err
	}
	if err := onCells(); err != nil {
		return err
	}
	if err := onPrices(); err != nil {
		return err
	}
	if err := onEnvy(); err != nil {
		return err
	}
	if err := onPairs(); err != nil {
		return err
	}
	if err := onPairGain(); err != nil {
		return err
	}
	if err := onPairDivisions(); err != nil {
		return err
	}
	if err := onPairWindows(); err != nil {
		return err
	}
	if err := onScatterGain(); err != nil {
		return err
	}
	if err := simulations(); err != nil {
		return err
	}
	if err := besideOlder(os.Getenv("FAIRLEASE_TRACES")); err != nil {
		return err
	}
	repayments()
	floors()
	mechanisms()
	if err := promised(); err != nil {
		return err
	}
	if err := misreports(); err != nil {
		return err
	}
	if err := asks(); err != nil {
		return err
	}
	gateWrites()
	if err := onBacklog(); err != nil {
		return err
	}
	dir := os.Getenv("FAIRLEASE_TRACES")
	if err := onForecasts(dir, ""); err != nil {
		return err
	}
	if dir == "" {
		fmt.Println("the figures fair_…, rival_… and those of how jobs save are left out: FAIRLEASE_TRACES names no folder with the traces")
		return nil
	}
	if err := onRivals(dir, ""); err != nil {
		return err
	}
	if err := onBinding(dir, "judged", ""); err != nil {
		return err
	}
	if err := onWindows(dir, "judged", fewStops, "never"); err != nil {
		return err
	}
	if err := onWorth(dir, "judged", "at-end"); err != nil {
		return err
	}
	return onSaving(dir, "")
}

// steps measures what people wait for: decisions, Scenes, telemetry and simulations, on one core.
func steps() error {
	runtime.GOMAXPROCS(1)
	if err := decisions(); err != nil {
		return err
	}
	if err := looks(); err != nil {
		return err
	}
	return twoWeeks()
}

// checks measures make check when everything is built and no test has been run.
func checks() error {
	var took time.Duration
	for range 2 { // the first builds
		if out, err := exec.Command("go", "clean", "-testcache").CombinedOutput(); err != nil {
			return fmt.Errorf("go clean: %w\n%s", err, out)
		}
		begin := time.Now()
		if out, err := exec.Command("make", "check").CombinedOutput(); err != nil {
			return fmt.Errorf("make check: %w\n%s", err, out)
		}
		took = time.Since(begin)
	}
	figure("check_s", took.Seconds(), "s")
	return nil
}

// readme counts the words of the README.
func readme() error {
	text, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	figure("readme_words", float64(words.Count(string(text))), "words")
	return nil
}

// repayments measures what a tenant gets back in 48 h that another held of its due for 48 h, with a repay.floor of 50. The
// default of 75 takes twice as long.
func repayments() {
	fmt.Println("Two equal tenants, 16 GPUs: one holds 12 for 48 h in jobs that must not be requeued, while the other waits; then both want all")
	percent := 0.0
	testing.Benchmark(func(b *testing.B) {
		for range b.N {
			set := simtest.Product()
			set.Interval, set.RepayFloorPercent = cluster.Minute, 50
			percent = simtest.NewHolding(b, set).RepaidPercent(1)
		}
	})
	figure("repaid_pct", percent, "%")
}

// floors measures what is left to tenants that repay others: the worst hour after twenty-four histories of held GPUs.
func floors() {
	fmt.Println("24 random histories: GPUs of others are held for 4 to 48 h in jobs that cannot be stopped, then all want more than there is; half under presets that divide GPU models")
	worst := simtest.Floors{Worst: 1000}
	testing.Benchmark(func(b *testing.B) {
		if b.N > 1 {
			return
		}
		for seed := range uint64(24) {
			if f := simtest.FloorsOf(b, seed, cluster.StopsPerHour{}); f.Worst < worst.Worst {
				worst = f
			}
		}
	})
	fmt.Println("the worst:", worst.What)
	figure("repay_floor_worst_pct", worst.Worst, "%")
}

// mechanisms measures how far tenants are from what they are due after 200 terms: the worst of twelve random divisions of gangs, over
// every kind of preset that divides GPU models.
func mechanisms() {
	fmt.Println("Twelve random divisions of 1 to 3 GPU models, gangs of 1 to 8, 200 terms; every kind of dividing preset")
	worst := 0.0
	testing.Benchmark(func(b *testing.B) {
		for range b.N {
			worst = simtest.WorstRounds(b)
		}
	})
	figure("mechanism_worst_rounds", worst, "rounds")
	testing.Benchmark(func(b *testing.B) {
		for range b.N {
			worst = simtest.WorstCellRounds(b)
		}
	})
	figure("mechanism_cells_worst_rounds", worst, "rounds")
}

// gateWrites counts the changes of Slurm's in an hour in which 10,000 jobs wait and nothing else happens, by gate.
func gateWrites() {
	fmt.Println("10,000 jobs wait for an hour behind one that holds all GPUs; they came through the submit plugin; gate.ttl 10 min")
	for _, gate := range []struct {
		name     string
		licenses int64
	}{{"gate_writes_per_hour_10k", 1_000_000}, {"gate_writes_per_hour_10k_begin", 0}} {
		writes := 0
		testing.Benchmark(func(b *testing.B) {
			for range b.N {
				w := simtest.New(b, simtest.Product(), simtest.Nodes("n", "v100", 1, 8), "a")
				w.Gate, w.License = w.Settings.GateTTL, gate.licenses
				w.Virtual.Submit(sim.Work{User: "a_user", Account: "a", Partition: "gpu", Request: simtest.Gang(8), Runs: cluster.Day, NoRequeue: true})
				w.Run(cluster.Minute)
				w.Submit("a", 10_000, 8, cluster.Hour)
				w.Run(cluster.Minute)
				writes = 0
				w.Check = func(r loop.Report) { writes += len(r.Plan.Actions) }
				w.Run(cluster.Hour)
			}
		})
		figure(gate.name, float64(writes), "writes")
	}
}
