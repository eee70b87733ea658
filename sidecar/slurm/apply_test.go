package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const ok = `{"errors":[],"warnings":[]}`

// acting is a recorded server after a first look, ready for actions.
func acting(t *testing.T, v int, records ...string) (*recorded, *Client) {
	t.Helper()
	f := newRecorded(t, v)
	prefix := "GET /slurm/" + version(v).String()
	f.on(prefix+"/jobs/", jobs(900, records...))
	c := f.client()
	f.see(c)
	return f, c
}

func (f *recorded) body(what string) map[string]any {
	f.Helper()
	for _, a := range f.all() {
		if a.what == what {
			var m map[string]any
			if err := json.Unmarshal([]byte(a.body), &m); err != nil {
				f.Fatal(err)
			}
			return m
		}
	}
	f.Fatalf("nobody asked for %s; asked: %v", what, f.all())
	return nil
}

func TestGrantIsOneCall(t *testing.T) {
	t.Parallel()
	f, c := acting(t, 44, waitingJob(7, ""))
	f.on("POST /slurm/v0.0.44/job/7", text(ok))
	out := c.Apply(t.Context(), []cluster.Action{{
		Verb: cluster.Grant, ID: cluster.JobID{ID: 7}, Record: 7, Nodes: []string{"v1"},
		Limit: 61 * cluster.Second, SiteFactor: -5, Reservation: "fairlease_7", Scatter: true,
	}})
	if !out[0].OK {
		t.Fatalf("outcome: %+v", out[0])
	}
	want := map[string]any{
		"begin_time":     map[string]any{"set": true, "infinite": false, "number": float64(1_000_040)},
		"required_nodes": []any{"v1"},
		"time_limit":     map[string]any{"set": true, "infinite": false, "number": float64(2)},
		"site_factor":    float64(2147483643),
		"reservation":    "fairlease_7",
		"contiguous":     false,
	}
	if got := f.body("POST /slurm/v0.0.44/job/7"); !reflect.DeepEqual(got, want) {
		t.Errorf("body %v; want %v", got, want)
	}
}

// The client carries out every verb that there is: with this Slurm, some fail, but none is unknown.
func TestEveryVerbIsCarriedOut(t *testing.T) {
	t.Parallel()
	_, c := acting(t, 44, waitingJob(7, ""))
	for _, v := range append(slices.Clone(cluster.Verbs), cluster.Named{Name: "unheard"}) {
		out := c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Verb(v.Name), ID: cluster.JobID{ID: 7}, Record: 7, Reservation: "r"}})
		if refused := strings.Contains(out[0].Error, "no such action"); refused != (v.Name == "unheard") {
			t.Errorf("%s: %+v: add a case to batch.do", v.Name, out[0])
		}
	}
}

// A time limit below --time-min lowers that, too: Slurm refuses it otherwise.
func TestAGrantShortensTimeMin(t *testing.T) {
	t.Parallel()
	for least, want := range map[int]any{2: nil, 3: map[string]any{"set": true, "infinite": false, "number": float64(2)}} {
		f, c := acting(t, 44, waitingJob(7, fmt.Sprintf(`"time_minimum":{"set":true,"number":%d}`, least)))
		f.on("POST /slurm/v0.0.44/job/7", text(ok))
		if out := c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Grant, ID: cluster.JobID{ID: 7}, Record: 7, Nodes: []string{"v1"}, Limit: 2 * cluster.Minute}}); !out[0].OK {
			t.Fatalf("outcome: %+v", out[0])
		}
		if got := f.body("POST /slurm/v0.0.44/job/7")["time_minimum"]; !reflect.DeepEqual(got, want) {
			t.Errorf("--time-min=%d: %v, want %v", least, got, want)
		}
	}
}

