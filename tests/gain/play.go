package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// queued is a job that waits or runs, as squeue shows it; the tasks of an array that wait are one.
type queued struct {
	id, user, state, name, reason string
	ran                           time.Duration
}

// play plays a batch: all clusters are up before the first job is submitted, so that no start disturbs a measurement. It prints each row as it ends.
func (g *ground) play(ctx context.Context, batch []pairing, o options) ([]row, error) {
	rows := make([]row, len(batch))
	var playing, raised sync.WaitGroup
	raised.Add(len(batch))
	over := map[string]chan struct{}{} // the honest rows, by which the others are judged
	for _, p := range batch {
		if p.isHonest() {
			over[p.key()] = make(chan struct{})
		}
	}
	var mu sync.Mutex // rows are set and printed one by one
	for i, p := range batch {
		playing.Go(func() {
			r := g.match(ctx, p, o, &raised)
			if p.isHonest() {
				defer close(over[p.key()])
			} else {
				<-over[p.base()]
			}
			mu.Lock()
			defer mu.Unlock()
			rows[i] = r
			judge(rows)
			fmt.Println(rows[i].String())
		})
	}
	playing.Wait()
	judge(rows)
	return rows, ctx.Err()
}

// match plays a pairing: both tenants are honest for two terms, or gangs report; then all jobs end, the strategist comes, and two terms later the other
// tenant, which is honest. From there on their GPUs are measured.
func (g *ground) match(ctx context.Context, p pairing, o options, raised *sync.WaitGroup) (r row) {
	length := time.Duration(o.terms) * o.term
	if p.slices {
		length *= 2 // a turn may be half a minute at least
	}
	r = row{pairing: p, capacity: p.gpus() * length.Seconds()}
	s, err := g.raise(ctx, p)
	raised.Done()
	defer func() { r.err = errors.Join(r.err, s.keep(o.keep), s.down()) }()
	if err != nil {
		r.err = err
		return r
	}
	raised.Wait()
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer stop()
	looks.Go(func() { s.look(looking) })

	before, rival, first := honest, honest, 2*o.term
	if p.gangs { // three reports of each
		first = 10 * o.term
	}
	if p.slices {
		before, rival = honestTurns, honestTurns
	}
	if p.before != nil {
		before = strategy{name: p.name, play: p.before, depth: honest.depth}
	}
	s.during(ctx, first, s.plays("alice", before), s.plays("bob", rival))
	if p.rival != nil {
		rival = *p.rival
	}
	if err := s.clear(ctx); err != nil {
		r.err = err
		return r
	}
	strategist := s.plays("alice", p.strategy)
	playing, enough := context.WithCancel(ctx)
	var hands sync.WaitGroup
	hands.Go(func() { strategist(playing) })
	if p.slices { // a pair is found at the end of a term
		hands.Go(func() { s.plays("bob", rival)(playing) })
	}
	wait(ctx, 2*s.term)
	from := time.Now().Truncate(time.Second)
	busy, all := work()
	s.forget()
	done := s.steps()
	if rest := time.Until(from.Add(length)); p.slices {
		wait(ctx, rest)
	} else {
		s.during(ctx, rest, s.plays("bob", rival))
	}
	to := time.Now().Truncate(time.Second)
	nowBusy, nowAll := work()
	ran := s.sinceForgotten()
	if p.pairs {
		for account, d := range s.steps() {
			ran[account] = d - done[account]
		}
	}
	enough()
	hands.Wait()
	if ctx.Err() != nil {
		r.err = ctx.Err()
		return r
	}
	r.slowest = s.longest()
	r.capacity = p.gpus() * to.Sub(from).Seconds()
	r.busy = 100 * (nowBusy - busy) / max(nowAll-all, 1)
	wait(ctx, 3*time.Second) // slurmdbd hears of starts and ends later than slurmctld
	sums, err := held(ctx, s.Cluster, from, to)
	switch {
	case p.pairs:
		sums = map[string]float64{}
		for account, d := range ran {
			sums[account] = d.Seconds()
		}
	case p.slices:
		sums = heldInTurns(ran, to.Sub(from), p.sharers())
	}
	if err == nil {
		r.grants, r.failed, err = granted(ctx, s.dsn, from, to)
	}
	if err != nil {
		r.err = err
		return r
	}
	for account, sum := range sums {
		if account == opponents || strings.HasPrefix(account, opponents+"-") {
			r.opponent += sum
		} else {
			r.strategist += sum
		}
	}
	return r
}

// during has users act for so long.
func (s *site) during(ctx context.Context, length time.Duration, users ...func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var hands sync.WaitGroup
	for _, u := range users {
		hands.Go(func() { u(ctx) })
	}
	hands.Wait()
	<-ctx.Done()
}

// wait waits, or until the context ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// clear cancels all jobs, and waits until no GPU is held.
func (s *site) clear(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); ; {
		out, err := s.Exec(ctx, "root", "squeue", "-h", "-o", "%A")
		if err == nil && out == "" {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("jobs did not end (%w):\n%s", errors.Join(ctx.Err(), err), out)
		}
		ids := strings.Fields(out)
		slices.Sort(ids)
		_, _ = s.Exec(ctx, "root", append([]string{"scancel"}, slices.Compact(ids)...)...) // a job may have ended meanwhile
		wait(ctx, time.Second)
	}
}

