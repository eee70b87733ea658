package operate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// An existing file is kept unless --force is given.
func TestWriteNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells.yaml")
	if err := operate.WriteNewFile(path, "one", false); err != nil {
		t.Fatal(err)
	}
	if err := operate.WriteNewFile(path, "two", false); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("overwritten: %v", err)
	}
	if err := operate.WriteNewFile(path, "3", true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "3" {
		t.Errorf("%q %v", text, err)
	}
	if err := operate.WriteNewFile(filepath.Join(path, "x"), "", false); err == nil {
		t.Error("written below a file")
	}
}

const racks = `
cellHierarchy:
  - {name: rack, split: 2, child: node}
  - {name: node, split: 4, child: gpu, node: true}
  - {name: gpu, model: v100}
physicalCluster:
  - {type: rack, nodes: "v[01-02]"}
vcAssignment:
  - vc: nlp
    cells: [{type: node, number: %s}]
`

// A file is shown level by level; an impossible reservation is an error.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells.yaml")
	for _, c := range []struct{ number, want, err string }{
		{"1", "rack|node|4|2|0|1|2|1\n", ""},
		{"3", "", "cells.yaml cannot be used"},
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(racks, "%s", c.number, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := operate.CheckCells(t.Context(), config.Default(), path, true)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = found.Write(&view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(out.String(), c.want) || (len(found.Problems) > 0) != (c.err != "") {
			t.Errorf("%s nodes: %v, %v\n%s", c.number, err, found.Problems, &out)
		}
		if err := found.Write(&view.Page{Out: &out, Form: view.Form{JSON: true}}); (err == nil) != (c.err == "") {
			t.Errorf("as JSON: %v", err)
		}
	}
	if _, err := operate.CheckCells(t.Context(), config.Default(), path+"x", true); err == nil {
		t.Error("a file that is not there")
	}
}
