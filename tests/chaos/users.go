package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// manner is a kind of job that users submit.
type manner struct {
	script    string // "" = args are a command that needs no answer
	args      []string
	array     int // tasks
	noRequeue bool
	begin     bool // the user asks for a begin time, nodes
	nodes     bool
}

// sleeper holds its GPUs for so long; exec, so that SIGTERM ends it at once.
func sleeper(seconds int) string { return fmt.Sprintf("#!/bin/bash\nexec sleep %d\n", seconds) }

// saver works for so many seconds in all, saves when it hears TERM or the notice, and resumes from there. It says "end" once.
func saver(seconds int) string {
	return fmt.Sprintf(`#!/bin/bash
#SBATCH --open-mode=append
cat > work.$SLURM_JOB_ID <<'SH'
n=$(cat saved.$SLURM_JOB_ID 2>/dev/null || echo 0)
save() { echo $n > .saved.$SLURM_JOB_ID; mv .saved.$SLURM_JOB_ID saved.$SLURM_JOB_ID; }
trap save USR1
trap 'save; exit 0' TERM
while [ $n -lt %d ]; do (trap '' USR1; exec sleep 1); n=$((n+1)); done
SH
until srun bash work.$SLURM_JOB_ID; do sleep 2; done # srun fails where a slurmd is away
`, seconds)
}

// requeuesItself is requeued by its own script once, if Slurm answers, and is over soon after its second start. Incomplete: a request
// that slurmctld gets late must not revive a job that is over.
const requeuesItself = "#!/bin/bash\n[ -z \"$SLURM_RESTART_COUNT\" ] && { sleep 2; timeout 10 scontrol requeue Incomplete $SLURM_JOB_ID; sleep 15; }\nexec sleep 3\n"

// lasting runs until the campaign is over.
const lasting = "#!/bin/bash\ntrap 'exit 0' TERM\nuntil [ -e /home/restd/over ]; do sleep 0.5; done\n"

var manners = []manner{
	{script: sleeper(2), args: []string{"--gres=gpu:1"}},
	{script: sleeper(4), args: []string{"--gres=gpu:2"}},
	{script: sleeper(9), args: []string{"--gres=gpu:1"}},
	{script: sleeper(7), args: []string{"--gres=gpu:4"}},
	{script: sleeper(25), args: []string{"--gres=gpu:2"}},
	{script: sleeper(40), args: []string{"--gres=gpu:1"}},
	{script: saver(20), args: []string{"--gres=gpu:2", "--comment=saves=term"}},
	{script: saver(35), args: []string{"--gres=gpu:1", "--comment=saves=notice"}},
	{script: requeuesItself, args: []string{"--gres=gpu:1", `--comment={"APS":{"auto_requeue":true}}`}},
	{script: sleeper(6), args: []string{"-N2", "--gres=gpu:4"}},
	{script: saver(15), args: []string{"-N2", "--gres=gpu:2", "--comment=saves=term"}},
	{script: sleeper(3), args: []string{"--gres=gpu:1", "--array=0-3"}, array: 4},
	{script: sleeper(5), args: []string{"--gres=gpu:2", "--array=0-4%2"}, array: 5},
	{script: sleeper(12), args: []string{"--gres=gpu:2", "--no-requeue"}, noRequeue: true},
	{script: sleeper(12), args: []string{"--gres=gpu:2", "--contiguous"}},
	{script: sleeper(12), args: []string{"--gres=gpu:1", "-L", "fairlease:0"}},
	{script: sleeper(4), args: []string{"--gres=gpu:1", "--begin=now+12"}, begin: true},
	{script: sleeper(4), args: []string{"--gres=gpu:1", "-w", "v2"}, nodes: true},
	{script: sleeper(3), args: []string{"--gres=gpu:1", "--exclude", "v[1-2]"}},
	{script: sleeper(3)}, // no GPUs at all
	{script: sleeper(5), args: []string{"--gres=gpu:1", "--deadline=now+3hours"}},
	{script: sleeper(5), args: []string{"--gres=gpu:1", "-J", "one", "-d", "singleton"}},
	{script: sleeper(4), args: []string{"--gres=gpu:1", "-L", "matlab:2"}},
	{script: sleeper(4), args: []string{"--gres=gpu:1", "--exclusive"}},
	{script: sleeper(4), args: []string{"--gres=gpu:1", ":", "-t", "10", "--gres=gpu:2"}}, // heterogeneous
	{args: []string{"salloc", "--gres=gpu:1", "--immediate=8", "sleep", "3"}},
}

// ours is a job that the campaign submitted.
type ours struct {
	id, user, account string
	at                time.Time
	manner
}

