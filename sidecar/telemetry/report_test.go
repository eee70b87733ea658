package telemetry

import (
	"math"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestParse(t *testing.T) {
	for _, x := range []struct {
		text, job string
		want      cluster.Progress
		wrong     []string
	}{
		{`{"job":"123","steps":1200,"total":90000}`, "", cluster.Progress{Job: cluster.JobID{ID: 123}, Steps: 1200, Total: 90000}, nil},
		{` {"job":"123_4","steps":0}` + "\n", "", cluster.Progress{Job: cluster.TaskID(123, 4)}, nil},
		{`{"steps":1.5e3}`, "7", cluster.Progress{Job: cluster.JobID{ID: 7}, Steps: 1500}, nil},
		{`{"steps":7,"saved":true}`, "7", cluster.Progress{Job: cluster.JobID{ID: 7}, Steps: 7}, nil},
		{`{"steps":7,"saved":false}`, "7", cluster.Progress{Job: cluster.JobID{ID: 7}, Steps: 7}, nil},
		{`{"steps":7,"saved":true,"took":12.5}`, "7", cluster.Progress{Job: cluster.JobID{ID: 7}, Steps: 7, Took: 12500}, nil},
		{`{"steps":7,"took":1}`, "7", cluster.Progress{}, []string{"took: 1 cannot be; write with a save"}},
		{`{"steps":7,"saved":true,"took":-1}`, "7", cluster.Progress{}, []string{"took: -1 cannot be"}},
		{`{"steps":7,"saved":true,"took":86401}`, "7", cluster.Progress{}, []string{"took: 86401 cannot be"}},
		{`{"steps":7,"saved":1}`, "7", cluster.Progress{}, []string{"the report cannot be read"}},
		{`{"job":"8","steps":1}`, "7", cluster.Progress{}, []string{"job: 8 is said in the file of 7"}},
		{`{"job":"x","steps":-1,"total":1e300}`, "", cluster.Progress{}, []string{`job: "x" is no job id`, "steps: -1 cannot be", "total: 1e+300 cannot be"}},
		{`{"job":"1","total":-1}`, "", cluster.Progress{}, []string{"steps: are missing", "total: -1 cannot be"}},
		{`{"job":1,"steps":1}`, "", cluster.Progress{}, []string{"the report cannot be read"}},
		{`{"job":"1","steps":NaN}`, "", cluster.Progress{}, []string{"the report cannot be read"}},
		{`{"job":"1","steps":1,"steps":2}`, "", cluster.Progress{}, []string{"the report cannot be read"}},
		{`{"job":"1","step":1}`, "", cluster.Progress{}, []string{"the report cannot be read"}},
		{``, "", cluster.Progress{}, []string{"the report cannot be read"}},
		{strings.Repeat(" ", Most+1), "", cluster.Progress{}, []string{"the report has 1025 bytes; 1024 is the most"}},
	} {
		got, saved, err := Parse([]byte(x.text), x.job)
		if got != x.want {
			t.Errorf("%q: %+v, want %+v", x.text, got, x.want)
		}
		if want := strings.Contains(x.text, `"saved":true`) && x.wrong == nil; saved != want {
			t.Errorf("%q: saved %v, want %v", x.text, saved, want)
		}
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(x.wrong) {
			t.Errorf("%q: %q, want %q", x.text, lines, x.wrong)
			continue
		}
		for i := range lines {
			if !strings.HasPrefix(lines[i], x.wrong[i]) {
				t.Errorf("%q: %q, want %q", x.text, lines[i], x.wrong[i])
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"job":"123_4","steps":1200,"total":90000}`), "")
	f.Add([]byte(`{"steps":1e400}`), "7")
	f.Add([]byte(`{"steps":5,"saved":true}`), "7")
	f.Fuzz(func(t *testing.T, text []byte, job string) {
		r, _, err := Parse(text, job)
		if err != nil {
			return
		}
		if r.Job.ID <= 0 || math.IsNaN(r.Steps) || r.Steps < 0 || r.Steps > mostSteps || math.IsNaN(r.Total) || r.Total < 0 || r.Total > mostSteps {
			t.Errorf("%q: %+v", text, r)
		}
		if want, err := cluster.ParseJobID(job); job != "" && (err != nil || r.Job != want) {
			t.Errorf("%q, in the file of %q: %+v", text, job, r)
		}
	})
}

func FuzzOpened(f *testing.F) {
	f.Add([]byte("UID: 1000\nLENGTH: 3\n\nabc"))
	f.Add([]byte("UID: 0\nUID: 1\nLENGTH: 0\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if _, payload, err := opened(out); err == nil && len(payload) > len(out) {
			t.Errorf("%q has a payload of %d bytes", out, len(payload))
		}
	})
}

func TestOpened(t *testing.T) {
	uid, payload, err := opened([]byte("UID:             1000\nLENGTH:          7\n\na\n\nUID:"))
	if err != nil || uid != 1000 || string(payload) != "a\n\nUID:" {
		t.Errorf("%d, %q, %v", uid, payload, err)
	}
	for _, out := range []string{"", "UID: 1\n\n", "LENGTH: 0\n\n", "UID: 1\nLENGTH: 4\n\nabc", "UID: 1\nUID: 2\nLENGTH: 0\n\n", "UID: -1\nLENGTH: 0\n\n", "UID: alice\nLENGTH: 0\n\n", "UID: 1\nLENGTH: 1\n"} {
		if _, _, err := opened([]byte(out)); err == nil {
			t.Errorf("%q makes sense", out)
		}
	}
}
