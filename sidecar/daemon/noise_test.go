package daemon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// A user's jobs begin at most 20 remarks an hour, jobs of an array with one cause count once, and the rest are counted.
func TestRemarksOfAUser(t *testing.T) {
	const start = 10 * cluster.Instant(cluster.Hour)
	single := func(user string, n int) (out []gpu.Remark) {
		for i := range n {
			out = append(out, gpu.Remark{Kind: gpu.HoldsIdle, Job: cluster.JobKey(i), ID: cluster.JobID{ID: int64(100 + i)}, User: user, Text: "idle"})
		}
		return out
	}
	tasks := func(user string, n int) (out []gpu.Remark) {
		for i := range n {
			out = append(out, gpu.Remark{Kind: gpu.HoldsIdle, Job: cluster.JobKey(5000 + i), ID: cluster.TaskID(7, int32(i)), User: user, Text: "idle"})
		}
		return out
	}
	was := noises{}
	for name, c := range map[string]struct {
		news              []gpu.Remark
		rows, lines, left int
	}{
		"none":               {nil, 0, 0, 0},
		"few":                {single("ann", 20), 20, 20, 0},
		"many":               {single("ann", 1000), 21, 21, 980},
		"two users":          {append(single("ann", 30), single("bob", 5)...), 26, 26, 10},
		"an array":           {tasks("ann", 1000), 1000, 1, 0},
		"an array too much":  {append(single("ann", 20), tasks("ann", 1000)...), 21, 21, 1},
		"one job, two nodes": {[]gpu.Remark{{Kind: "straggler", ID: cluster.TaskID(7, 1), Node: "a", User: "ann"}, {Kind: "straggler", ID: cluster.TaskID(7, 1), Node: "b", User: "ann"}}, 2, 2, 0},
	} {
		q := was.limit(start, c.news)
		if len(q.rows) != c.rows || len(q.lines) != c.lines || q.left != c.left || len(was) != 0 {
			t.Errorf("%s: %d rows, %d lines, %d left out, want %d, %d and %d", name, len(q.rows), len(q.lines), q.left, c.rows, c.lines, c.left)
		}
	}
	many := was.limit(start, single("ann", 1000))
	if last := many.rows[20]; last.Kind != cluster.EventEventsLeftOut || !strings.HasPrefix(last.Text, "the jobs of user ann have caused 20 remarks since 1970-01-01T10:00") {
		t.Errorf("%+v", last)
	}
	if q := many.is.limit(start+1, single("ann", 3)); len(q.rows) != 0 || q.left != 3 {
		t.Errorf("within the hour: %+v", q)
	}
	q := many.is.limit(start+cluster.Instant(cluster.Hour), single("ann", 1))
	if len(q.rows) != 2 || !strings.HasPrefix(q.rows[1].Text, "the jobs of user ann caused 980 more remarks in the hour from 1970-01-01T10:00") {
		t.Errorf("an hour later: %+v", q.rows)
	}
	if diff := cmp.Diff(noises{"ann": {User: "ann", Since: start + cluster.Instant(cluster.Hour), Told: 1}}, q.is); diff != "" {
		t.Error(diff)
	}
}