// A requeued job starts again in a later second: slurmd kills one that starts in the same second.
func TestRequeuedJobsStartInALaterSecond(t *testing.T) {
	t.Parallel()
	for _, verb := range []cluster.Verb{cluster.Grant, cluster.Open} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			// Slurm may report the time up to a second late: so much if the second has just begun.
			began, second := time.Now(), time.Now().Truncate(time.Second)
			now := func() time.Time { return second.Add(time.Since(began)) }
			requeued := second.Add(time.Second)
			f := newRecorded(t, 44)
			f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(7, fmt.Sprintf(`"restart_cnt":1,"submit_time":%d`, requeued.Unix()))))
			c := f.client(func(cfg *Config) { cfg.Now = now })
			f.see(c)
			var sent time.Time
			f.on("POST /slurm/v0.0.44/job/7", func(w http.ResponseWriter, r *http.Request) {
				sent = now()
				text(ok)(w, r)
			})
			if out := c.Apply(t.Context(), []cluster.Action{{Verb: verb, ID: cluster.JobID{ID: 7}, Record: 7}}); !out[0].OK {
				t.Fatalf("outcome: %+v", out[0])
			}
			if over := requeued.Add(time.Second); sent.Before(over) {
				t.Errorf("sent %s before the second of the requeue was over", over.Sub(sent))
			}
		})
	}
}

// A job gets its user's settings back; a reservation of the user's own stays.
func TestTakeBackRestores(t *testing.T) {
	t.Parallel()
	f, c := acting(t, 44, waitingJob(7, `"resv_name":"fairlease_7"`), waitingJob(8, `"resv_name":"course"`))
	c.cfg.SiteFactor = 1000
	f.on("POST /slurm/v0.0.44/job/7", text(ok))
	f.on("POST /slurm/v0.0.44/job/8", text(ok))
	for _, a := range c.Apply(t.Context(), []cluster.Action{
		{Verb: cluster.RevokeGrant, ID: cluster.JobID{ID: 7}, Record: 7, Until: 2_000_000_001},
		{Verb: cluster.Open, ID: cluster.JobID{ID: 8}, Record: 8, NodeList: []string{"v1"}},
	}) {
		if !a.OK {
			t.Fatalf("outcome: %+v", a)
		}
	}
	want := map[string]any{
		"begin_time":     map[string]any{"set": true, "infinite": false, "number": float64(2_000_001)},
		"required_nodes": []any{""},
		"site_factor":    float64(2147483648),
		"reservation":    "",
	}
	if got := f.body("POST /slurm/v0.0.44/job/7"); !reflect.DeepEqual(got, want) {
		t.Errorf("body %v; want %v", got, want)
	}
	got := f.body("POST /slurm/v0.0.44/job/8")
	if _, there := got["reservation"]; there || !reflect.DeepEqual(got["required_nodes"], []any{"v1"}) {
		t.Errorf("body of Open: %v", got)
	}
}

// A gate past its deadline would kill the job.
func TestGateStopsBeforeDeadline(t *testing.T) {
	t.Parallel()
	f, c := acting(t, 44, waitingJob(7, `"deadline":1005000,"time_limit":{"set":true,"infinite":false,"number":10}`))
	f.on("POST /slurm/v0.0.44/job/7", text(ok))
	c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Gate, ID: cluster.JobID{ID: 7}, Record: 7, Until: 2_000_000_000}})
	got := f.body("POST /slurm/v0.0.44/job/7")["begin_time"].(map[string]any)["number"]
	if got != float64(1_005_000-600) {
		t.Errorf("gate at %v", got)
	}
}

// A write whose result is unknown is reported as such and sent once, whatever fails.
func TestWritesAreNeverRepeated(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{
		"connection breaks": func(w http.ResponseWriter, r *http.Request) {
			hijacked, _, _ := w.(http.Hijacker).Hijack()
			hijacked.Close()
		},
		"answer is cut":   text(`{"errors":[`),
		"500 without why": status(500, text(`oops`)),
		"lost on the way": status(500, text(`{"errors":[{"error_number":1000,"error":"Unexpected message received"}]}`)),
		"controller hung": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			f, c := acting(t, 44, waitingJob(7, ""))
			c.rest.cfg.Timeout = 300e6
			f.on("POST /slurm/v0.0.44/job/7", a)
			out := c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Gate, ID: cluster.JobID{ID: 7}, Record: 7, Until: 2_000_000_000}})
			if out[0].OK || out[0].Skipped || !strings.Contains(out[0].Error, "outcome unknown") {
				t.Errorf("outcome: %+v", out[0])
			}
			if n := f.count("POST /slurm/v0.0.44/job/7"); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		skipped bool
		words   string
	}{
		"2073": {true, "no longer waiting"},
		"2017": {true, "no longer knows"},
		"2084": {true, "has finished"},
		"2010": {false, "2010"},
	} {
		f, c := acting(t, 44, waitingJob(7, ""))
		f.on("POST /slurm/v0.0.44/job/7", status(500, text(`{"errors":[{"error_number":`+code+`,"error":"Slurm's words"}]}`)))
		out := c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Gate, ID: cluster.JobID{ID: 7}, Record: 7, Until: 2_000_000_000}})
		if out[0].OK || out[0].Skipped != want.skipped || !strings.Contains(out[0].Error, want.words) || strings.Contains(out[0].Error, "outcome unknown") {
			t.Errorf("%s: %+v", code, out[0])
		}
	}
}

