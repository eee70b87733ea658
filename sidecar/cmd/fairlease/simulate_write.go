package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// outlet is where scores go.
type outlet struct {
	title     string // of the page
	csv, json bool
	html, dir string
}

func (o *outlet) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.csv, "csv", false, "write every score as CSV instead of a table")
	f.BoolVar(&o.json, "json", false, "write every score as JSON instead of a table")
	f.StringVar(&o.html, "html", "", "write a report with plots into `FILE`, one page that needs no network")
	f.StringVar(&o.dir, "out", "", "write report.html, scores.csv and scores.json into `DIR`")
}

func (o *outlet) check() error {
	if o.csv && o.json {
		return failure.Usage("--csv and --json exclude each other; --out writes both")
	}
	return nil
}

// file is one that is to be written.
type file struct {
	path  string
	write func(io.Writer) error
}

func (o *outlet) write(p *program, scores []score.Scores) error {
	show := report.Table
	switch {
	case o.csv:
		show = report.CSV
	case o.json:
		show = report.JSON
	}
	if err := show(p.out, scores); err != nil {
		return err
	}
	page := func(out io.Writer) error { return report.HTML(out, o.title, scores) }
	var files []file
	if o.html != "" {
		files = append(files, file{o.html, page})
	}
	if o.dir != "" {
		if err := os.MkdirAll(o.dir, 0o755); err != nil {
			return failure.Unwritten(o.dir, err)
		}
		files = append(files, file{filepath.Join(o.dir, "report.html"), page},
			file{filepath.Join(o.dir, "scores.csv"), func(out io.Writer) error { return report.CSV(out, scores) }},
			file{filepath.Join(o.dir, "scores.json"), func(out io.Writer) error { return report.JSON(out, scores) }})
	}
	return p.files(files, o.csv || o.json)
}

// files writes files and says so, unless the output is for programs.
func (p *program) files(files []file, silent bool) error {
	for _, f := range files {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(f.path, b.Bytes(), 0o644); err != nil {
			return failure.Unwritten(f.path, err)
		}
		if !silent {
			p.printf("written: %s\n", f.path)
		}
	}
	return nil
}

// moreMemory lets a simulation, which lives on short-lived memory, spend nine times what it
// needs in order to spend less time on collecting it.
func moreMemory() (restore func()) {
	was := debug.SetGCPercent(800)
	return func() { debug.SetGCPercent(was) }
}
