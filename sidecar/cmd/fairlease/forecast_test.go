package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/operate/outlook"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
)

// From the daemon's process to the words: a forecast made now, written down, listed, told of one job and by explain; and what another
// job, a maintenance and other settings would change.
func TestForecast(t *testing.T) {
	dsn, lead := leading(t)
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	for range 2 {
		w.Submit("nlp", 3, 4, 70*cluster.Minute)
		w.Submit("vision", 4, 2, 40*cluster.Minute)
		w.Run(2 * cluster.Hour)
	}
	waits := w.Submit("nlp", 4, 4, 2*cluster.Hour)[3]
	w.Run(20 * cluster.Minute)
	s := &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, end: w.Now().Time()}
	do := func(code int, args ...string) result {
		t.Helper()
		r := run(t, s.end, s.env, args...)
		if r.code != code {
			t.Fatalf("%v: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
		return r
	}
	if r := do(failure.No, "forecast", waits.String()); !strings.Contains(r.err, "has no forecast") {
		t.Error(r.err)
	}
	f, err := forecast.Parse([]byte(do(failure.OK, "forecast", "--all", "--now", "--json").out))
	if err != nil || len(f.Jobs) < 4 {
		t.Fatalf("%+v, %v", f, err)
	}
	if out := do(failure.OK, "forecast", waits.String(), "--now").out; !strings.Contains(out, "job "+waits.String()+" starts ") || !strings.Contains(out, "; ends ") {
		t.Error(out)
	}
	if r := do(failure.OK, "forecast", "--all", "--now"); !strings.Contains(r.err, "the accounting history cannot be read: ") {
		t.Errorf("nothing tells that Slurm is away: %s", r.err)
	}
	if err := lead.Forecast(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if out := do(failure.OK, "forecast", waits.String()).out; !strings.Contains(out, "in 8 of 10 runs") || !strings.Contains(out, "100 runs") {
		t.Error(out)
	}
	if out := do(failure.OK, "status").out; !strings.Contains(out, "next      job ") || !strings.Contains(out, " of nlp_user starts ") {
		t.Error(out)
	}
	if out := do(failure.OK, "leases").out; !strings.Contains(out, "FORECAST") || !strings.Contains(out, " ends ") {
		t.Error(out)
	}
	web := serveWeb(t, s, "")
	for _, args := range [][]string{{"forecast", waits.String()}, {"forecast", "--all"}, {"forecast", "--all", "--json"}, {"leases"}, {"leases", "--all"}, {"status", "--json"}} {
		want := do(failure.OK, args...).out
		if got := do(failure.OK, append(args, "--server", "unix:"+web.socket)...).out; refreshed.ReplaceAllString(got, "") != refreshed.ReplaceAllString(want, "") && args[0] != "status" || args[0] == "status" && !strings.Contains(got, `"soon"`) {
			t.Errorf("%v by the server:\n%s\nby the journal:\n%s", args, got, want)
		}
	}
	if r := run(t, s.end, s.env, "forecast", "--all", "--now", "--server", "unix:"+web.socket); r.code != failure.Misuse || !strings.Contains(r.err, "leave --server out") {
		t.Error(r)
	}
	if out := do(failure.OK, "explain", waits.String()).out; !strings.Contains(out, "Forecast    starts ") {
		t.Error(out)
	}
	var list []store.JobForecast
	if err := json.Unmarshal([]byte(do(failure.OK, "forecast", "--all", "--json").out), &list); err != nil || len(list) != len(f.Jobs) {
		t.Errorf("%v: %+v", err, list)
	}
	if out := do(failure.OK, "forecast", "--all", "-P").out; strings.Count(out, "\n") != 1+len(list) || !strings.Contains(out, "|runs|") {
		t.Error(out)
	}

	if out := do(failure.OK, "whatif", "--submit", "4 gpus 1h as vision").out; !strings.Contains(out, "any model") || !strings.Contains(out, "starts about") {
		t.Error(out)
	}
	var hurt []outlook.Hurt
	if err := json.Unmarshal([]byte(do(failure.OK, "whatif", "--drain", "v[01-02]", "--at", "10m", "--for", "5h", "--json").out), &hurt); err != nil {
		t.Fatal(err)
	}
	if len(hurt) == 0 || hurt[0].Tenant != "nlp" || hurt[0].On == 0 || hurt[0].Delay < cluster.Hour {
		t.Errorf("%+v", hurt)
	}
	var r outlook.Report
	if err := json.Unmarshal([]byte(do(failure.OK, "whatif", "--weights", "nlp=x1.5", "--add", "1x4:v100", "--term", "30m", "--repetitions", "2", "--json").out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tenants) != 2 || r.Repetitions != 2 || r.Other != "weight of nlp x1.5, added 1x4:v100, term 30m" {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Tenants {
		if c.Was.GPUHours.Value <= 0 || c.Other.GPUHours.Value <= 0 || c.Waits.Low > c.Waits.Value || c.Waits.High < c.Waits.Value {
			t.Errorf("%+v", c)
		}
		if c.Tenant == "vision" && c.Other.Wait.Value >= c.Now.Wait.Value {
			t.Errorf("%s waits %.0f s with half as many GPUs more, %.0f s without", c.Tenant, c.Other.Wait.Value, c.Now.Wait.Value)
		}
	}
	if out := do(failure.OK, "whatif", "--preset", "drf", "--repetitions", "0").out; !strings.Contains(out, "preset drf") || !strings.Contains(out, "preemptions: ") {
		t.Error(out)
	}
	for words, args := range map[string][]string{
		"there is no tenant":              {"whatif", "--submit", "4 gpus 1h as eve"},
		"write GPUs, run time and tenant": {"whatif", "--submit", "four gpus"},
		"no node \"x1\"":                  {"whatif", "--drain", "x1"},
		"nothing is changed":              {"whatif"},
		"exclude each other":              {"whatif", "--drain", "v01", "--term", "1h"},
		"--at and --for are of a drain":   {"whatif", "--at", "1h"},
		"cannot be replayed":              {"whatif", "--preset", "nonsense"},
		"write tenants with whole":        {"whatif", "--weights", "nlp=x"},
		"come from Slurm's shares":        {"whatif", "--weights", "nlp=3"},
		"name a job, or give --all":       {"forecast"},
	} {
		if r := run(t, s.end, s.env, args...); r.code != failure.Misuse || !strings.Contains(r.err, words) {
			t.Errorf("%v: exit code %d, %q, want %q", args, r.code, r.err, words)
		}
	}

	// The next forecast counts which statements of the first kept their word.
	w.Run(8 * cluster.Hour)
	s.end = w.Now().Time()
	next, err := forecast.Parse([]byte(do(failure.OK, "forecast", "--all", "--now", "--json").out))
	if err != nil || len(next.Kept) == 0 || next.Kept[0].Statements == 0 || next.Kept[0].Forecasts != 1 {
		t.Fatalf("%+v, %v", next, err)
	}
	if err := lead.Forecast(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if out := run(t, s.end, s.env, "doctor", "--json").out; !strings.Contains(out, "kept their word") {
		t.Error(out)
	}
}

// Commands that compute with the file say where the daemon has other values in force; the daemon's own processes compute with those.
func TestFileNotInForce(t *testing.T) {
	dsn, lead := leading(t)
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	w.Submit("nlp", 2, 4, 40*cluster.Minute)
	w.Run(cluster.Hour)
	path := empty(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := func(more string) *config.Config {
		t.Helper()
		write(t, path, string(text)+more)
		c, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	in := file("forecast: {runs: 17}\n")
	if err := daemon.WriteAccepted(in.AcceptedPath(), in.Accept()); err != nil {
		t.Fatal(err)
	}
	env := []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + path}
	const says = "the daemon of this host has other values in force of forecast.runs"
	for _, c := range []struct {
		more string
		says bool
	}{{"forecast: {runs: 19}\n", true}, {"forecast: {runs: 17}\n", false}} {
		file(c.more)
		for _, args := range []string{"forecast --all --now", "whatif --drain v1", "whatif --weights nlp=x2", "tune journal", "report nlp", "round --dry-run", "config show"} {
			if r := run(t, w.Now().Time(), env, strings.Fields(args)...); strings.Contains(r.err, says) != c.says {
				t.Errorf("%s: %s: %s", c.more, args, r.err)
			}
		}
	}
	file("forecast: {runs: 19}\n")
	given, err := json.Marshal(in.Texts())
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	p := &program{out: &out, err: &errs, env: env, clock: func() time.Time { return w.Now().Time() }}
	if code := p.run(t.Context(), forecastArgs, bytes.NewReader(given)); code != failure.OK || strings.Contains(errs.String(), says) {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if f, err := forecast.Parse(out.Bytes()); err != nil || f.Runs != 17 {
		t.Errorf("%v, %v", f, err)
	}
}
