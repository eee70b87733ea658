// Command demo brings up a real Slurm with sixteen fake GPUs of two models and lets
// fairlease lease them to two tenants for a few minutes of short terms. It shows the web page
// and a live table, and ends with the fairness views as psql prints them. With -stay, everything
// stays until it is interrupted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

func main() {
	minutes := flag.Float64("minutes", 4, "how long to let the tenants work")
	term := flag.Duration("term", 20*time.Second, "length of a lease")
	suite := flag.String("suite", "forky", "Debian suite of the Slurm: forky (26.05) or trixie (24.11)")
	stay := flag.Bool("stay", false, "afterwards leave everything running until Ctrl-C, to look at the web page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	story, err := demo(ctx, *suite, *term, time.Duration(*minutes*float64(time.Minute)), *stay)
	switch {
	case ctx.Err() != nil && err != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	if !*stay {
		fmt.Printf(ending, story)
	}
	fmt.Println("Slurm, PostgreSQL and fairlease of the demo are gone again. `make demo STAY=1` leaves them running, to be asked.")
}

// ending is told last; its numbers are those that happened.
const ending = `
== What was shown

While vision was idle, nlp had its half, too ("Who lent to whom?"). When bob came, %s
Leases of nlp's jobs were recalled in the middle of their term for the first leases of his. Then both shared, term by
term, and jobs that lost their lease were requeued and had others later. How near each tenant came to its due is its
rho.

README.md says how to switch fairlease on, step by step, on a cluster of your own.
`

// commands names what can be asked of a job while the demo runs, with the configuration and the server to use.
func (s *show) commands(at string, job int) string {
	return fmt.Sprintf(`Ask it yourself, in another terminal. As root, by the journal:

  %[1]s -c %[2]s status
  %[1]s -c %[2]s tenants
  %[1]s -c %[2]s explain %[6]d
  %[1]s -c %[2]s override list
  psql '%[3]s' -c 'select * from fairlease.tenant_fairness'

As any user, by the web page's server (%[4]s), which takes everybody for an operator here:

  %[5]s status --server %[4]s
  %[5]s explain %[6]d --server %[4]s
`, s.bin, s.config, s.dsn, at, s.anybodys, job)
}

// behind says how far vision was behind when bob came, and what follows.
func (s *show) behind(ctx context.Context) string {
	out, err := s.table(ctx, "tenants", "--json")
	var list []struct {
		Tenant string         `json:"tenant"`
		Behind *time.Duration `json:"behind_ns"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	var most time.Duration
	for _, x := range list {
		if x.Tenant == "vision" && x.Behind != nil {
			most = max(most, *x.Behind)
		}
	}
	if err != nil || most < time.Second {
		return "vision got its half back."
	}
	return fmt.Sprintf("vision was behind by %s:\nit is repaid for lent GPUs, up to credit.cap (one minute here). So it got up to twice its due until it was even.", most.Round(time.Second))
}

// show is one demonstration: a Slurm, a PostgreSQL, a daemon.
type show struct {
	*testcluster.Cluster
	bin, dsn, config string
	anybodys         string // a copy of the program that every user can run
	daemon, web      *exec.Cmd
	jobs             int
}

func demo(ctx context.Context, suite string, term, length time.Duration, stay bool) (story string, err error) {
	bin, err := filepath.Abs("bin/fairlease")
	if err != nil {
		return "", err
	}
	say("First a Debian with Slurm is made and started. The first time this takes some silent minutes (830 MB are unpacked); later it takes seconds.")
	say("A real Slurm: two nodes with four V100s each, two with four K80s each; tenants nlp and vision, one share each.")
	c, err := testcluster.Up(ctx, testcluster.Options{Suite: suite, Plugin: testcluster.PluginC, Attached: true, Progress: os.Stdout})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	db, err := testcluster.StartPostgres(ctx, "")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Down()) }()
	s := &show{Cluster: c, bin: bin, dsn: db.DSN(), config: filepath.Join(c.Dir, "fairlease.yaml")}
	if err := s.start(ctx, term); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, end(s.daemon)) }()
	if err := s.acts(ctx); err != nil {
		return "", err
	}
	at, err := s.page(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, end(s.web)) }()
	say("The web page: " + at)
	dir, err := s.copyForAll()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err != nil {
		return "", err
	}
	for i := range 10 {
		if err := s.submit(ctx, "alice", "nlp", fmt.Sprintf("gpu:%d", 1+i%2)); err != nil {
			return "", err
		}
	}
	fmt.Print("\n" + s.commands(at, 1))
	if err := s.watch(ctx, length/4, "alice (nlp) has submitted ten jobs with plain sbatch. vision is idle and lends its half."); err != nil {
		return "", err
	}
	for _, gres := range []string{"gpu:4", "gpu:4", "gpu:4", "gpu:v100:2"} {
		if err := s.submit(ctx, "bob", "vision", gres); err != nil {
			return "", err
		}
	}
	select { // the first round with bob's jobs says how far vision is behind
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(3 * time.Second):
	}
	story = s.behind(ctx)
	if err := s.watch(ctx, length-length/4, "bob (vision) has submitted three gangs of four and a job that names its model: vision wants its half back."); err != nil {
		return "", err
	}
	out, err := s.table(ctx, "explain", "13")
	if err != nil {
		return "", err
	}
	say("fairlease explain 13: why does bob's third gang run or wait?")
	fmt.Print(out)
	if err := s.views(ctx); err != nil || !stay {
		return story, err
	}
	fmt.Printf(ending, story)
	say("Everything stays as it is, until Ctrl-C: look at " + at)
	fmt.Print("\n" + s.commands(at, 13))
	<-ctx.Done()
	return story, nil
}

// copyForAll copies the program out of a checkout that may be root's alone, into a folder that is returned.
func (s *show) copyForAll() (dir string, err error) {
	dir, err = os.MkdirTemp("", "fairlease-demo-")
	if err != nil {
		return "", err
	}
	s.anybodys = filepath.Join(dir, "fairlease")
	program, err := os.ReadFile(s.bin)
	if err == nil {
		err = os.WriteFile(s.anybodys, program, 0o755)
	}
	for _, path := range []string{dir, s.anybodys} { // whatever the umask
		err = errors.Join(err, os.Chmod(path, 0o755))
	}
	return dir, err
}

func say(text string) { fmt.Printf("\n== %s\n", text) }

// start writes the configuration, makes the schema and starts the daemon.
func (s *show) start(ctx context.Context, term time.Duration) error {
	quoted := make([]string, 0, 16)
	for _, w := range s.Scontrol() {
		quoted = append(quoted, fmt.Sprintf("%q", w))
	}
	text := fmt.Sprintf(`mode: act
partitions: [gpu]
interval: 1s
lease: {term: %s, min: 6s, notice: 3s, grant_timeout: 15s}
gate: {ttl: 2m}
reclaim: {threshold: 1s}
credit: {cap: 1m}
start: {cost: 1s}
stop: {per_hour: 0}
slurm:
  address: unix://%s
  scontrol: [%s]
database:
  url: %q
files:
  heartbeats: %s
  state: %s
metrics: {listen: ''}
web: {listen: '127.0.0.1:0', socket: '', trusted_proxies: [127.0.0.1], operators: [%s]}
`, term, s.RestSocket(), strings.Join(quoted, ", "), s.dsn, s.HeartbeatDir(), filepath.Join(s.Dir, "state.json"), visitor)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, s.bin, "-c", s.config, "migrate").CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w\n%s", err, out)
	}
	say(fmt.Sprintf("fairlease serve, in mode act, with terms of %s.", term))
	log, err := os.Create(filepath.Join(s.Dir, "fairlease.log"))
	if err != nil {
		return err
	}
	s.daemon = exec.Command(s.bin, "-c", s.config, "serve")
	s.daemon.Stdout, s.daemon.Stderr = log, log
	return s.daemon.Start()
}

// acts waits for the daemon's first heartbeat: only from then on the submit plugin
// shuts the gate of new jobs.
func (s *show) acts(ctx context.Context) error {
	heartbeat := filepath.Join(s.HeartbeatDir(), "gpu")
	for end := time.Now().Add(30 * time.Second); ; {
		if _, err := os.Stat(heartbeat); err == nil {
			return nil
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(s.daemon.Stdout.(*os.File).Name())
			return fmt.Errorf("fairlease has made no round in 30 s; its log:\n%s", log)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// visitor is the user that people who look at the page are taken for.
const visitor = "visitor"

// page starts fairlease web, with a proxy before it that says that everybody is the visitor, an operator, and gives the proxy's address.
func (s *show) page(ctx context.Context) (string, error) {
	log, err := os.Create(filepath.Join(s.Dir, "web.log"))
	if err != nil {
		return "", err
	}
	s.web = exec.Command(s.bin, "-c", s.config, "web")
	s.web.Stdout, s.web.Stderr = log, log
	if err := s.web.Start(); err != nil {
		return "", err
	}
	said := regexp.MustCompile(`the page is at ([0-9.:]+)`)
	for at := time.Now().Add(30 * time.Second); ; {
		text, err := os.ReadFile(log.Name())
		if found := said.FindSubmatch(text); found != nil {
			proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: string(found[1])})
			door, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return "", errors.Join(err, end(s.web))
			}
			go func() {
				_ = http.Serve(door, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Set("X-Remote-User", visitor)
					proxy.ServeHTTP(w, r)
				})) // until the demo ends
			}()
			return "http://" + door.Addr().String(), nil
		}
		if err != nil || time.Now().After(at) {
			return "", errors.Join(fmt.Errorf("fairlease web does not answer: %w\n%s", err, text), end(s.web))
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), end(s.web))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// end stops a process by its own pid. A terminal's interrupt may have ended it already.
func end(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop fairlease: %w", err)
	}
	return cmd.Wait()
}

// submit queues a job as a user does, who declares that it saves on SIGTERM: so a requeue costs it no more than another start.
func (s *show) submit(ctx context.Context, user, account, gres string) error {
	s.jobs++
	_, err := s.Sbatch(ctx, user, "#!/bin/bash\nexec sleep 3600\n", "-A", account, "--gres="+gres, "-t", "60", "-J", fmt.Sprintf("train%d", s.jobs), "--comment=saves=term")
	return err
}

// watch shows tenants and leases, under a title, until the time is over.
func (s *show) watch(ctx context.Context, length time.Duration, title string) error {
	say(title)
	terminal := false
	if info, err := os.Stdout.Stat(); err == nil {
		terminal = info.Mode()&os.ModeCharDevice != 0
	}
	every := 15 * time.Second
	if terminal {
		every = time.Second
	}
	pause := 3 * time.Second // the first jobs run by then
	for begin := time.Now(); time.Since(begin) < length; pause = every {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, length-time.Since(begin))):
		}
		tenants, err := s.table(ctx, "tenants")
		if err != nil {
			return err
		}
		leases, err := s.table(ctx, "leases")
		if err != nil {
			return err
		}
		if terminal {
			fmt.Print("\x1b[H\x1b[2J")
			say(title)
		}
		fmt.Printf("\n-- after %s of %s\n\n%s\n%s", time.Since(begin).Round(time.Second), length, tenants, leases)
	}
	return nil
}

func (s *show) table(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, s.bin, append([]string{"-c", s.config}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fairlease %s: %w\n%s\n(the daemon's log is %s)", strings.Join(args, " "), err, out, filepath.Join(s.Dir, "fairlease.log"))
	}
	return string(out), nil
}

// views prints what an administrator reads in psql, the columns that fit a screen.
func (s *show) views(ctx context.Context) error {
	for _, v := range []struct{ title, query string }{
		{"How fair is it? rho = received / due, 1 is exactly fair", `select tenant, pool, entitlement_gpus::int as due_gpus, holds_gpus as has_gpus,
	waiting_jobs, alloc_gpu_hours as received_gpu_hours, due_gpu_hours, round(rho, 3) as rho
from fairlease.tenant_fairness`},
		{"Who had how many GPU-hours?", `select day, tenant, user_name, model, gpu_hours
from fairlease.gpu_hours`},
		{"Who lent to whom?", `select day, pool, lender, borrower, gpu_hours
from fairlease.lending_per_day`},
		{"Which jobs lost by sharing (rho < 0.95)?", `select slurm_id, tenant, user_name, state, round(rho, 3) as rho, received_gpu_ms, due_gpu_ms
from fairlease.sharing_loss
where scope = 'job'`},
		{"What waits, and why?", `select slurm_id as job, tenant, gpus, terms, code, reason
from fairlease.waiting_jobs`},
		{"Does every GPU-millisecond add up? (unaccounted is 0)", `select pool, gpus, capacity_gpu_ms, tenants_gpu_ms, overhead_gpu_ms, idle_gpu_ms, unaccounted_gpu_ms
from fairlease.pool_balance`},
	} {
		say(v.title)
		fmt.Println(v.query + ";")
		cmd := exec.CommandContext(ctx, "psql", "-X", "-P", "pager=off", "-c", v.query, s.dsn)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("psql: %w", err)
		}
	}
	return nil
}