// look looks at the queue every second, and at when the last round was.
func (s *site) look(ctx context.Context) {
	for ctx.Err() == nil {
		begin := time.Now()
		out, err := s.Exec(ctx, "root", "squeue", "-h", "-o", "%i|%u|%T|%j|%r|%M")
		if err == nil {
			var queue []queued
			for line := range strings.Lines(out) {
				if f := strings.Split(strings.TrimSpace(line), "|"); len(f) == 6 {
					queue = append(queue, queued{f[0], f[1], f[2], f[3], f[4], elapsed(f[5])})
				}
			}
			s.mu.Lock()
			s.count(queue)
			s.queue, s.at = queue, begin
			if info, err := os.Stat(s.heartbeat()); err == nil {
				s.slowest = max(s.slowest, time.Since(info.ModTime()))
			}
			s.mu.Unlock()
		}
		wait(ctx, time.Until(begin.Add(time.Second)))
	}
}

// elapsed reads a time as squeue writes it: minutes and seconds, hours where there are any.
func elapsed(text string) time.Duration {
	sum := 0
	for part := range strings.SplitSeq(text, ":") {
		n, _ := strconv.Atoi(part)
		sum = 60*sum + n
	}
	return time.Duration(sum) * time.Second
}

// count adds for how long jobs have run since the last look. The time of a job begins anew when it is requeued.
func (s *site) count(queue []queued) {
	now := map[string]time.Duration{}
	for _, q := range queue {
		was := s.runs[q.id]
		if q.state == "PENDING" {
			continue
		}
		if now[q.id] = q.ran; q.ran < was {
			was = 0
		}
		s.ran[accounts[q.user]] += q.ran - was
	}
	s.runs = now
}

// steps gives the work of each account's jobs of pairs so far, as time on a GPU of their own.
func (s *site) steps() map[string]time.Duration {
	sums := map[string]time.Duration{}
	for user, account := range accounts {
		files, _ := filepath.Glob(filepath.Join(s.Home(user), "steps-*"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
				sums[account] += time.Duration(n) * time.Second / stepsASecond
			}
		}
	}
	return sums
}

// accounts are those of the two users.
var accounts = map[string]string{"alice": strategistsOwn, "bob": opponents}

func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = 0
	clear(s.ran)
}

// sinceForgotten gives for how long the jobs of each account have run since then.
func (s *site) sinceForgotten() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ran)
}

func (s *site) longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slowest
}

// player is a user who acts on a site.
type player struct {
	*site
	user      string
	submitted int
	done      map[string]bool // by what was done to a job
}

// plays gives what a user does who plays a strategy, until the context ends.
func (s *site) plays(user string, x strategy) func(context.Context) {
	return func(ctx context.Context) {
		p := &player{site: s, user: user, done: map[string]bool{}}
		if x.play != nil {
			x.play(ctx, p)
			return
		}
		p.stream(ctx, x)
	}
}

// mine gives the user's jobs by the next look; nil where the context ends before.
func (p *player) mine(ctx context.Context) []queued {
	since := time.Now() // looks that begin later show everything that the player has done
	for ctx.Err() == nil {
		p.mu.Lock()
		at := p.at
		var jobs []queued
		for _, q := range p.queue {
			if q.user == p.user {
				jobs = append(jobs, q)
			}
		}
		p.mu.Unlock()
		if at.After(since) {
			return jobs
		}
		wait(ctx, 100*time.Millisecond)
	}
	return nil
}

// stream keeps jobs of a strategy waiting, and does to each what the strategy says.
func (p *player) stream(ctx context.Context, x strategy) {
	for ctx.Err() == nil {
		jobs := p.mine(ctx)
		waits := 0
		for _, j := range jobs {
			switch j.state {
			case "PENDING":
				waits++
				p.once(ctx, j, "waiting", x.waiting)
			case "RUNNING":
				p.once(ctx, j, "running", x.running)
			}
			if x.act != nil {
				x.act(ctx, p, j)
			}
		}
		for ; waits < x.depth && ctx.Err() == nil; waits++ {
			if p.submit(ctx, x, x.shapes()[p.submitted%len(x.shapes())]) == "" {
				wait(ctx, time.Second)
			}
		}
	}
}

// once updates a job as its owner, once in each state.
func (p *player) once(ctx context.Context, j queued, state string, words []string) {
	if key := state + j.id; len(words) > 0 && !p.done[key] {
		p.done[key] = true
		p.does(ctx, append([]string{"scontrol", "update", "jobid=" + j.id}, words...)...)
	}
}

// submit queues a job of a shape, and gives its id; "" = refused.
func (p *player) submit(ctx context.Context, x strategy, s shape) string {
	p.submitted++
	args := append([]string{"-o", "/dev/null", "-t", "2"}, x.args...)
	if s.gpus > 0 {
		args = append(args, fmt.Sprintf("--gres=gpu:%d", s.gpus))
	}
	args = append(args, s.args...)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "%n", strconv.Itoa(p.submitted))
	}
	script := x.script
	if script == nil {
		script = sleeper
	}
	id, err := p.Sbatch(ctx, p.user, script(s.seconds), args...)
	if err != nil {
		p.complain(ctx, err)
		return ""
	}
	return id
}

// does runs a command as the user. Slurm may refuse it: that is its answer to the strategy, and is told once.
func (p *player) does(ctx context.Context, argv ...string) {
	if _, err := p.Exec(ctx, p.user, argv...); err != nil {
		p.complain(ctx, err)
	}
}

// complain says what Slurm refused, once for each player.
func (p *player) complain(ctx context.Context, err error) {
	if ctx.Err() == nil && !p.done["complained"] {
		p.done["complained"] = true
		fmt.Printf("  %s/%s %s: %.250v\n", p.suite, p.gate, p.name, strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

// beside gives a second pair of hands of the same user.
func (p *player) beside() *player {
	return &player{site: p.site, user: p.user, done: map[string]bool{}}
}