// Actions that depend on a reservation that could not be made, or on a failed grant, are skipped:
// no job is requeued in vain.
func TestDependentActionsAreSkipped(t *testing.T) {
	t.Parallel()
	handOver := []cluster.Action{
		{Verb: cluster.Reserve, Reservation: "fairlease_7", Nodes: []string{"v1"}, Accounts: []string{"nlp"}, Until: 2_000_000_000},
		{Verb: cluster.Grant, ID: cluster.JobID{ID: 7}, Record: 7, Nodes: []string{"v1"}, Reservation: "fairlease_7"},
		{Verb: cluster.Reclaim, ID: cluster.JobID{ID: 9}, Record: 9, Reservation: "fairlease_7"},
		{Verb: cluster.Gate, ID: cluster.JobID{ID: 8}, Record: 8, Until: 2_000_000_000},
		{Verb: cluster.Notify, ID: cluster.JobID{ID: 8}, Suppressed: true},
	}
	refuse := status(422, text(`{"errors":[{"error_number":2004,"error":"Requested nodes are busy"}]}`))
	for name, c := range map[string]struct{ reservation, grant answer }{
		"reservation fails": {refuse, text(ok)},
		"grant fails":       {text(ok), refuse},
	} {
		t.Run(name, func(t *testing.T) {
			f, client := acting(t, 44, waitingJob(7, ""), waitingJob(8, ""), runningJob(9, ""))
			f.on("POST /slurm/v0.0.44/reservation", c.reservation)
			f.on("POST /slurm/v0.0.44/job/7", c.grant)
			f.on("POST /slurm/v0.0.44/job/8", text(ok))
			out := client.Apply(t.Context(), handOver)
			if !out[2].Skipped || !strings.Contains(out[2].Error, "nodes are busy") {
				t.Errorf("reclaim: %+v", out[2])
			}
			if name == "reservation fails" && !out[1].Skipped {
				t.Errorf("grant: %+v", out[1])
			}
			if !out[3].OK || !out[4].Skipped || out[4].Error != "suppressed" {
				t.Errorf("gate: %+v, suppressed notice: %+v", out[3], out[4])
			}
			if n := f.count("GET /slurm/v0.0.44/job/9"); n != 0 {
				t.Error("the holder was touched")
			}
		})
	}
}

