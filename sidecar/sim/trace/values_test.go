package trace

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/google/go-cmp/cmp"
)

func TestSlurmSpans(t *testing.T) {
	for in, want := range map[string]cluster.Span{
		"00:00:00": 0, "01:02:03": 3723 * second, "2-03:04:05": 183845 * second, "03:04": 184 * second, "00:04.501": 4501,
		"1-02": 26 * cluster.Hour, "1-02:03": 26*cluster.Hour + 3*cluster.Minute, "27:00:00": 27 * cluster.Hour,
		"": -1, "5": -1, "a": -1, "-1:00": -1, "1:-5:00": -1, "1:2:3:4": -1, "1-": -1, "::": -1, "1e3:00": 60000 * second, "99999999999:00": -1, "+1:00": -1, "NaN:00": -1,
	} {
		got, err := slurmSpan(in)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %v %v; want %v", in, got, err, want)
		}
	}
}

func TestMoments(t *testing.T) {
	zone := time.FixedZone("", 8*3600)
	for in, want := range map[string]string{
		"2017-10-07 01:12:09": "2017-10-06T17:12:09Z", "2017-10-07T01:12:09": "2017-10-06T17:12:09Z", "2017-10-07T01:12:09Z": "2017-10-07T01:12:09Z",
		"2017-10-07 01:12:09+02:00": "2017-10-06T23:12:09Z", "2017-10-07T01:12:09.5": "2017-10-06T17:12:09.5Z", "2020-02-29 00:00:00": "2020-02-28T16:00:00Z",
		"2019-02-29 00:00:00": "", "2017-13-07 01:12:09": "", "2017-10-07 24:12:09": "", "2017-10-07 01:60:09": "", "2017-10-07 01:12:6a": "", "2017-10-07": "",
		"1507338729": "2017-10-07T01:12:09Z", "-5": "", "0": "", "1e30": "", "NaN": "", "1969-12-31 00:00:00": "", "2999-12-31 00:00:00": "", "2017-10-07 01:12:09 PDT": "",
	} {
		got, err := moment(in, zone)
		if s := time.UnixMilli(int64(got)).UTC().Format(time.RFC3339Nano); (err == nil) != (want != "") || err == nil && s != want {
			t.Errorf("%q: %s %v; want %q", in, s, err, want)
		}
	}
}

func TestTres(t *testing.T) {
	for in, want := range map[string]struct {
		gpus  int
		model string
		mb    int64
	}{
		"": {}, "cpu=4,mem=1.50G": {0, "", 1536}, "gres/gpu=2": {2, "", 0}, "gres/gpu:a100=2": {2, "a100", 0},
		"gres/gpu:a100=2,gres/gpu=2":              {2, "a100", 0},
		"gres/gpu=4,gres/gpu:a100=2":              {4, "", 0}, // two of another model, which is not tracked
		"gres/gpu:a100=1,gres/gpu:v100=2":         {3, "", 0},
		"gres/gpu:a100=0,gres/gpu:v100=2":         {2, "v100", 0},
		"gres/gpumem=40G,gres/shard=4,fs/disk=1":  {},
		"billing=4,energy=-2,gres/gpu=1,mem=100M": {1, "", 100},
		"mem=1T":    {0, "", 1 << 20},
		"mem=1025K": {0, "", 2},
		"mem=3P,gres/gpu:nvidia_h100_80gb_hbm3=16": {16, "nvidia_h100_80gb_hbm3", 3 << 30},
	} {
		r, err := parseTres(in)
		gpus, model := r.gpus()
		if err != nil || gpus != want.gpus || model != want.model || r.memoryMB != want.mb {
			t.Errorf("%q: %d of %q, %d MB, %v; want %+v", in, gpus, model, r.memoryMB, err, want)
		}
	}
	for _, in := range []string{"gres/gpu=-1", "gres/gpu=", "gres/gpu:a=x", "mem=lots", "mem=4GG", "cpu=1.5"} {
		if r, err := parseTres(in); err == nil {
			t.Errorf("%q reads as %+v", in, r)
		}
	}
}

