package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/fairlease/fairlease/research/figures"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// onFigures makes the papers' figures again, or those of one paper: one page and a CSV for each.
func onFigures(dir, only string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var charts []report.Chart
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	say := func(run string) { fmt.Fprintln(os.Stderr, run) }
	for _, f := range figures.All(gavelData, say) {
		if only != "" && only != f.Paper {
			continue
		}
		_, _ = fmt.Fprintf(os.Stderr, "%s, figure %s ...\n", f.Paper, f.Name)
		began := time.Now()
		got, err := f.Make(context.Background())
		if err != nil {
			return fmt.Errorf("%s, figure %s: %w", f.Paper, f.Name, err)
		}
		fmt.Printf("%s, figure %s (%.0f s)\n", f.Paper, f.Name, time.Since(began).Seconds())
		for _, c := range got {
			fmt.Printf("  %s: %s\n", c.Name, c.Ours)
			if err := into(filepath.Join(dir, c.Name+".csv"), c.CSV); err != nil {
				return err
			}
		}
		charts = append(charts, got...)
	}
	if charts == nil {
		return fmt.Errorf("-only %s is not known; write gandiva-fair, gavel or oef", only)
	}
	return into(filepath.Join(dir, "figures.html"), func(w io.Writer) error {
		return report.Charts(w, "The papers' figures: jobs save when their lease ends, or always, as the papers assume", charts)
	})
}

// into writes a file.
func into(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
