package page_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// Operators see the record of administration; for all others there is no such page, and no link to it.
func TestRecordIsForOperators(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 8})
	for target, want := range map[string]string{"/audit": "deadline", "/audit?key=mode": "observe", "/audit?before=2": "tenants.weights.nlp", "/audit?key=none": "No changes have been recorded"} {
		status, text := d.ask(operator, target)
		if status != http.StatusOK || !strings.Contains(text, want) || !strings.Contains(text, `href="/audit"`) {
			t.Errorf("%s: status %d, without %q", target, status, want)
		}
		check(t, target, text)
		for _, who := range []rights.Person{{}, d.member()} {
			if status, text := d.ask(who, target); status != http.StatusNotFound || strings.Contains(text, want) || strings.Contains(text, "/audit\"") {
				t.Errorf("%q asks for %s: status %d", who.User, target, status)
			}
		}
	}
	if _, text := d.ask(d.member(), "/"); strings.Contains(text, "/audit") {
		t.Error("a link to the record is shown to others")
	}
}
