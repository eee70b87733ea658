package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The history is asked for day by day, its rows are told apart by their end, and each tells what the job did: by its submit line, or by
// the kind that its comment declares.
func TestTheHistoryOfSomeDays(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	c := f.client(func(c *Config) { c.Now = func() time.Time { return time.Unix(1_000_100, 0) } })
	row := func(id, end int, more string) string {
		return fmt.Sprintf(`{"job_id":%d,"user":"ann","account":"nlp","cluster":"test","name":"run1","nodes":"v1","state":{"current":["COMPLETED"]},
			"time":{"submission":%d,"start":%d,"end":%d,"suspended":0},"tres":{"allocated":[{"type":"gres","name":"gpu:v100","count":2}]}%s}`, id, end-200, end-100, end, more)
	}
	const day = 86400
	until := 1_000_000
	var asked []string
	f.on("GET /slurmdb/v0.0.44/jobs", text(`{"jobs":[`+strings.Join([]string{
		row(1, until-10, `,"submit_line":"sbatch --gres=gpu:2 train.sh --seed 1","working_directory":"/home/ann","comment":{"administrator":"","job":"","system":""}`),
		row(2, until-day-10, `,"submit_line":"sbatch --gres=gpu:2 train.sh --seed 2","working_directory":"/home/ann","comment":{"job":"kind=mine,steps=3"}`),
		row(3, until-3*day, ``),
		row(4, until+10, ``),
	}, ",")+`],"errors":[]}`))
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(1, "")))
	if _, err := c.Observe(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	got, err := c.History(t.Context(), cluster.Instant(until-2*day)*1000, cluster.Instant(until)*1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range f.asked {
		if strings.HasPrefix(a.what, "GET /slurmdb/v0.0.44/jobs") {
			asked = append(asked, a.query)
		}
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "end_time=1000000") || !strings.Contains(asked[0], fmt.Sprintf("start_time=%d", until-day)) {
		t.Errorf("asked for %q", asked)
	}
	if len(got) != 2 || got[0].ID.ID != 1 || got[1].ID.ID != 2 {
		t.Fatalf("%+v", got)
	}
	if got[0].Work == "" || got[0].Work != got[1].Work || got[0].Kind != "" || got[1].Kind != "mine" || got[0].Name != "run1" || !strings.HasPrefix(got[0].Work, "train.sh:") {
		t.Errorf("%+v", got)
	}
}

// After a start of slurmctld slurmdbd is asked what had ended by then, also if the last look was a moment ago. If it does not answer, that is a
// note.
func TestTheHistoryAfterAStartOfSlurmctld(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	now := time.Unix(1_000_100, 0)
	c := f.client(func(c *Config) {
		c.Now, c.Scontrol = func() time.Time { return now }, []string{"echo", "MinJobAge = 300 sec"}
	})
	const path = "GET /slurmdb/v0.0.44/jobs"
	boot := func(at int) {
		f.on("GET /slurm/v0.0.44/diag", text(fmt.Sprintf(`{"statistics":{"req_time":1000000,"req_time_start":%d},"meta":{"slurm":{"cluster":"test","release":"24.11.5"}},"errors":[]}`, at)))
	}
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(1, "")))
	f.on(path, text(`{"jobs":[{"job_id":7,"user":"ann","account":"nlp","cluster":"test","nodes":"v1","state":{"current":["RUNNING"]},
		"time":{"submission":1000050,"start":1000060,"end":0,"suspended":0},"tres":{"allocated":[{"type":"gres","name":"gpu:v100","count":2}]}}],"errors":[]}`))
	look := func(asked, rows int) (note string) {
		t.Helper()
		before := f.count(path)
		since := cluster.InstantOf(now)
		now = now.Add(10 * time.Second)
		s, err := c.Observe(t.Context(), since)
		if n := f.count(path) - before; err != nil || min(n, 1) != asked || len(s.Attempts) != rows { // failures are tried again
			t.Errorf("asked %d times, want %d; %+v, %v", n, asked, s.Attempts, err)
		}
		return strings.Join(c.Notes(), "\n")
	}
	boot(1_000_050)
	look(0, 0)
	boot(1_000_113)
	look(1, 1)
	look(0, 0)
	f.on(path, status(500, text(`{}`)))
	boot(1_000_133)
	if note := look(1, 0); !strings.Contains(note, "does not tell which jobs had ended by then") {
		t.Error(note)
	}
}
