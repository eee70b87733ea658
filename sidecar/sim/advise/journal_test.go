package advise_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/advise"
)

// A proposal is a table, and text for a cells file.
func TestProposal(t *testing.T) {
	x := advise.Proposal{Lines: []advise.Line{{Tenant: "nlp", Chain: "rack", Type: "node", Cells: 2, Now: 1, Jobs: 7, Waited: 1.5}, {Tenant: "nlp", Chain: "rack", Type: "pair", Cells: 1}}, LeftOut: 3}
	for form, want := range map[view.Form]string{
		{}:                               "remark: 3 jobs are left out: no node is large enough, or none has their GPUs\n\nvcAssignment:\n  - vc: nlp\n    cells:\n      - {chain: rack, type: node, number: 2}\n      - {chain: rack, type: pair, number: 1}\n",
		{Parsable: true, NoHeader: true}: "nlp|rack|node|2|1|7|1.5 h\nnlp|rack|pair|1|0|0|0.0 h\n",
		{JSON: true}:                     "\"left_out\": 3",
	} {
		var out bytes.Buffer
		if err := x.Write(&view.Page{Out: &out, Form: form}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%+v (%v): want %q in\n%s", form, err, want, &out)
		}
	}
}
