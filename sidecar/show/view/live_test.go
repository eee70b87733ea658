package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Times are for people, or as Slurm writes them where a program reads the table.
func TestLiveTable(t *testing.T) {
	now := cluster.Instant(cluster.Day)
	jobs := []view.Live{{ID: "1", Ends: now.Add(90 * cluster.Minute)}, {ID: "2", Since: now.Add(-90 * cluster.Second)}}
	for form, want := range map[view.Form][]string{{}: {"1 h 30 min", "1 min 30 s"}, {Parsable: true}: {"|01:30:00|", "|00:01:30|"}} {
		var out bytes.Buffer
		(&view.Page{Out: &out, Form: form}).Table(view.LiveTable(form, jobs, now))
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("want %q in\n%s", w, out.String())
			}
		}
	}
}
