// Command chaos runs fairlease on a real Slurm while everything around it fails: the sidecars,
// slurmctld, slurmd, slurmrestd, slurmdbd, PostgreSQL, nodes, accounts, and users who change
// their jobs at the worst moment. A seed determines the faults, their times and durations. At the
// end an oracle checks the records of slurmdbd, Slurm and the journal against invariants.
//
//	plan.go      what a seed draws                     users.go   jobs, and what users do to them
//	campaign.go  one run, from the start to the facts  faults.go  what fails, and how it is healed
//	site.go      Slurm, PostgreSQL and two sidecars    proxy.go   the unreliable way to slurmrestd
//	facts.go     what was recorded                     oracle.go  what must hold of it
//	turns.go     jobs that take turns on GPUs, and fairlease thaw
//	soak.go      a run without faults: what the daemon needs, and whether that grows
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	minutes := flag.Float64("minutes", 10, "how long things fail; what comes before and after takes about three minutes more")
	seed := flag.Uint64("seed", 0, "what is drawn; 0 = a fresh seed, which is printed")
	suite := flag.String("suite", "", "Debian suite of the Slurm: forky (26.05) or trixie (24.11); empty: even seeds forky, odd ones trixie")
	gate := flag.String("gate", "", "how jobs are kept waiting: licence or begin (by begin times); empty: seeds 4n and 4n+1 by licence, the others begin")
	kind := flag.String("site", "", "cells: tenants have virtual clusters; slices: they share by weight, and two jobs take turns on a GPU; thirds: three; empty: of seeds 16n to 16n+3 slices, of 16n+8 to 16n+11 thirds, of the others cells")
	only := flag.String("only", "", "only faults whose name has this in it, such as MariaDB")
	soak := flag.Bool("soak", false, "nothing fails: a week of load within the minutes, with samples of what the daemon needs")
	keep := flag.String("keep", "", "folder for the logs and records of the run")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000) + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%6.1f  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	outcome, err := run(ctx, options{Seed: *seed, Suite: *suite, Gate: *gate, Kind: *kind, Length: time.Duration(*minutes * float64(time.Minute)), Only: *only, Soak: *soak, Keep: *keep}, say)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	outcome.print(os.Stdout)
	if len(outcome.Broken) > 0 {
		os.Exit(1)
	}
}