// users submit jobs and change them. They are safe for use by several goroutines.
type users struct {
	site *site
	say  func(string, ...any)

	mu     sync.Mutex
	jobs   []ours
	deeds  []Deed
	counts map[string]int
	// hostile counts the hostile deeds that Slurm accepted, by kind.
	hostile map[string]int
	guests  []string // accounts of dan besides the first one
}

// plain tells whether Slurm may start the job as soon as GPUs are free.
func (j ours) plain() bool {
	return j.script != "" && !j.begin && !j.nodes && j.array == 0 && !slices.ContainsFunc(j.args, func(a string) bool {
		return slices.Contains([]string{"-d", "-L", "--exclude", "--exclusive", ":", "--contiguous"}, a)
	})
}

var accountOf = map[string]string{"alice": "nlp", "carol": "nlp", "bob": "vision", "dan": "guests"}

// command runs something as a user, for at most 15 seconds: a hung slurmctld is not waited for.
func (u *users) command(ctx context.Context, user string, argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err := u.site.Exec(ctx, user, argv...)
	return err
}

// submit queues a job. That it may fail is in the nature of things; an accepted job is remembered.
func (u *users) submit(ctx context.Context, m manner, who int) {
	user := pickOf([]string{"alice", "bob", "carol", "bob", "alice", "dan"}, who)
	if slices.Contains(m.args, "-N2") && user == "dan" { // dan's tenant has one node
		user = "bob"
	}
	account := accountOf[user]
	if user == "dan" {
		u.mu.Lock()
		account = pickOf(append([]string{account}, u.guests...), who)
		u.mu.Unlock()
	}
	if m.script == "" {
		u.count(m.args[0])
		// Whether it gets GPUs in time is Slurm's matter.
		_ = u.command(ctx, user, append([]string{m.args[0], "-A", account, "-t", "1"}, m.args[1:]...)...)
		return
	}
	args := append([]string{"-A", account, "-t", "10", "-o", "/dev/null"}, m.args...)
	if u.site.sharers > 0 {
		args = sharing(args)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	id, err := u.site.Sbatch(ctx, user, m.script, args...)
	if _, bad := strconv.Atoi(id); err != nil || bad != nil {
		u.count("submission refused")
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts["submit"]++
	u.jobs = append(u.jobs, ours{id, user, account, time.Now(), m})
}

func pickOf[T any](of []T, n int) T { return of[n%len(of)] }

func (u *users) count(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts[what]++
}

// recent gives the job that is back places before the newest.
func (u *users) recent(back int) (ours, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.jobs) == 0 {
		return ours{}, false
	}
	return u.jobs[max(len(u.jobs)-1-back, 0)], true
}

// find gives the job with an id.
func (u *users) find(id string) (ours, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, j := range u.jobs {
		if j.id == id {
			return j, true
		}
	}
	return ours{}, false
}

// did notes a deed before it is tried: what was asked of Slurm may happen though nobody answered.
func (u *users) did(job, what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deeds = append(u.deeds, Deed{At: time.Now(), Job: job, What: what})
	u.counts[what]++
}

// change does one of changes to a job, as its user.
func (u *users) change(ctx context.Context, what string, j ours) {
	update := func(word string) []string { return []string{"scontrol", "update", "jobid=" + j.id, word} }
	if slices.Contains(hostile, what) && accountOf[j.user] == promised {
		return
	}
	var argv []string
	switch what {
	case "no requeue":
		argv = update("requeue=0")
	case "licence 0":
		argv = update("licenses=fairlease:0")
	case "node":
		argv = update("reqnodelist=v3")
	case "hint":
		argv = update("comment=saves=never,min-lease=1d,gpus=idle")
	case "cancel", "resubmit":
		u.did(j.id, "cancel")
		argv = []string{"scancel", j.id}
	case "hold", "release", "requeue":
		argv = []string{"scontrol", what, j.id}
	case "shorten":
		argv = update("timelimit=5")
	case "comment":
		argv = update("comment=saves=30s")
	case "licences":
		argv = update("licenses=")
	case "begin":
		argv = update("starttime=now+10")
	case "nice":
		argv = update("nice=100")
	}
	if what != "cancel" && what != "resubmit" {
		u.did(j.id, what)
	}
	if what == "requeue" && u.finished(ctx, j.id) {
		u.did(j.id, "revive")
	}
	// Slurm decides what becomes of it.
	err := u.command(ctx, j.user, argv...)
	if err == nil && slices.Contains(hostile, what) {
		u.mu.Lock()
		u.hostile[what]++
		u.mu.Unlock()
	}
	if what == "resubmit" {
		u.mu.Lock()
		who := slices.Index([]string{"alice", "bob", "carol", "x", "y", "dan"}, j.user)
		u.mu.Unlock()
		u.submit(ctx, j.manner, who)
	}
}

// finished tells whether a job, or a task of an array, is over.
func (u *users) finished(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := u.site.Exec(ctx, "root", "squeue", "-h", "-j", id, "-t", "CD,CA,F,TO,NF", "-o", "%i")
	return err == nil && strings.TrimSpace(out) != ""
}

// work does what the plan draws until the context ends. No more is submitted while much waits.
func (u *users) work(ctx context.Context, draw func() deed) {
	for ctx.Err() == nil {
		d := draw()
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.wait):
		}
		if d.what != "submit" {
			if j, ok := u.recent(d.back); ok {
				u.change(ctx, d.what, j)
			}
			continue
		}
		until(ctx, time.Hour, func() bool { return u.waiting(ctx) < 25 })
		if ctx.Err() == nil {
			u.submit(ctx, manners[d.kind], d.user)
		}
	}
}

