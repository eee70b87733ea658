package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// fairlease web serves every page from a real journal, with the history in it, under its own policy.
func TestPagesOfAJournal(t *testing.T) {
	s := tell(t)
	w := serveWeb(t, s, "")
	_, plan, err := s.store.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lease := &plan.State.Leases[0]
	held := ""
	for i := range plan.State.Records {
		if r := &plan.State.Records[i]; r.Key == lease.Job {
			held = r.ID.String()
		}
	}
	node := lease.Nodes[0].Node
	for path, has := range map[string][]string{
		"/": {"GPUs busy", ">nlp</a>", ">v100</th>"}, "/gpus?range=30d": {"data-chart=", "GPUs of nlp against its due"}, "/leases": {"Leases on " + node, "/jobs/" + held},
		"/places": {node}, "/places/" + node: {"/jobs/" + held}, "/market": {"Market"}, "/jobs": {"/jobs/" + held}, "/rounds": {fmt.Sprintf("/rounds/%d", plan.Round)},
		fmt.Sprintf("/rounds/%d", plan.Round): {"Decisions", "Tenants in this round"}, "/jobs/" + held: {"Why it runs", "It ", node, ">grant<"},
	} {
		status, header, text := w.ask(t, path)
		if status != http.StatusOK || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: status %d, policy %q", path, status, header.Get("Content-Security-Policy"))
		}
		for _, x := range has {
			if !strings.Contains(text, x) {
				t.Errorf("%s does not have %q:\n%s", path, x, text)
			}
		}
		if strings.Contains(text, "History is missing") {
			t.Errorf("%s has no history", path)
		}
	}
	_, _, text := w.ask(t, "/")
	for _, path := range regexp.MustCompile(`/assets/[^"]+`).FindAllString(text, -1) {
		if status, _, text := w.ask(t, path); status != http.StatusOK || text == "" {
			t.Errorf("%s: status %d", path, status)
		}
	}
}
