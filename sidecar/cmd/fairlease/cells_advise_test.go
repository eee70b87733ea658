package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/tests/seeds"
)

const fourGPUs = `
cellHierarchy:
  - {name: node, split: 2, child: pair, node: true}
  - {name: pair, split: 2, child: gpu}
  - {name: gpu, model: v100}
physicalCluster:
  - type: node
    nodes: v[01-03]
vcAssignment:
  - vc: nlp
    cells: [{type: node, number: 1}]
`

// The advice can be put into the file, and is accepted.
func TestCellsAdvise(t *testing.T) {
	seeds.Slow(t)
	s := watched(t)
	file := filepath.Join(t.TempDir(), "cells.yaml")
	if err := os.WriteFile(file, []byte(fourGPUs), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run(t, "cells", "advise", file)
	if r.code != failure.OK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	golden(t, "cells-advise", r.out+r.err)
	_, proposed, ok := strings.Cut(r.out, "vcAssignment:")
	if !ok {
		t.Fatal("nothing is proposed")
	}
	described, _, _ := strings.Cut(fourGPUs, "vcAssignment:")
	if _, err := config.ParseCells("proposal", []byte(described+"vcAssignment:"+proposed)); err != nil && !strings.Contains(r.out, "not all of this can be promised") {
		t.Errorf("the proposal is refused: %v", err)
	}
	for _, c := range []struct{ args, says string }{
		{"cells advise", "no file of cells is configured"},
		{"cells advise /nowhere/cells.yaml", "cannot be used"},
		{"cells advise " + file + " --since 2099-01-01", "the window"},
		{"cells advise " + file + " --since soon", "is no time"},
	} {
		if r := s.run(t, strings.Fields(c.args)...); r.code == failure.OK || !strings.Contains(r.err, c.says) {
			t.Errorf("%s: exit code %d, %s", c.args, r.code, r.err)
		}
	}
}