// waiting counts the jobs that wait, without those that their users hold: these would end the load of a long run. Where Slurm does not tell,
// none do.
func (u *users) waiting(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := u.site.Exec(ctx, "root", "squeue", "-h", "-r", "-t", "PD", "-o", "%r")
	if err != nil {
		return 0
	}
	return strings.Count(out, "\n") - strings.Count(out, "JobHeldUser\n")
}

// meddles does to a job that is granted what the plan draws.
func (u *users) meddles(ctx context.Context, draw func() meddle) func(string) (before, after func()) {
	var mu sync.Mutex
	return func(job string) (before, after func()) {
		mu.Lock()
		m := draw()
		mu.Unlock()
		j, known := u.find(job)
		if m.what == "" || !known {
			return nil, nil
		}
		do := func() {
			u.count("in the grant window")
			u.change(ctx, m.what, j)
		}
		if m.before {
			return do, nil
		}
		return nil, do
	}
}

// over ends the lasting jobs.
func (u *users) over() error {
	return os.WriteFile(filepath.Join(u.site.Home("restd"), "over"), nil, 0o644)
}

// addAccount makes an account of guests in which dan works.
func (c *campaign) addAccount(ctx context.Context, who int) error {
	name := fmt.Sprintf("guest%d", who)
	if err := c.users.command(ctx, "root", "sacctmgr", "-iQ", "add", "account", name, "parent=guests"); err != nil {
		return err
	}
	if err := c.users.command(ctx, "root", "sacctmgr", "-iQ", "add", "user", "dan", "account="+name); err != nil {
		return err
	}
	c.users.mu.Lock()
	c.users.guests = append(c.users.guests, name)
	c.users.mu.Unlock()
	for range 2 { // work for it, at once
		c.users.submit(ctx, manners[2], 5+6*(len(c.users.guests)))
	}
	return nil
}

// deleteAccount deletes the oldest account of guests. Slurm refuses that while its jobs run: these the administrator cancels; those
// that wait are left with an account that is no more.
func (c *campaign) deleteAccount(ctx context.Context) error {
	c.users.mu.Lock()
	if len(c.users.guests) == 0 {
		c.users.mu.Unlock()
		return nil
	}
	name := c.users.guests[0]
	c.users.guests = c.users.guests[1:]
	for i := range c.users.jobs {
		if j := &c.users.jobs[i]; j.account == name {
			c.users.deeds = append(c.users.deeds, Deed{At: time.Now(), Job: j.id, What: "cancel"})
		}
	}
	c.users.mu.Unlock()
	var err error
	until(ctx, 30*time.Second, func() bool {
		_ = c.users.command(ctx, "root", "scancel", "-t", "R,S", "-A", name)
		err = c.users.command(ctx, "root", "sacctmgr", "-iQ", "delete", "account", name)
		return err == nil
	})
	if err != nil && strings.Contains(err.Error(), "ob") { // Job(s) active: then it stays
		c.say("account %s could not be deleted: %.200v", name, err)
		return nil
	}
	return err
}

// moveAccount makes an account of guests a tenant of its own, and moves it back.
func (c *campaign) moveAccount(ctx context.Context) (func(context.Context) error, error) {
	c.users.mu.Lock()
	guests := slices.Clone(c.users.guests)
	c.users.mu.Unlock()
	if len(guests) == 0 {
		if err := c.addAccount(ctx, 70000+len(c.users.jobs)); err != nil {
			return nothing, err
		}
		return c.moveAccount(ctx)
	}
	move := func(parent string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.users.command(ctx, "root", "sacctmgr", "-iQ", "modify", "account", guests[0], "set", "parent="+parent)
		}
	}
	return move("guests"), move("root")(ctx)
}