// Slurm answers 200 to a requeue that did nothing: only restart_cnt tells.
func TestReclaimIsJudgedByRestarts(t *testing.T) {
	t.Parallel()
	reclaim := cluster.Action{Verb: cluster.Reclaim, ID: cluster.JobID{ID: 9}, Record: 9, Restarts: 0, Until: 2_000_000_000, NodeList: []string{"v1"}}
	record := func(state, restarts string) string {
		return `{"job_id":9,"job_state":` + state + `,"restart_cnt":` + restarts + `}`
	}
	for name, c := range map[string]struct {
		before, after string
		ok, skipped   bool
		words         string
		gated         bool
	}{
		"requeued":         {record(`["RUNNING"]`, "0"), record(`["PENDING","COMPLETING"]`, "1"), true, false, "", true},
		"nothing happened": {record(`["RUNNING"]`, "0"), record(`["RUNNING"]`, "0"), false, false, "restarted 0 times as before", false},
		"ended meanwhile":  {record(`["RUNNING"]`, "0"), record(`["COMPLETED"]`, "0"), false, true, "finished", false},
		"ended before":     {record(`["FAILED","COMPLETING"]`, "0"), "", false, true, "finished", false},
		"done already":     {record(`["PENDING"]`, "1"), "", true, false, "", true},
		"runs again":       {record(`["RUNNING"]`, "1"), "", false, true, "runs again", false},
		"never ran":        {record(`["PENDING"]`, "0"), "", false, true, "not running", false},
		"unknown to Slurm": {`{"job_id":8,"job_state":["RUNNING"]}`, "", false, true, "no longer knows", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, client := acting(t, 45, runningJob(9, ""))
			f.on("GET /slurm/v0.0.45/job/9", jobs(0, c.before))
			f.on("POST /slurm/v0.0.45/jobs/requeue", func(w http.ResponseWriter, r *http.Request) {
				f.on("GET /slurm/v0.0.45/job/9", jobs(0, c.after))
				text(ok)(w, r)
			})
			f.on("POST /slurm/v0.0.45/job/9", text(ok))
			out := client.Apply(t.Context(), []cluster.Action{reclaim})[0]
			if out.OK != c.ok || out.Skipped != c.skipped || !strings.Contains(out.Error, c.words) {
				t.Errorf("outcome: %+v", out)
			}
			if gated := f.count("POST /slurm/v0.0.45/job/9") == 1; gated != c.gated {
				t.Errorf("gated: %v", gated)
			}
			if end := out.At.Add(out.Took); c.after != "" && (out.Stopped < out.At || out.Stopped > end) || c.after == "" && out.Stopped != 0 {
				t.Errorf("the attempt was stopped at %v by an action from %v to %v", out.Stopped, out.At, end)
			}
			if c.after != "" {
				if body := f.body("POST /slurm/v0.0.45/jobs/requeue"); !reflect.DeepEqual(body, map[string]any{"jobs": []any{"9"}, "flags": []any{"Incomplete"}}) {
					t.Errorf("requeue: %v", body)
				}
			} else if f.count("POST /slurm/v0.0.45/jobs/requeue") != 0 {
				t.Error("it was requeued all the same")
			}
		})
	}
}

// A job that its owner has made not requeueable is made requeueable first; if that is refused, nothing else is asked for.
func TestReclaimMakesRequeueable(t *testing.T) {
	t.Parallel()
	reclaim := cluster.Action{Verb: cluster.Reclaim, ID: cluster.JobID{ID: 9}, Record: 9, Until: 2_000_000_000}
	for name, c := range map[string]struct {
		before string
		answer answer
		ok     bool
		writes []string
	}{
		"requeueable": {`"requeue":true,"batch_flag":true`, text(ok), true, []string{"requeue", "gate"}},
		"not":         {`"requeue":false,"batch_flag":true`, text(ok), true, []string{"requeueable", "requeue", "gate"}},
		"refused":     {`"requeue":false,"batch_flag":true`, status(422, text(`{"errors":[{"error_number":2002,"error":"Access denied"}]}`)), false, []string{"requeueable"}},
		"interactive": {`"requeue":false,"batch_flag":false`, text(ok), true, []string{"requeue", "gate"}}, // Slurm refuses it in its own words
	} {
		f, client := acting(t, 45, runningJob(9, ""))
		f.on("GET /slurm/v0.0.45/job/9", jobs(0, `{"job_id":9,"job_state":["RUNNING"],"restart_cnt":0,`+c.before+`}`))
		f.on("POST /slurm/v0.0.45/jobs/requeue", func(w http.ResponseWriter, r *http.Request) {
			f.on("GET /slurm/v0.0.45/job/9", jobs(0, `{"job_id":9,"job_state":["PENDING"],"restart_cnt":1}`))
			text(ok)(w, r)
		})
		f.on("POST /slurm/v0.0.45/job/9", c.answer)
		if out := client.Apply(t.Context(), []cluster.Action{reclaim})[0]; out.OK != c.ok || out.Skipped {
			t.Errorf("%s: outcome %+v", name, out)
		}
		var writes []string
		for _, a := range f.all() {
			switch {
			case a.what == "POST /slurm/v0.0.45/jobs/requeue":
				writes = append(writes, "requeue")
			case a.what == "POST /slurm/v0.0.45/job/9" && a.body == `{"requeue":true}`:
				writes = append(writes, "requeueable")
			case strings.HasPrefix(a.what, "POST"):
				writes = append(writes, "gate")
			}
		}
		if !slices.Equal(writes, c.writes) {
			t.Errorf("%s: it wrote %q; want %q", name, writes, c.writes)
		}
	}
}

func TestNoticeReadsStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status      string
		ok, skipped bool
	}{
		"heard":    {`[{"error":{"string":"SUCCESS","code":0}}]`, true, false},
		"none":     {`[]`, true, false},
		"finished": {`[{"error":{"string":"ESLURM_ALREADY_DONE","code":2021,"message":"done"}}]`, false, true},
		"pending":  {`[{"error":{"string":"ESLURM_JOB_PENDING","code":2020}}]`, false, true},
		"refused":  {`[{"error":{"string":"ESLURM_ACCESS_DENIED","code":2002}}]`, false, false},
		"array":    {`[{"error":{"code":0}},{"error":{"code":2020}}]`, true, false},
	} {
		f, client := acting(t, 44, runningJob(9, ""))
		f.on("DELETE /slurm/v0.0.44/job/9", text(`{"status":`+c.status+`,"errors":[]}`))
		out := client.Apply(t.Context(), []cluster.Action{{Verb: cluster.Notify, ID: cluster.JobID{ID: 9}, Record: 9, Signal: "USR1", SignalTo: "steps"}})[0]
		if out.OK != c.ok || out.Skipped != c.skipped {
			t.Errorf("%s: %+v", name, out)
		}
		for _, a := range f.all() {
			if strings.HasPrefix(a.what, "DELETE") && a.query != "flags=FULL_STEPS_ONLY&signal=USR1" {
				t.Errorf("query %q", a.query)
			}
		}
	}
	_, client := acting(t, 44, runningJob(9, ""))
	if out := client.Apply(t.Context(), []cluster.Action{{Verb: cluster.Notify, ID: cluster.JobID{ID: 9}, Record: 9, Signal: "USR1", SignalTo: "everyone"}})[0]; out.OK {
		t.Error("an unknown addressee was taken")
	}
	f, client := acting(t, 44, runningJob(9, ""))
	out := client.Apply(t.Context(), []cluster.Action{{Verb: cluster.Notify, ID: cluster.JobID{ID: 9}, Record: 9}})[0]
	for _, a := range f.all() {
		if !out.OK || strings.HasPrefix(a.what, "DELETE") {
			t.Errorf("a notice without a signal: %+v, %s", out, a.what)
		}
	}
}

func TestScontrolMissing(t *testing.T) {
	t.Parallel()
	_, c := acting(t, 42, runningJob(7, ""))
	c.cfg.Scontrol = []string{"/nowhere/scontrol"}
	out := c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Unreserve, Reservation: "fairlease_7"}})
	if out[0].OK || !strings.Contains(out[0].Error, "cannot run /nowhere/scontrol") || !strings.Contains(out[0].Error, "see slurm.scontrol in fairlease.yaml") {
		t.Errorf("outcome: %+v", out[0])
	}
}

// Operations that the version lacks use scontrol, whose messages are evaluated.
func TestScontrol(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "scontrol")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" >> "+dir+"/said\ncase \"$*\" in *fairlease_9*) echo 'Error deleting reservation: Requested reservation is in use' >&2; exit 1;; esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, c := acting(t, 42, runningJob(7, ""))
	c.cfg.Scontrol = []string{script}
	f.on("POST /slurm/v0.0.42/job/7", text(ok))
	out := c.Apply(t.Context(), []cluster.Action{
		{Verb: cluster.Reserve, Reservation: "fairlease_7", Nodes: []string{"v1", "v2"}, Accounts: []string{"nlp", "vision"}, Until: 2_000_000_500},
		{Verb: cluster.Release, ID: cluster.JobID{ID: 7}, Record: 7, Reservation: "fairlease_7"},
		{Verb: cluster.Release, ID: cluster.JobID{ID: 7}, Record: 7, Reservation: "fairlease_9"},
		{Verb: cluster.Unreserve, Reservation: "fairlease_9"},
	})
	for i, want := range []bool{true, true, true, false} {
		if out[i].OK != want {
			t.Errorf("action %d: %+v", i, out[i])
		}
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "create reservation ReservationName=fairlease_7 Accounts=nlp,vision Nodes=v1,v2 EndTime=uts2000001 StartTime=now"; !strings.HasPrefix(string(said), want) {
		t.Errorf("said %q; want %q", said, want)
	}
}
