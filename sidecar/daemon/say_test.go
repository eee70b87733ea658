package daemon

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

func TestAnyJob(t *testing.T) {
	for text, want := range map[string]string{"1": "JOB", "job 1: code 11, 1": "job JOB: code 11, JOB", "a1 1_2 11 é1": "a1 1_2 11 é1", "": "", "/1/1": "/JOB/JOB"} {
		if got := anyJob(text, "1"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// One cause that a thousand actions of a round fail of is one line with their number and the first jobs, and one a minute
// while it lasts; other failures and those of one job have a line of their own.
func TestFailedActionsOfARound(t *testing.T) {
	var r loop.Report
	add := func(verb cluster.Verb, id int64, o cluster.Outcome) {
		r.Plan.Actions = append(r.Plan.Actions, cluster.Action{Verb: verb, ID: cluster.JobID{ID: id}, Record: id, Reason: cluster.Reason{Code: "behind"}})
		r.Outcomes = append(r.Outcomes, o)
	}
	for id := range int64(1000) {
		add(cluster.Gate, 5000+id, cluster.Outcome{Error: fmt.Sprintf("job %d: refused", 5000+id)})
	}
	add(cluster.Reclaim, 7, cluster.Outcome{Error: "refused"})
	add(cluster.Gate, 8, cluster.Outcome{Error: "no such job"})
	add(cluster.Grant, 9, cluster.Outcome{OK: true})
	add(cluster.Grant, 10, cluster.Outcome{OK: true})
	add(cluster.Grant, 11, cluster.Outcome{Skipped: true, Error: "held"})
	add(cluster.Grant, 12, cluster.Outcome{Skipped: true, Error: "held"})
	var out bytes.Buffer
	now := time.Unix(1_000_000, 0)
	d := &reporter{log: zerolog.New(newRepeats(&out, func() time.Time { return now }))}
	for range 10 {
		if done, failed, suppressed := d.actions(&r); done != 2 || failed != 1002 || suppressed != 0 {
			t.Errorf("%d done, %d failed, %d suppressed", done, failed, suppressed)
		}
		now = now.Add(time.Second)
		r.Plan.Round++
		r.Plan.Actions, r.Outcomes = r.Plan.Actions[1:], r.Outcomes[1:] // one more is gated, and another fails
		add(cluster.Gate, 7000+r.Plan.Round, cluster.Outcome{Error: fmt.Sprintf("job %d: refused", 7000+r.Plan.Round)})
	}
	got := regexp.MustCompile(`"(level|round|because|took_ms)":("\w*"|\d+),?`).ReplaceAllString(out.String(), "")
	want := `{"outcome":"failed","count":1000,"first_jobs":"5000, 5001, 5002, 5003, 5004","error":"job JOB: refused","message":"gate"}
{"outcome":"failed","job":"7","error":"refused","message":"reclaim"}
{"outcome":"failed","job":"8","error":"no such job","message":"gate"}
{"outcome":"done","job":"9","message":"grant"}
{"outcome":"done","job":"10","message":"grant"}
{"outcome":"skipped","count":2,"first_jobs":"11, 12","error":"held","message":"grant"}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A long text in the log is truncated between two characters, and its length is added.
func TestBrief(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{strings.Repeat("a", mostText), strings.Repeat("a", mostText)},
		{strings.Repeat("a", mostText+1), strings.Repeat("a", mostText) + "… (501 bytes)"},
		{"a" + strings.Repeat("ü", mostText), "a" + strings.Repeat("ü", (mostText-1)/2) + "… (1001 bytes)"},
	} {
		if got := brief(c.text, mostText); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q is cut to %q, want %q", c.text, got, c.want)
		}
	}
}
