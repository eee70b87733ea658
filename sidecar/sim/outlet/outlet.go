// Package outlet writes the results of an experiment to the output, in one form, and to files.
package outlet

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Outlet is the destination of scores: by default a table on the output, and files.
type Outlet struct {
	Title     string // of the page
	CSV, JSON bool
	HTML, Dir string // an HTML page; a folder for all forms
}

// Check refuses two forms at once.
func (o *Outlet) Check() error {
	if o.CSV && o.JSON {
		return failure.Usage("--csv and --json exclude each other; --out writes both")
	}
	return nil
}

// File is a file to write.
type File struct {
	Path  string
	Write func(io.Writer) error
}

// Write writes scores.
func (o *Outlet) Write(out io.Writer, scores []score.Scores) error {
	show := report.Table
	switch {
	case o.CSV:
		show = report.CSV
	case o.JSON:
		show = report.JSON
	}
	if err := show(out, scores); err != nil {
		return err
	}
	page := func(out io.Writer) error { return report.HTML(out, o.Title, scores) }
	var files []File
	if o.HTML != "" {
		files = append(files, File{o.HTML, page})
	}
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return failure.Unwritten(o.Dir, err)
		}
		files = append(files, File{filepath.Join(o.Dir, "report.html"), page},
			File{filepath.Join(o.Dir, "scores.csv"), func(out io.Writer) error { return report.CSV(out, scores) }},
			File{filepath.Join(o.Dir, "scores.json"), func(out io.Writer) error { return report.JSON(out, scores) }})
	}
	return Files(out, files, o.CSV || o.JSON)
}

// Files writes files and lists them, unless the output is for programs.
func Files(out io.Writer, files []File, silent bool) error {
	for _, f := range files {
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(f.Path, b.Bytes(), 0o644); err != nil {
			return failure.Unwritten(f.Path, err)
		}
		if !silent {
			fmt.Fprintf(out, "written: %s\n", f.Path)
		}
	}
	return nil
}