// Slurm's numbers in all forms of its versions.
func TestSlurmdbNumbers(t *testing.T) {
	for in, want := range map[string]number{
		"7": {true, 7}, "7.0": {true, 7}, `"7"`: {true, 7}, "null": {}, `""`: {}, `"N/A"`: {}, `"None"`: {},
		`{"set":true,"infinite":false,"number":7}`: {true, 7}, `{"set":false,"infinite":false,"number":7}`: {}, `{"set":true,"infinite":true,"number":7}`: {},
		`{"number":7}`: {true, 7}, `{}`: {}, `{"set":true,"number":"7"}`: {true, 7}, "-2": {true, -2},
	} {
		var got number
		if err := got.UnmarshalJSON([]byte(in)); err != nil || got != want {
			t.Errorf("%s: %+v %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"true", "[7]", "1e99", `"x"`, `{"set":7}`} {
		var got number
		if err := got.UnmarshalJSON([]byte(in)); err == nil {
			t.Errorf("%s reads as %+v", in, got)
		}
	}
	for in, want := range map[string]string{
		`"RUNNING"`: "RUNNING", `["running"]`: "RUNNING", `{"current":["PENDING","REQUEUED"],"reason":"None"}`: "REQUEUED", `{"current":"TIMEOUT"}`: "TIMEOUT", "null": "", "[]": "", "{}": "",
	} {
		var got states
		if err := got.UnmarshalJSON([]byte(in)); err != nil || got.one() != want {
			t.Errorf("%s: %v %v; want %q", in, got, err, want)
		}
	}
}

// Any trace can be converted to plain CSV and read again.
func TestWrite(t *testing.T) {
	full := Job{ID: `a,"b"`, Tenant: "t", User: "u", Name: "x | y", Submit: 1500, Runs: 1, GPUs: 2, Nodes: 1, CPUs: 3, MemoryMB: 4,
		Model: "v100", Kind: "LM (batch size 5)", Limit: 90 * second, Outcome: Timeout}
	bare := Job{ID: "b", Tenant: "t", Submit: 2 * second, Runs: cluster.Hour, GPUs: 1}
	jobs := []Job{full, bare}
	var plain, all bytes.Buffer
	if err := Write(&plain, slices.Values(jobs)); err != nil {
		t.Fatal(err)
	}
	want := "job_id,tenant,user,gpus,submit_time,duration_s,state\n\"a,\"\"b\"\"\",t,u,2,1.500,0.001,TIMEOUT\nb,t,,1,2,3600,UNKNOWN\n"
	if plain.String() != want {
		t.Errorf("%s\nwant\n%s", plain.String(), want)
	}
	if err := WriteFull(&all, slices.Values(jobs)); err != nil {
		t.Fatal(err)
	}
	tr, err := read(&all, "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jobs, tr.Jobs); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"testdata/philly.json", "testdata/pai", "testdata/sacct.txt"} {
		tr, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		rewritten(t, tr)
	}
	if err := Write(fullDisk{}, slices.Values(jobs)); err == nil || err.Error() != "write the trace: disk full" {
		t.Error(err)
	}
	drawn := 0
	var endless iter.Seq[Job] = func(yield func(Job) bool) {
		for drawn = 1; drawn < 1e6 && yield(bare); drawn++ {
		}
	}
	if err := Write(fullDisk{}, endless); err == nil || drawn > 1000 {
		t.Errorf("%v after %d jobs were drawn for a full disk", err, drawn)
	}
}

// No text of a written trace begins a formula in a spreadsheet, and reading gives it back, without blanks around it.
func TestFormulasInTexts(t *testing.T) {
	var jobs, want []Job
	for i, text := range []string{`=HYPERLINK("x")`, "+1", "-1", "@SUM(A1)", "\tx", "'=1", "''+1", "'quoted'", "-"} {
		of := func(text string) Job {
			return Job{ID: text, Tenant: text, User: text, Name: text, Model: text, Kind: text, Submit: cluster.Span(i+1) * second, Runs: second, GPUs: 1}
		}
		jobs, want = append(jobs, of(text)), append(want, of(strings.TrimSpace(text)))
	}
	var b bytes.Buffer
	if err := WriteFull(&b, slices.Values(jobs)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for _, cell := range row {
			if len(cell) > 1 && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("%q begins a formula", cell)
			}
		}
	}
	tr, err := read(&b, "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tr.Jobs); diff != "" || tr.Counts.Bad != 0 {
		t.Errorf("%+v\n%s", tr.Bad, diff)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// rewritten checks that a trace is the same after it was written and read.
func rewritten(t *testing.T, tr *Trace) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFull(&b, slices.Values(tr.Jobs)); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	again, err := read(&b, "again", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Jobs) == 0 {
		tr.Jobs = nil
	}
	if diff := cmp.Diff(tr.Jobs, again.Jobs); diff != "" || again.Counts.Bad != 0 {
		t.Errorf("written and read, %+v:\n%s\n%s", again.Bad, diff, text)
	}
}

// Control characters do not get into a trace.
func TestControlCharacters(t *testing.T) {
	tr, err := read(strings.NewReader(`[{"jobid":"a\nb","vc":"t","submitted_time":"2020-01-01 00:00:00","attempts":[{"start_time":"2020-01-01 00:00:00","end_time":"2020-01-01 00:00:01","detail":[{"gpus":["0"]}]}]}]`), "x", Options{})
	if err != nil || tr.Counts.Bad != 1 || tr.Bad[0].What != `"a\nb" has control characters` {
		t.Errorf("%+v %v", tr, err)
	}
	tr, err = read(strings.NewReader(`{"jobs":[{"job_id":1,"name":" a\nb","user":" u ","time":{"submission":5,"elapsed":5},"tres":{"allocated":[{"type":"gres","name":"gpu","count":1}]}}]}`), "x", Options{})
	if err != nil || len(tr.Jobs) != 1 || tr.Jobs[0].Name != "a b" || tr.Jobs[0].User != "u" {
		t.Errorf("%+v %v", tr, err)
	}
}

// The parts of a heterogeneous job have the same names in both of Slurm's formats.
func TestSlurmdbHeterogeneousJobs(t *testing.T) {
	const job = `{"job_id":%d,"het":{"job_id":%d,"job_offset":{"set":%t,"infinite":false,"number":%d}},"user":"u","time":{"submission":5,"elapsed":5},"tres":{"allocated":[{"type":"gres","name":"gpu","count":1}]}}`
	in := fmt.Sprintf(`{"jobs":[`+job+","+job+","+job+`]}`, 11, 11, true, 0, 12, 11, true, 1, 13, 0, false, 0)
	tr, err := read(strings.NewReader(in), "x", Options{})
	if err != nil || len(tr.Jobs) != 3 || tr.Jobs[0].ID != "11+0" || tr.Jobs[1].ID != "11+1" || tr.Jobs[2].ID != "13" {
		t.Errorf("%+v %v", tr, err)
	}
}

// Names are hidden, behaviour is not; equal names stay equal.
func TestAnonymous(t *testing.T) {
	a := Job{ID: "71_1", Tenant: "vision", User: "alice", Name: "resnet", Submit: 1500, Runs: second, GPUs: 2, Model: "v100", Kind: "LM", Limit: second, Outcome: Failed}
	b, c := a, a
	b.ID, b.Tenant, b.User, b.Name = "72", "alice", "alice", "bert"
	c.ID, c.User, c.Name = "73", "", ""
	want := []Job{a, b, c}
	want[0].ID, want[0].Tenant, want[0].User, want[0].Name = "1", "tenant1", "user1", "name1"
	want[1].ID, want[1].Tenant, want[1].User, want[1].Name = "2", "tenant2", "user1", "name2"
	want[2].ID, want[2].Tenant = "3", "tenant1"
	anonymous := Anonymous(slices.Values([]Job{a, b, c}))
	for range 2 {
		if d := cmp.Diff(want, slices.Collect(anonymous)); d != "" {
			t.Error(d)
		}
	}
	for range anonymous {
		break // nobody asks for more
	}
}
