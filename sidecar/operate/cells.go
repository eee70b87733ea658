package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// CellsCheck is the result of a check.
type CellsCheck struct {
	File     string         `json:"file"`
	Levels   []cells.Supply `json:"levels"`
	Problems []string       `json:"problems"`
	Remarks  []string       `json:"remarks"`

	wrong config.Problems // Problems, with their places
}

// CheckCells tests whether every reservation in a file is possible and, unless offline, whether the
// file matches Slurm. The error is about an unreadable file.
func CheckCells(ctx context.Context, cfg *config.Config, file string, offline bool) (*CellsCheck, error) {
	found := &CellsCheck{File: file, Levels: []cells.Supply{}, Problems: []string{}, Remarks: []string{}}
	f, err := config.LoadCells(file)
	if err != nil && !errors.As(err, &found.wrong) {
		return nil, &failure.Error{Code: failure.Misuse, What: "the file of cells cannot be read", Err: err, Next: "`fairlease cells init` writes one"}
	}
	if f != nil {
		found.Levels = f.Supply
		if !offline {
			found.wrong, found.Remarks = againstSlurm(ctx, cfg, f)
		}
		for _, x := range f.Untrusted() {
			found.Remarks = append(found.Remarks, x.String())
		}
	}
	for _, x := range found.wrong {
		found.Problems = append(found.Problems, x.String())
	}
	return found, nil
}

// againstSlurm compares a cells file with Slurm, if Slurm answers.
func againstSlurm(ctx context.Context, cfg *config.Config, f *config.CellFile) (config.Problems, []string) {
	away := func(err error) (config.Problems, []string) {
		return nil, []string{fmt.Sprintf("Slurm could not be asked (%s), so nodes and tenants were not checked", failure.Cause(err))}
	}
	client, err := connect.Slurm(cfg)
	if err != nil {
		return away(err)
	}
	defer client.Close()
	seen, err := client.Observe(ctx, 0)
	if err != nil {
		return away(err)
	}
	rules := cfg.Rules()
	wrong, remarks := f.Against(&seen, &rules)
	return wrong, append([]string{}, remarks...)
}

// Write writes the result. Problems are an error.
func (found *CellsCheck) Write(p *view.Page) error {
	if p.JSON {
		if err := p.Encode(found); err != nil {
			return err
		}
		if found.wrong != nil {
			return failure.Quiet(failure.No)
		}
		return nil
	}
	t := &view.Table{Head: []string{"CHAIN", "TYPE", ">GPUS", ">CELLS", ">PINNED", ">NEEDED", ">THERE", ">SPARE"}}
	for _, s := range found.Levels {
		t.Add(s.Chain, s.Type, fmt.Sprint(s.GPUs), fmt.Sprint(s.Cells), fmt.Sprint(s.Pinned), fmt.Sprint(s.Needed), fmt.Sprint(s.There), fmt.Sprint(s.There-s.Needed))
	}
	if len(found.Levels) > 0 || p.Parsable {
		p.Table(t)
	}
	if !p.Parsable {
		for _, r := range found.Remarks {
			p.Printf("%s %s\n", p.Paint("remark:", "yellow"), r)
		}
	}
	if found.wrong != nil {
		return &failure.Error{Code: failure.No, What: found.File + " cannot be used", Err: found.wrong,
			Next: "correct the file; a running daemon keeps the old one"}
	}
	return nil
}

// ProposeCells makes a usable cells file.
func ProposeCells(ctx context.Context, cfg *config.Config, warn io.Writer) (string, error) {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	seen, err := client.Observe(ctx, 0)
	if err != nil {
		return "", connect.SlurmAway(cfg, err)
	}
	layout, err := client.Layout(ctx)
	if err != nil {
		fmt.Fprintf(warn, "fairlease: without topology: %s\n", failure.Cause(err))
	}
	rules := cfg.Rules()
	text, err := config.ProposeCells(&seen, &rules, layout.Sockets, racks(layout.Groups))
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "no cells can be proposed", Err: err, Next: "correct partitions, tenants.level or tenants.weights in the configuration; `fairlease doctor` checks more"}
	}
	f, err := config.ParseCells("proposal", []byte(text))
	if err == nil {
		if wrong, _ := f.Against(&seen, &rules); len(wrong) > 0 {
			err = wrong
		}
	}
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "no file of cells could be made from Slurm's nodes", Err: err, Next: "write it by hand; etc/cells has examples"}
	}
	return text, nil
}

func racks(groups []slurm.Group) []config.Rack {
	out := make([]config.Rack, len(groups))
	for i, g := range groups {
		out[i] = config.Rack(g)
	}
	return out
}

// WriteNewFile writes a new file. It replaces an existing one only with force.
func WriteNewFile(path, text string, force bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, how, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, os.ErrExist) {
		return &failure.Error{Code: failure.No, What: path + " already exists", Next: "choose another file, or overwrite it with --force"}
	}
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the file could not be written", Err: err}
	}
	return nil
}
