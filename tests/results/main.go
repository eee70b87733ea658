// Command results makes the tables and pictures of docs/results.md, and those of research/results.md that are simulations of
// published traces: all of them, or those that are named. One engine makes a table: results are kept in a folder of the engine's
// sources, so that a second start goes on, and another engine begins anew.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	_ "github.com/fairlease/fairlease/research/papers"
)

// pages may have tables, between marks.
var pages = []string{"docs/results.md", "research/results.md"}

// pictures are beside the first of them.
const pictures = "docs/results-*.svg"

func main() {
	only := flag.String("tables", "", "names of the tables to make, between spaces; empty = all")
	dir := flag.String("traces", os.Getenv("FAIRLEASE_TRACES"), "folder with the traces")
	workers := flag.Int("workers", 1, "runs at the same time")
	out := flag.String("out", "out/results", "folder for the results of runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(400)
	if err := makeTables(ctx, strings.Fields(*only), *dir, *out, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

// makeTables makes the named tables, one after the other, and says which ones on the pages are another engine's.
func makeTables(ctx context.Context, names []string, dir, out string, workers int) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	tip, err := engineNow(ctx)
	if err != nil {
		return err
	}
	b := &bank{dir: out, traces: dir, engine: tip.key}
	for i := range chosen {
		if err := b.missing(chosen[i].runs()); err != nil {
			return err
		}
	}
	if err := b.work(ctx, workers); err != nil {
		return err
	}
	for i := range chosen {
		if err := chosen[i].publish(b, tip); err != nil {
			return err
		}
	}
	old, err := stale(tip.key)
	for _, line := range old {
		fmt.Println(line)
	}
	return err
}

// choose finds tables by name; no names = all.
func choose(names []string) ([]table, error) {
	all := tables()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for i := range all {
		known = append(known, all[i].name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no table %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(t table) bool { return !slices.Contains(names, t.name) }), nil
}
