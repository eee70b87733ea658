package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// onWeb measures `fairlease web` on a journal with 10,000 jobs and 2,000 nodes: the time of an answer to /api/v1/jobs (100 of them, from
// anywhere in the list) at 200 requests a second, and the memory of the process after that. Meanwhile there is a new round every ten seconds.
func onWeb() (err error) {
	const (
		nodes, waiting = 2_000, 5_715
		rate, lasts    = 200, 30 * time.Second
		every          = 10 * time.Second
		before         = 4 // rounds
	)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	server, err := testcluster.StartPostgres(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Down()) }()
	st, lead, err := leading(ctx, server.DSN(), "")
	if err != nil {
		return err
	}
	defer st.Close()
	j := lead.Journal()
	if _, err := j.Open(ctx); err != nil {
		return err
	}
	// The rounds are made before: while requests are timed, only the journal writes, as a daemon's does.
	type round struct {
		snap cluster.Snapshot
		plan cluster.Plan
	}
	var rounds []round
	story := journaltest.NewStory(1, nodes, waiting)
	for range before + int(lasts/every) {
		snap, plan := story.Next()
		rounds = append(rounds, round{snap, plan})
	}
	commit := func() error {
		r := rounds[0]
		rounds = rounds[1:]
		return j.Commit(ctx, r.snap, r.plan)
	}
	plan := rounds[before-1].plan
	for range before {
		if err := commit(); err != nil {
			return err
		}
	}
	web, err := startWeb(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer web.end()
	fmt.Printf("fairlease web: %d jobs, %d leases, %d nodes; %d requests a second for %s, a round every %s (%s)\n", len(plan.State.Records), len(plan.State.Leases), nodes, rate, lasts, every, machine())
	committed := make(chan error, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		var err error
		for len(rounds) > 0 && err == nil {
			<-tick.C
			err = commit()
		}
		committed <- err
	}()
	last := plan.State.Records[len(plan.State.Records)-1].Key
	took, err := web.load(ctx, int(rate*lasts/time.Second), time.Second/rate, func(i int) string {
		return fmt.Sprintf("/api/v1/jobs?limit=100&after=%d", cluster.JobKey(i*7919)%(last-300))
	})
	if err = errors.Join(err, <-committed); err != nil {
		return err
	}
	slices.Sort(took)
	fmt.Printf("answers: median %s, p99 %s, worst %s of %d\n", took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(took))
	figure("api_jobs_p99_ms", took[len(took)*99/100].Seconds()*1e3, "ms")
	memory, err := web.memory()
	if err != nil {
		return err
	}
	figure("serve_rss_mib", memory, "MiB")
	return nil
}

// webProcess is a running fairlease web.
type webProcess struct {
	cmd    *exec.Cmd
	client http.Client
	dir    string
}

// startWeb builds and starts fairlease web, and waits until it has read the journal.
func startWeb(ctx context.Context, dsn string) (*webProcess, error) {
	dir, err := os.MkdirTemp("", "fairlease-bench")
	if err != nil {
		return nil, err
	}
	w := &webProcess{dir: dir}
	program, file, socket := filepath.Join(dir, "fairlease"), filepath.Join(dir, "fairlease.yaml"), filepath.Join(dir, "socket")
	w.client.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./sidecar/cmd/fairlease").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "database: {url: %q}\nweb: {listen: '', socket: %s}\n", dsn, socket), 0o600); err != nil {
		return nil, err
	}
	w.cmd = exec.CommandContext(ctx, program, "-c", file, "web")
	var log bytes.Buffer
	w.cmd.Stderr = &log
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := w.client.Get("http://local/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return w, nil
			}
		}
		if time.Now().After(end) {
			w.end()
			return nil, fmt.Errorf("fairlease web does not answer: %s", log.String())
		}
	}
}

// load asks n questions, one after each pause, whether or not the last ones are answered. It gives the times from when each was due.
func (w *webProcess) load(ctx context.Context, n int, pause time.Duration, question func(int) string) ([]time.Duration, error) {
	took, errs := make([]time.Duration, n), make([]error, n)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * pause)
		time.Sleep(time.Until(due))
		all.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://local"+question(i), nil)
			if err == nil {
				err = w.ask(r)
			}
			took[i], errs[i] = time.Since(due), err
		})
	}
	all.Wait()
	return took, errors.Join(errs...)
}

func (w *webProcess) ask(r *http.Request) error {
	answer, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	size, err := io.Copy(io.Discard, answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || size < 1000) {
		err = fmt.Errorf("%s: status %d, %d bytes", r.URL, answer.StatusCode, size)
	}
	return err
}

// memory gives the largest resident memory of the process so far, in MiB.
func (w *webProcess) memory() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("the kernel does not tell the memory of fairlease web")
}

func (w *webProcess) end() {
	_ = w.cmd.Process.Signal(os.Interrupt)
	_ = w.cmd.Wait()
	_ = os.RemoveAll(w.dir)
}
