package trace

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones, even if the machine has none

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// read reads a trace from a stream, gzipped or not; name is its name in messages. PAI's two
// tables need Open.
func read(r io.Reader, name string, o Options) (*Trace, error) {
	s, err := newSource(r, name, o)
	if err != nil {
		return nil, err
	}
	return s.read(o)
}

const second = cluster.Second

func day(s string) time.Time {
	t, err := time.Parse(time.DateTime, s)
	if err != nil {
		panic(err)
	}
	return t
}

// TestSamples reads a hand-made file of every format, with the format's traps.
func TestSamples(t *testing.T) {
	slurmdb := []Job{
		{ID: "8_4", Tenant: "vision", User: "bob", Name: "sweep", Submit: 0, Runs: 570 * second, GPUs: 3, CPUs: 2, Model: "k80", Limit: 600 * second, Outcome: Timeout},
		{ID: "7", Tenant: "nlp", User: "alice", Name: "train", Submit: 100 * second, Runs: 180 * second, GPUs: 2, Nodes: 1, CPUs: 8, MemoryMB: 200, Model: "v100", Limit: 600 * second, Outcome: Completed},
		{ID: "12", Tenant: "vision", User: "carol", Name: "train", Submit: 130 * second, Runs: 500 * second, GPUs: 2, Nodes: 1, CPUs: 8, MemoryMB: 200, Model: "v100"},
	}
	slurmdbCounts := Counts{Rows: 7, Bad: 1, CPUOnly: 1, NoRun: 1, Joined: 1, Unfinished: 1}
	for _, c := range []struct {
		path string
		want Trace
		bad  []string // LINE error
	}{
		{"philly.json", Trace{Name: "philly", Format: FormatPhilly, Epoch: day("2017-10-07 01:00:00"),
			Jobs: []Job{
				{ID: "application_1_0001", Tenant: "vision", User: "ada", Runs: 30 * second, GPUs: 1, Nodes: 1, Outcome: Cancelled},
				{ID: "application_1_0009", Tenant: "speech", Runs: 3600 * second, GPUs: 1, Nodes: 1},
				{ID: "application_1_0002", Tenant: "vision", User: "ada", Submit: 699 * second, Runs: 193256 * second, GPUs: 8, Nodes: 2, Outcome: Completed},
			},
			Counts: Counts{Rows: 9, Bad: 3, CPUOnly: 1, NoRun: 2}},
			[]string{
				"18 record 4, job application_1_0004: attempt 1: it ends 1 min before it starts",
				"27 record 7, job application_1_0007: no submitted_time",
				"28 record 8, job : jobid: a value that does not fit: number",
			}},
		{"helios.csv", Trace{Name: "helios", Format: FormatHelios, Epoch: day("2020-06-09 18:41:01"),
			Jobs: []Job{
				{ID: "1001", Tenant: "vcX", User: "uA", Runs: 36248 * second, GPUs: 16, Nodes: 2, CPUs: 64, Outcome: Completed},
				{ID: "1002", Tenant: "vcX", User: "uA", Submit: 26 * second, Runs: 249 * second, GPUs: 4, Nodes: 1, CPUs: 16, Outcome: Failed},
				{ID: "1008", Tenant: "vcY", User: "uB", Submit: 659 * second, Runs: 3540 * second, GPUs: 8, Nodes: 1, CPUs: 8, Outcome: Failed},
				{ID: "1012", Tenant: "vcY", User: `u"B`, Submit: 719 * second, Runs: 10 * second, GPUs: 8, Nodes: 1, CPUs: 8},
			},
			Counts: Counts{Rows: 13, Bad: 7, CPUOnly: 1, NoRun: 1}},
			[]string{
				`6 duration "-60": negative`,
				"7 it ends 1 min before it starts",
				`8 gpu_num "x": no whole number`,
				`10 submit_time "2020-06-31 18:52:00": no time such as 2017-10-07 01:12:09`,
				"11 job 1008 is on line 9 already",
				`12 gpu_num "-8": negative`,
				"13 9 columns instead of 12",
			}},
		{"pai", Trace{Name: "pai", Format: FormatPAI, Epoch: time.Unix(900, 0).UTC(),
			Jobs: []Job{
				{ID: "job-a", Tenant: "u1", User: "u1", Runs: 500 * second, GPUs: 8, CPUs: 32, MemoryMB: 256 << 10, Model: "T4", Outcome: Failed},
				{ID: "job-b", Tenant: "u1", User: "u1", Submit: 100 * second, Runs: 990 * second, GPUs: 2, CPUs: 24, MemoryMB: 110480, Model: "V100", Outcome: Completed},
				{ID: "job-h", Tenant: "u3", User: "u3", Submit: 600 * second, Runs: 3100 * second, GPUs: 2, CPUs: 2, MemoryMB: 2048, Outcome: Completed},
			},
			Counts: Counts{Rows: 18, Bad: 5, CPUOnly: 1, NoRun: 2, Joined: 7, Rounded: 1}},
			[]string{
				"7 job job-b is on line 1 already",
				"8 no start_time",
				"6 it ends 1 min 40 s before it starts",
				"7 job job-z of task worker is not in testdata/pai/pai_job_table.csv",
				"6 job job-f: its task on line 6 of testdata/pai/pai_task_table.csv makes no sense",
			}},
		{"sacct.txt", Trace{Name: "sacct", Format: FormatSacct, Epoch: day("2026-03-02 09:00:00"),
			Jobs: []Job{
				{ID: "20_3", Tenant: "vision", User: "bob", Name: "sweep", Runs: 30 * second, GPUs: 2, Nodes: 2, CPUs: 2, MemoryMB: 1536, Outcome: Cancelled},
				{ID: "31", Tenant: "vision", User: "carol", Name: "runs on", Submit: 1200 * second, Runs: 5400 * second, GPUs: 4, Nodes: 1, CPUs: 4, MemoryMB: 4096, Limit: cluster.Day},
				{ID: "33", Tenant: "vision", User: "carol", Name: "a|pipe", Submit: 1260 * second, Runs: 60 * second, GPUs: 4, Limit: 600 * second, Outcome: Completed},
				{ID: "101", Tenant: "nlp", User: "alice", Name: "train", Submit: 3600 * second, Runs: 2370 * second, GPUs: 2, Nodes: 1, CPUs: 8, MemoryMB: 100, Model: "v100", Limit: 2 * cluster.Hour, Outcome: Completed},
				{ID: "101#2", Tenant: "vision", User: "dave", Name: "other", Submit: 23 * cluster.Hour, Runs: 60 * second, GPUs: 1, Limit: 600 * second, Outcome: Failed},
			},
			Counts: Counts{Rows: 12, Bad: 2, CPUOnly: 1, NoRun: 2, Joined: 2, Unfinished: 1}},
			[]string{
				`11 elapsedraw "-60": negative`,
				"13 the same attempt of job 101 as on line 12",
			}},
		{"slurmdb-24.11.json", Trace{Name: "slurmdb-24.11", Format: FormatSlurmdb, Epoch: time.Unix(1795238561, 0).UTC(), Jobs: slurmdb, Counts: slurmdbCounts},
			[]string{"709 record 7, job 13: it ends 20 s before it starts and still ran"}},
		{"slurmdb-26.05.json", Trace{Name: "slurmdb-26.05", Format: FormatSlurmdb, Epoch: time.Unix(1795238561, 0).UTC(), Jobs: slurmdb, Counts: slurmdbCounts},
			[]string{"1 record 7, job 13: it ends 20 s before it starts and still ran"}},
		{"plain.csv", Trace{Name: "plain", Format: FormatPlain,
			Jobs: []Job{
				{ID: "j1", Tenant: "vision", User: "ada", Runs: 70 * second, GPUs: 1},
				{ID: "j0", Tenant: "nlp", Submit: 141 * second, Runs: 18250, GPUs: 2, Outcome: Completed},
				{ID: "j2", Tenant: "vision", User: "ada", Submit: 141 * second, Runs: 155 * second, GPUs: 8, Outcome: Cancelled},
				{ID: "j8", Tenant: "bo", User: "bo", Submit: 160 * second, Runs: 10 * second, GPUs: 2, Outcome: Timeout},
			},
			Counts: Counts{Rows: 14, Bad: 8, CPUOnly: 1, NoRun: 1}},
			[]string{
				`7 submit_time "-150": negative`,
				`8 duration_s "-10": negative`,
				`9 gpus "2.5": no whole number`,
				"12 neither tenant nor user",
				"13 no job id",
				"14 a quote that is not closed or stands in the middle",
				"15 no submit_time",
				"16 8 columns instead of 7",
			}},
	} {
		t.Run(c.path, func(t *testing.T) {
			got, err := Open(filepath.Join("testdata", c.path), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, cmpopts.IgnoreFields(Trace{}, "Bad")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var bad []string
			for _, b := range got.Bad {
				if !strings.HasPrefix(b.File, "testdata/"+c.path) {
					t.Errorf("%q names another file", b.File)
				}
				bad = append(bad, fmt.Sprintf("%d %s", b.Line, b.What))
			}
			if diff := cmp.Diff(c.bad, bad); diff != "" {
				t.Errorf("bad rows -want +got:\n%s", diff)
			}
			balanced(t, got)
		})
	}
}

// balanced checks invariants of every trace.
func balanced(t *testing.T, tr *Trace) {
	t.Helper()
	n := tr.Counts
	if n.Rows != len(tr.Jobs)+n.Bad+n.CPUOnly+n.NoRun+n.Joined {
		t.Errorf("%d jobs and %+v: a row was lost or counted twice", len(tr.Jobs), n)
	}
	if len(tr.Bad) > n.Bad || n.Unfinished > len(tr.Jobs) || n.Rounded > len(tr.Jobs) {
		t.Errorf("%d jobs, %d bad rows named, %+v", len(tr.Jobs), len(tr.Bad), n)
	}
	ids := map[string]bool{}
	for i, j := range tr.Jobs {
		if ids[j.ID] {
			t.Errorf("job %q twice", j.ID)
		}
		ids[j.ID] = true
		if j.ID == "" || j.Tenant == "" || j.GPUs <= 0 || j.Runs <= 0 || j.Submit < 0 || j.Limit < 0 || j.Nodes < 0 || j.CPUs < 0 || j.MemoryMB < 0 || cluster.Times(j.GPUs, j.Runs) <= 0 {
			t.Errorf("senseless job: %+v", j)
		}
		if i > 0 && (tr.Jobs[i-1].Submit > j.Submit || tr.Jobs[i-1].Submit == j.Submit && tr.Jobs[i-1].ID >= j.ID) {
			t.Errorf("job %q stands before %q", tr.Jobs[i-1].ID, j.ID)
		}
		switch j.Outcome {
		case "", Completed, Failed, Cancelled, Timeout:
		default:
			t.Errorf("outcome %q", j.Outcome)
		}
	}
	for _, b := range tr.Bad {
		if b.Line < 1 || b.What == "" {
			t.Errorf("bad row without a place or a reason: %+v", b)
		}
	}
}

func TestGzipReadsTheSame(t *testing.T) {
	for _, path := range []string{"philly.json", "helios.csv", "sacct.txt", "slurmdb-26.05.json", "plain.csv"} {
		data, err := os.ReadFile(filepath.Join("testdata", path))
		if err != nil {
			t.Fatal(err)
		}
		want, err := read(bytes.NewReader(data), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(bytes.NewReader(zip(data)), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		windows := append([]byte("\xef\xbb\xbf"), bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))...)
		if got, err = read(bytes.NewReader(windows), path, Options{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s with a BOM and CRLF: %s", path, diff)
		}
	}
}

func zip(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// PAI from either table, gzipped, or with a header.
func TestPAITables(t *testing.T) {
	want, err := Open("testdata/pai", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ignore := cmpopts.IgnoreFields(Trace{}, "Bad")
	for _, path := range []string{"pai_job_table.csv", "pai_task_table.csv"} {
		got, err := Open(filepath.Join("testdata/pai", path), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	dir := t.TempDir()
	for name, header := range map[string][]string{paiJobTable: paiJobColumns, paiTaskTable: paiTaskColumns} {
		data, err := os.ReadFile(filepath.Join("testdata/pai", name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		data = append([]byte(strings.Join(header, ",")+"\n"), data...)
		if err := os.WriteFile(filepath.Join(dir, name+".csv.gz"), zip(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
}

// An unreadable file is an error that says what is wrong, where, and what to do next.
func TestUnreadable(t *testing.T) {
	const plain = "job_id,tenant,user,gpus,submit_time,duration_s,state\n"
	const sacct = "JobID|User|Submit|ElapsedRaw|AllocTRES\n"
	var long bytes.Buffer // longer than one gzip block, so that its end can be cut off
	long.WriteString(plain)
	for i := range 40000 {
		fmt.Fprintf(&long, "j%d,t,u,1,%d,%d,FAILED\n", i*7919%40000, i, i*i%9973+1)
	}
	cut := zip(long.Bytes())
	cut = cut[:len(cut)/2]
	spoilt := slices.Clone(zip(long.Bytes()))
	spoilt[len(spoilt)-6] ^= 1

	for name, c := range map[string]struct{ in, want string }{
		"empty":         {"", "x: the file is empty: look whether the command that wrote it had an error"},
		"blank":         {" \n\n", "x: the file is empty"},
		"other":         {"tenant,gpus\na,4\n", `x: line 1 "tenant,gpus" is the start of no trace that can be read: known are Philly's`},
		"zip":           {"PK\x03\x04aaaaaaaa", "x: packed with zip: unpack it"},
		"zstd":          {"\x28\xb5\x2f\xfdaaaa", "x: packed with zstd: unpack it"},
		"tar":           {strings.Repeat("a", 257) + "ustar" + strings.Repeat("a", 250), "x: a tar archive: unpack it and name the file to read"},
		"no gzip":       {"\x1f\x8babc", "x: not a whole gzip file"},
		"cut gzip":      {string(cut), ": the file ends too early: fetch it again"},
		"spoilt gzip":   {string(spoilt), "x: line 40002: cannot go on reading: gzip: invalid checksum"},
		"no column":     {"job_id,gpus,submit_time\nj,1,1\n", "x: line 1: the header lacks the column tenant, duration_s"},
		"column twice":  {"job_id,gpus,tenant,gpus\n", `x: line 1: the header names the column "gpus" twice`},
		"helios column": {"job_id,gpu_num\n", "x: line 1: the header lacks the column user, vc, submit_time, start_time, end_time"},
		"sacct -n":      {"1|ann|2026-03-02T10:00:00|60|gres/gpu=4\n", `x: line 1 "1|ann|2026-03-02T10:00:00|60|gres/gpu=4" is not the header of sacct -P (without -n): run TZ=UTC sacct -a -D`},
		"sacct wide":    {"JobID           JobName  Partition\n------------ ----------\n", "is not the header of sacct -P (without -n): run "},
		"sacct commas":  {"User,JobIDRaw,Submit\n", "is not the header of sacct -P (without -n): run "},
		"sacct no GPUs": {"JobID|User|Submit|Elapsed\n", "x: line 1: the header lacks a column with the GPUs (AllocTRES or ReqTRES): run TZ=UTC sacct -a -D"},
		"sacct no time": {"JobID|User|Submit|Start|AllocTRES\n", "x: line 1: the header lacks a column with the run time"},
		"sacct no user": {"JobID|Submit|Elapsed|AllocTRES\n", "x: line 1: the header lacks a column Account or User"},
		"sacct submit":  {"JobID|Elapsed|AllocTRES\n", "x: line 1: the header lacks a column Submit"},
		"pai alone":     {"job-b,inst1,u1,Terminated,1000.0,2010.0\n", "x is one of PAI's tables, which come in two: name the folder with both"},
		"cut list":      {"[\n{\"jobid\":\"a\",\n\"attempts\":[", "x: line 3: the file ends too early: fetch it again"},
		"open list":     {"[\n{\"jobid\":\"a\"}\n", "x: line 3: the file ends too early: fetch it again"},
		"broken list":   {"[\n{\"jobid\":\"a\"},\n{\"jobid\":;}]", "x: line 3: this is no JSON: "},
		"more":          {"[]\n[]", "x: line 2: cannot go on reading: there is more behind the end"},
		"no jobs":       {`{"nodes":[],"errors":[]}`, "x: there is no list of jobs in it: take GET /slurmdb"},
		"current jobs":  {"{\n\"jobs\":[\n{\"job_id\":1,\"job_state\":[\"RUNNING\"]}]}", "x: line 3: these are slurmctld's current jobs, not the history: take GET /slurmdb"},
		"slurm errors":  {`{"jobs":[],"errors":[{"error_number":7000}]}`, `x: slurmrestd reports an error, so the list may not be whole: {"error_number":7000}: ask it again`},
		"cut answer":    {`{"jobs":[`, "x: line 1: the file ends too early: fetch it again"},
		"cut key":       {`{"jobs":[],"er`, "x: line 1: the file ends too early: fetch it again"},
	} {
		_, err := read(strings.NewReader(c.in), "x", Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	if tr, err := read(strings.NewReader(sacct), "x", Options{}); err != nil || len(tr.Jobs) != 0 {
		t.Errorf("an empty history: %v %v", tr, err)
	}
	if _, err := read(strings.NewReader(plain), "x", Options{Format: "swf"}); err == nil || !strings.Contains(err.Error(), `x: there is no format "swf": known are`) {
		t.Error(err)
	}

	dir := t.TempDir()
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is a folder without the tables of PAI: there is no pai_job_table.csv") {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "none.csv"), Options{}); err == nil || !strings.HasSuffix(err.Error(), "none.csv: cannot be read: no such file or directory: check the name and who may read it") {
		t.Error(err)
	}
	job := filepath.Join(dir, "pai_job_table.csv")
	if err := os.WriteFile(job, []byte("job-b,inst1,u1,Terminated,1000.0,2010.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(job, Options{}); err == nil || !strings.Contains(err.Error(), "needs pai_task_table beside it: there is no pai_task_table.csv") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pai_task_table.csv"), []byte("job-b,inst1,u1,Terminated,1000.0,2010.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(job, Options{}); err == nil || !strings.Contains(err.Error(), "are the same table of PAI") {
		t.Error(err)
	}
}

// A night on which clocks go back: 02:30 CEST to 02:10 CET is 40 minutes, which only the zone or
// Slurm's own count shows.
func TestZones(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const head, row = "JobID|User|Submit|Start|End|AllocTRES", "5|u|2026-10-24T23:00:00|2026-10-25T00:30:00|2026-10-25T04:00:00|gres/gpu=1"
	for _, c := range []struct {
		zone  *time.Location
		in    string
		runs  cluster.Span
		epoch string
	}{
		{nil, head + "\n" + row, 210 * cluster.Minute, "2026-10-24T23:00:00Z"},
		{berlin, head + "\n" + row, 270 * cluster.Minute, "2026-10-24T23:00:00+02:00"},
		{berlin, head + "|Elapsed\n" + row + "|04:30:00", 270 * cluster.Minute, "2026-10-24T23:00:00+02:00"},
		{nil, head + "|ElapsedRaw\n5|u|2026-10-24T23:00:00|2026-10-25T02:30:00|2026-10-25T02:10:00|gres/gpu=1|2400", 40 * cluster.Minute, "2026-10-24T23:00:00Z"},
		{berlin, head + "\n5|u|2026-10-24T23:00:00+0000|2026-10-24T23:30:00Z|2026-10-25T01:00:00+01:00|gres/gpu=1", 30 * cluster.Minute, "2026-10-25T01:00:00+02:00"},
		{nil, head + "\n5|u|1793000000|1793000060|1793000120|gres/gpu=1", cluster.Minute, "2026-10-26T07:33:20Z"},
	} {
		tr, err := read(strings.NewReader(c.in), "x", Options{Zone: c.zone})
		if err != nil || len(tr.Jobs) != 1 {
			t.Errorf("%s: %+v %v", c.in, tr, err)
			continue
		}
		if got := tr.Epoch.Format(time.RFC3339); tr.Jobs[0].Runs != c.runs || got != c.epoch {
			t.Errorf("%s in %v: runs %v from %s; want %v from %s", c.in, c.zone, tr.Jobs[0].Runs, got, c.runs, c.epoch)
		}
	}
	tr, err := read(strings.NewReader(head+"\n5|u|2026-10-24T23:00:00|2026-10-25T02:30:00|2026-10-25T02:10:00|gres/gpu=1\n"), "x", Options{})
	if err != nil || tr.Counts.Bad != 1 || tr.Bad[0].What != "it ends 20 min before it starts" {
		t.Errorf("an end before the start: %+v %v", tr, err)
	}
	epoch := day("2020-06-03 00:00:00")
	tr, err = read(strings.NewReader("job_id,tenant,gpus,submit_time,duration_s\nj,t,1,60,5\n"), "x", Options{Epoch: epoch})
	if err != nil || !tr.Epoch.Equal(epoch) || tr.Jobs[0].Submit != cluster.Minute {
		t.Errorf("the caller's epoch: %+v %v", tr, err)
	}
}

func TestBadRowsAreAllCounted(t *testing.T) {
	in := "job_id,tenant,gpus,submit_time,duration_s\n" + strings.Repeat("j,t,none,0,5\n", 50) +
		strings.Repeat("x", longestLine+5) + "\nj,t,1,0,5\n"
	for named, want := range map[int]int{0: 20, 3: 3, -1: 0, 100: 51} {
		tr, err := read(strings.NewReader(in), "x", Options{Named: named})
		if err != nil || tr.Counts.Bad != 51 || len(tr.Bad) != want || len(tr.Jobs) != 1 {
			t.Errorf("Named %d: %d bad, %d named, %d jobs, %v", named, tr.Counts.Bad, len(tr.Bad), len(tr.Jobs), err)
		}
		if want == 51 && (tr.Bad[50].Line != 52 || tr.Bad[50].What != "longer than 1048576 bytes") {
			t.Errorf("%+v", tr.Bad[50])
		}
	}
}

// The attempts that are one job.
func TestAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		rows string // state|restarts|user|submit minute|seconds, all of job 5
		want string // ID submit-minute runs outcome
	}{
		"requeued":            {"REQUEUED||u|0|10,NODE_FAIL||u|1|20,PREEMPTED||u|2|30,FAILED||u|3|40", "5 0 100 FAILED"},
		"in any order":        {"FAILED|2|u|3|40,REQUEUED|0|u|0|10,REQUEUED|1|u|1|20", "5 0 70 FAILED"},
		"ended, no count":     {"FAILED||u|0|10,COMPLETED||u|9|20", "5 0 10 FAILED; 5#2 9 20 COMPLETED"},
		"ended, counted":      {"FAILED|0|u|0|10,COMPLETED|1|u|9|20", "5 0 30 COMPLETED"},
		"counted from 0":      {"REQUEUED|0|u|0|10,COMPLETED|0|u|9|20", "5 0 10 ; 5#2 9 20 COMPLETED"},
		"another user":        {"REQUEUED|0|u|0|10,COMPLETED|1|v|9|20", "5 0 10 ; 5#2 9 20 COMPLETED"},
		"three rounds":        {"FAILED|0|u|0|1,FAILED|0|u|1|2,FAILED|0|u|2|3", "5 0 1 FAILED; 5#2 1 2 FAILED; 5#3 2 3 FAILED"},
		"begins in the midst": {"TIMEOUT|3|u|0|10", "5 0 10 TIMEOUT"},
		"waits again":         {"REQUEUED|0|u|0|10,PENDING|1|u|1|0", "5 0 10 "},
		"cancelled waiting":   {"REQUEUED|0|u|0|10,CANCELLED|1|u|1|0", "5 0 10 CANCELLED"},
	} {
		var in strings.Builder
		in.WriteString("JobID|AllocTRES|State|Restarts|User|Submit|ElapsedRaw\n")
		for row := range strings.SplitSeq(c.rows, ",") {
			f := strings.Split(row, "|")
			tres := "gres/gpu=2"
			if f[4] == "0" {
				tres = ""
			}
			fmt.Fprintf(&in, "5|%s|%s|%s|%s|2026-01-01T00:0%s:00|%s\n", tres, f[0], f[1], f[2], f[3], f[4])
		}
		tr, err := read(strings.NewReader(in.String()), "x", Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range tr.Jobs {
			got = append(got, fmt.Sprintf("%s %d %d %s", j.ID, j.Submit/cluster.Minute, j.Runs/second, j.Outcome))
			if j.GPUs != 2 {
				t.Errorf("%s: %d GPUs", name, j.GPUs)
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %q; want %q", name, s, c.want)
		}
		balanced(t, tr)
	}
}

// FAIRLEASE_TRACES names a folder with the plain CSV files of the measured results; they are not
// shipped.
func TestPublishedTraces(t *testing.T) {
	dir := os.Getenv("FAIRLEASE_TRACES")
	if dir == "" {
		t.Skip("FAIRLEASE_TRACES does not name a folder with traces")
	}
	for _, c := range []struct {
		file    string
		jobs    int
		tenants int
	}{
		{"venus_2w.csv.gz", 7791, 0},
		{"venus_gpu_20d.csv.gz", 10796, 18},
		{"philly_2w_most_demand.csv.gz", 22009, 11},
	} {
		tr, err := Open(filepath.Join(dir, c.file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, tr)
		tenants := map[string]bool{}
		for _, j := range tr.Jobs {
			tenants[j.Tenant] = true
		}
		if len(tr.Jobs) != c.jobs || tr.Counts.Bad != 0 || c.tenants > 0 && len(tenants) != c.tenants {
			t.Errorf("%s: %d jobs of %d tenants, %+v", c.file, len(tr.Jobs), len(tenants), tr.Counts)
		}
		var out bytes.Buffer
		if err := Write(&out, slices.Values(tr.Jobs)); err != nil {
			t.Fatal(err)
		}
		again, err := read(&out, c.file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tr.Jobs, again.Jobs); diff != "" {
			t.Errorf("%s is not the same after it was written and read: %s", c.file, diff)
		}
	}
}

// Users name jobs as they like: with sacct's delimiter, and with ends of lines. No row is lost for it, wherever the column is.
func TestNamesWithDelimiters(t *testing.T) {
	header := []string{"JobID", "User", "Submit", "ElapsedRaw", "AllocTRES"}
	for at := 1; at <= len(header); at++ {
		for _, end := range []string{"\n", "|\n"} { // sacct -P and -p
			columns := slices.Insert(slices.Clone(header), at, "JobName")
			names := []string{"plain", "a|b", "|", "x||y|", "two\nlines", "a|b\nc|d", "=1+1", ""}
			text := strings.Join(columns, "|") + end
			for i, name := range names {
				row := []string{fmt.Sprint(i + 1), "ada", "2026-03-02T09:00:00", "60", "gres/gpu=1"}
				text += strings.Join(slices.Insert(row, at, name), "|") + end
			}
			tr, err := read(strings.NewReader(text), "sacct.txt", Options{})
			if err != nil || len(tr.Jobs) != len(names) || tr.Counts.Bad != 0 {
				t.Errorf("column %d, end %q: %d of %d jobs, %+v, %v", at, end, len(tr.Jobs), len(names), tr.Bad, err)
				continue
			}
			for i, j := range tr.Jobs {
				if want := strings.TrimSpace(strings.ReplaceAll(names[i], "\n", " ")); j.Name != want || j.User != "ada" || j.GPUs != 1 {
					t.Errorf("column %d, end %q: job %+v, want the name %q", at, end, j, want)
				}
			}
		}
	}
}

// A row that is cut stays a bad row, and takes no other one with it.
func TestCutRowsStayAlone(t *testing.T) {
	const header, row = "JobID|User|Submit|ElapsedRaw|AllocTRES|JobName\n", "7|ada|2026-03-02T09:00:00|60|gres/gpu=1|train\n"
	for _, cut := range []string{"8|ada|2026-0\n", "8\n", "8|ada|2026-03-02T09:00:00|60|gres/g\n", header} { // or two histories in one file
		tr, err := read(strings.NewReader(header+row+cut+strings.Replace(row, "7", "9", 1)+cut), "sacct.txt", Options{})
		if err != nil || len(tr.Jobs) != 2 || tr.Counts.Bad != 2 || tr.Jobs[0].Name != "train" {
			t.Errorf("%q: %+v, %+v, %v", cut, tr.Jobs, tr.Bad, err)
		}
	}
}

// Documents have the command of the help.
func TestDocsNameTheCommand(t *testing.T) {
	for _, path := range []string{"README.md", "docs/simulate.md"} {
		text, err := os.ReadFile("../../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), SacctCommand+" > history.txt\n") {
			t.Errorf("%s lacks %s", path, SacctCommand)
		}
	}
}
