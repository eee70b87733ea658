package main

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/browser"
)

// firstReport measures what a newcomer waits for: from what sacct printed of four weeks, 20,000 jobs on 512 GPUs, to the report's picture in
// Chromium, with fairlease simulate as docs/simulate.md says.
func firstReport() error {
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, history := filepath.Join(dir, "fairlease"), filepath.Join(dir, "history.txt")
	if out, err := exec.Command("go", "build", "-o", program, "./sidecar/cmd/fairlease").CombinedOutput(); err != nil {
		return fmt.Errorf("building fairlease: %w\n%s", err, out)
	}
	r := trace.LikePhilly(1, 0)
	r.Length, r.Tenants = 28*cluster.Day, trace.Shifts(12, 0.8)
	r.PerHour = 20_000 / r.Length.Duration().Hours()
	r.Durations = r.Durations[:5] // none of more than six days
	jobs, err := trace.Generate(r)
	if err != nil {
		return err
	}
	count := 0
	if err := into(history, func(w io.Writer) error { count, err = accounted(w, jobs); return err }); err != nil {
		return err
	}
	begin, cpu := time.Now(), used()
	run := exec.Command(program, "simulate", history, "--nodes", "64x8", "--html", filepath.Join(dir, "report.html"))
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("fairlease simulate: %w\n%s", err, out)
	}
	simulated := time.Since(begin)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(dir, "report.html")) }))
	defer files.Close()
	found, err := browser.Look("tests/browser", files.URL, "", []browser.Visit{{Name: "report", Path: "/", NoAxe: true,
		Steps: []browser.Step{{Until: `document.querySelector("canvas, svg")`}}}})
	if err != nil {
		return err
	}
	if wrong := found[0].Wrong(); len(wrong) > 0 {
		return fmt.Errorf("the report: %q", wrong)
	}
	shown := time.Duration(found[0].Took[0] * float64(time.Second))
	fmt.Printf("a first report: %d jobs of four weeks on 64 nodes of 8 GPUs, the default schedulers; CPU %.1f s\n", count, (used() - cpu).Seconds())
	figure("first_report_s", (simulated + shown).Seconds(), "s")
	return nil
}

// accounted writes jobs as sacct prints them, and gives how many there are. Each started a minute after its submission.
func accounted(w io.Writer, jobs iter.Seq[trace.Job]) (n int, err error) {
	epoch := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	_, err = fmt.Fprintln(w, "JobID|User|Account|State|Restarts|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|ReqTRES|JobName")
	for j := range jobs {
		if err != nil {
			return n, err
		}
		n++
		submit := epoch.Add(j.Submit.Duration()).Truncate(time.Second)
		start, runs := submit.Add(time.Minute), max(j.Runs.Duration().Truncate(time.Second), time.Second)
		tres := fmt.Sprintf("cpu=%d,gres/gpu=%d,node=%d", j.GPUs, j.GPUs, (j.GPUs+7)/8)
		_, err = fmt.Fprintf(w, "%d|%s|%s|COMPLETED|0|%s|%s|%s|%d|UNLIMITED|%s|%s|train\n", n, j.Tenant, j.Tenant, submit.Format("2006-01-02T15:04:05"),
			start.Format("2006-01-02T15:04:05"), start.Add(runs).Format("2006-01-02T15:04:05"), int(runs.Seconds()), tres, tres)
	}
	return n, err
}
