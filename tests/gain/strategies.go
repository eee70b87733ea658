package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// strategy is a way to act within a user's rights.
type strategy struct {
	name string
	does string // for people
	note string // why a gain is left

	// A stream keeps depth jobs waiting, of the shapes in turn (nil = those of the honest user). In options %n is the number of the job.
	depth            int
	jobs             []shape
	args             []string
	script           func(seconds int) string // nil = sleeper
	waiting, running []string                 // words of scontrol update, once for each job that waits, and that runs
	act              func(context.Context, *player, queued)

	play     func(context.Context, *player)     // in place of the stream
	keeps    bool                               // its play outlasts the match
	rival    *strategy                          // of the other tenant; nil = honest
	before   func(context.Context, *player)     // in place of honest jobs before the match
	prepare  func(context.Context, *site) error // by administrators, before the daemon starts
	settings string                             // further lines of fairlease.yaml
	slices   bool                               // on a site with one GPU, whose jobs take turns
	among    int                                // so many of them, one is the strategist's; 0 = two
	pairs    bool                               // or run at the same time; they are judged by the steps that they do
	gangs    bool                               // its jobs are gangs on any nodes, which report their steps
}

// shape is the size of a job.
type shape struct {
	gpus, seconds int
	args          []string
}

func (x *strategy) shapes() []shape {
	if x.jobs == nil {
		return plain
	}
	return x.jobs
}

// plain are the honest user's jobs, of one to four terms.
var plain = []shape{{gpus: 1, seconds: 15}, {gpus: 2, seconds: 25}, {gpus: 1, seconds: 40}, {gpus: 4, seconds: 20}, {gpus: 1, seconds: 30}, {gpus: 2, seconds: 10}, {gpus: 1, seconds: 20}, {gpus: 2, seconds: 35}}

// honest is the strategy of the honest tenant, and of the row by which most others are judged.
var honest = strategy{name: "honest", does: "plain jobs of moderate length", depth: 10}

// honestLong is that by which strategies are judged whose jobs outlast the match: their GPUs never idle between two jobs.
var honestLong = strategy{name: "honest long", does: "long jobs that save", depth: 6, jobs: long, args: savesOn}

// honestTurns is that by which strategies are judged that take turns on a GPU with the honest tenant.
var honestTurns = strategy{name: "honest turns", does: "a long job that takes turns on a GPU with one of the other tenant", slices: true, play: live(1, modest, nil)}

// honestPairs is that by which strategies are judged whose jobs report wrong steps. At the same time the strategist's job would do more than in turns, and the
// other one less.
var honestPairs = inPairs("honest pairs", "a long job that reports its steps; beside that of the other tenant it does 90 % of them, and the other one 30 %", "$n")

// honestByJobs is the same under a preset that divides between jobs, by what they report.
var honestByJobs = byJobs(inPairs("honest pairs by jobs", "as honest pairs, with preset gavel:las-jobs", "$n"))

// honestThird is that by which strategies are judged that take turns on a GPU with two jobs of the honest tenant.
var honestThird = third("honest third", "a long job that takes turns on a GPU with two of the other tenant", nil)

// honestGangs is that by which strategies are judged whose gangs report wrong steps. In truth they are as fast on any nodes.
var honestGangs = anywhere("honest gangs", "long gangs of two GPUs on any nodes, which report their steps", 10, 10)

// references are the honest strategies.
var references = []strategy{honest, honestLong, honestTurns, honestThird, honestPairs, honestByJobs, honestGangs}

// isHonest tells whether others are judged by a strategy.
func (x *strategy) isHonest() bool {
	return slices.ContainsFunc(references, func(r strategy) bool { return r.name == x.name })
}

// judgedBy gives the honest strategy by which another one is judged: with jobs that are as long.
func (x *strategy) judgedBy() strategy {
	switch {
	case x.among == 3:
		return honestThird
	case x.pairs && x.settings != "":
		return honestByJobs
	case x.pairs:
		return honestPairs
	case x.slices:
		return honestTurns
	case x.gangs:
		return honestGangs
	}
	if x.keeps || x.play == nil && slices.ContainsFunc(x.shapes(), func(s shape) bool { return s.seconds == hour }) {
		return honestLong
	}
	return honest
}

// day is no strategy: both tenants work within limits, lists, licences and reservations. It shows how many grants fail.
var day = strategy{name: "day", does: "a working day with limits, lists, licences and reservations", depth: 14, jobs: within("nlp-a"), rival: &strategy{depth: 14, jobs: within("vision-a")},
	prepare: func(ctx context.Context, s *site) error {
		return s.orders(ctx, []string{"sacctmgr", "-iQ", "modify", "account", "nlp-a", "set", "GrpTRES=gres/gpu=3"}, []string{"sacctmgr", "-iQ", "modify", "account", "vision-a", "set", "GrpJobs=1"},
			[]string{"scontrol", "create", "reservation", "ReservationName=course", "Nodes=v1", "StartTime=now+2minutes", "Duration=2", "Accounts=vision"},
			[]string{"scontrol", "create", "reservation", "ReservationName=repair", "Nodes=v2", "StartTime=now+5minutes", "Duration=1", "Users=root", "Flags=MAINT,IGNORE_JOBS"})
	}}

// thousand is no strategy: it shows how many GPUs idle beside jobs that cannot start.
var thousand = strategy{name: "thousand", does: "1,000 jobs of a QOS that lets none run, and plain jobs", play: together(func(ctx context.Context, p *player) {
	p.submit(ctx, strategy{args: []string{"--array=0-999", "--qos=shut"}}, shape{gpus: 1, seconds: 30})
	<-ctx.Done()
}, strategy{depth: honest.depth + 1})} // the array is one that waits

// within gives the jobs of a working day, most of them plain, some in an account with limits.
func within(limited string) []shape {
	return append(append([]shape{}, plain...), shape{gpus: 1, seconds: 20, args: []string{"--qos=capped"}}, shape{gpus: 1, seconds: 30, args: []string{"-L", "matlab:3"}},
		shape{gpus: 2, seconds: 20, args: []string{"-A", limited}}, shape{gpus: 1, seconds: 20, args: []string{"-A", limited}},
		shape{gpus: 1, seconds: 20, args: []string{"-p", "small", "-t", "1"}}, shape{gpus: 2, seconds: 20, args: []string{"-p", "closed,low"}}, shape{gpus: 1, seconds: 15, args: []string{"-t", "5", "-p", "small"}},
		shape{gpus: 4, seconds: 20, args: []string{"-N2", "-p", "gpu,small"}}, shape{gpus: 2, seconds: 25, args: []string{"--deadline=now+10minutes"}}, shape{gpus: 2, seconds: 25, args: []string{"-x", "v3"}})
}

// hour long jobs outlast the match.
const hour = 3600

var (
	long    = []shape{{gpus: 4, seconds: hour}, {gpus: 2, seconds: hour}, {gpus: 1, seconds: hour}, {gpus: 1, seconds: hour}}
	hourly  = []string{"-t", "90"}
	savesOn = []string{"-t", "90", "--comment=saves=term", "--open-mode=append"}
)

// sleeper holds its GPUs for so long; exec, so that SIGTERM ends it at once.
func sleeper(seconds int) string { return fmt.Sprintf("#!/bin/bash\nexec sleep %d\n", seconds) }

// deaf holds its GPUs for so long, and ignores the signals that it can ignore.
func deaf(seconds int) string {
	return fmt.Sprintf("#!/bin/bash\ntrap '' TERM USR1 CONT\nfor i in $(seq %d); do sleep 1; done\n", seconds)
}

// atNotice holds its GPUs for so long, and requeues itself when it is told to leave.
func atNotice(seconds int) string {
	return fmt.Sprintf("#!/bin/bash\ntrap 'scontrol requeue $SLURM_JOB_ID' USR1\nfor i in $(seq %d); do sleep 1; done\n", seconds)
}

// atStart requeues itself as soon as it starts, in its first attempts; then it holds its GPUs for so long.
func atStart(attempts int) func(int) string {
	return func(seconds int) string {
		return fmt.Sprintf("#!/bin/bash\n[ ${SLURM_RESTART_COUNT:-0} -lt %d ] && scontrol requeue $SLURM_JOB_ID\nexec sleep %d\n", attempts, seconds)
	}
}

// agent requeues, so often, the job that has run longest.
func agent(every time.Duration) func(context.Context, *player, queued) {
	var mu sync.Mutex
	last := map[*player]time.Time{}
	return func(ctx context.Context, p *player, j queued) {
		p.mu.Lock()
		oldest := j.state == "RUNNING" && !slices.ContainsFunc(p.queue, func(q queued) bool {
			return q.user == j.user && q.state == "RUNNING" && q.ran > j.ran
		})
		p.mu.Unlock()
		mu.Lock()
		due := oldest && time.Since(last[p]) >= every
		if due {
			last[p] = time.Now()
		}
		mu.Unlock()
		if due {
			p.does(ctx, "scontrol", "requeue", j.id)
		}
	}
}

// with gives options before others.
func with(first []string, more ...string) []string {
	return append(append([]string{}, first...), more...)
}

// comment gives honest jobs with a hint.
func hinted(name, hint string) strategy {
	return strategy{name: "hint " + name, does: "plain jobs with --comment=" + hint, depth: 10, args: []string{"--comment=" + hint}}
}

// older has a player do something to each of its jobs that has run for eight seconds.
func older(argv ...string) func(context.Context, *player, queued) {
	return func(ctx context.Context, p *player, j queued) {
		if j.state == "RUNNING" && j.ran >= 8*time.Second {
			p.does(ctx, append(append([]string{}, argv...), j.id)...)
		}
	}
}

// strategies are all of them but honest, the most promising first.
var strategies = []strategy{
	{name: "requeue=0", does: "long jobs that save; once they run, scontrol update Requeue=0", depth: 6, jobs: long, args: savesOn, running: []string{"Requeue=0"}},
	{name: "no-requeue", does: "long jobs with --no-requeue", depth: 6, jobs: long, args: with(hourly, "--no-requeue")},
	{name: "contiguous", does: "long jobs with --contiguous", depth: 6, jobs: long, args: with(hourly, "--contiguous")},
	{name: "long", does: "long jobs that never save", depth: 6, jobs: long, args: hourly},
	{name: "licence 0", does: "plain jobs with -L fairlease:0", depth: 10, args: []string{"-L", "fairlease:0"}},
	{name: "sessions", does: "long salloc of whole nodes", play: sessions(4), keeps: true},
	{name: "limit flood", does: "60 jobs of a QOS that lets one run, and plain jobs", play: flood("--qos=capped")},
	{name: "tiny", does: "jobs of two seconds", depth: 20, jobs: []shape{{gpus: 1, seconds: 2}, {gpus: 2, seconds: 2}}},

	{name: "one session", does: "one long salloc of a node, and plain jobs", play: together(sessions(1), honest)},
	{name: "heterogeneous", does: "long heterogeneous jobs", depth: 4, jobs: []shape{{gpus: 2, seconds: hour, args: []string{":", "-t", "90", "--gres=gpu:2"}}}, args: hourly},
	{name: "licence flip", does: "waiting jobs get Licenses=fairlease:0", depth: 10, waiting: []string{"Licenses=fairlease:0"}},
	{name: "licence off", does: "waiting jobs get Licenses=", depth: 10, waiting: []string{"Licenses="}},
	{name: "no-requeue and opened", does: "long jobs with --no-requeue; while they wait, Licenses= and StartTime=now", depth: 6, jobs: long, args: with(hourly, "--no-requeue"), waiting: []string{"Licenses=", "StartTime=now"}},
	{name: "no-requeue opened again", does: "long jobs with --no-requeue; as long as they wait, Licenses= and StartTime=now several times a second", depth: 6, jobs: long,
		args: with(hourly, "--no-requeue"), act: func(ctx context.Context, p *player, j queued) {
			if j.state == "PENDING" {
				p.does(ctx, "scontrol", "update", "jobid="+j.id, "Licenses=", "StartTime=now")
			}
		}},
	{name: "restart unseen", does: "long jobs that save; after eight seconds a requeue, Requeue=0, Licenses= and StartTime=now at once", depth: 6, jobs: long, args: savesOn,
		act: func(ctx context.Context, p *player, j queued) {
			if j.state == "RUNNING" && j.ran >= 8*time.Second {
				p.does(ctx, "scontrol", "requeue", j.id)
				p.does(ctx, "scontrol", "update", "jobid="+j.id, "Requeue=0", "Licenses=", "StartTime=now")
			}
		}},
	{name: "long save opened", does: "long jobs with save-time=1d; while they wait, Licenses= and StartTime=now", depth: 6, jobs: long, args: []string{"-t", "90", "--comment=saves=term,save-time=1d", "--open-mode=append"},
		waiting: []string{"Licenses=", "StartTime=now"}},
	{name: "licence 2", does: "plain jobs with -L fairlease:2", depth: 10, args: []string{"-L", "fairlease:2"}},
	{name: "start now", does: "waiting jobs get StartTime=now", depth: 10, waiting: []string{"StartTime=now"}},
	{name: "licence in use", does: "60 jobs that ask for a licence in use, and plain jobs", play: flood("-L", "matlab:4")},
	{name: "forbidden flood", does: "60 jobs that a partition's lists and limits forbid, and plain jobs", play: flood("-p", "closed,small", "-t", "60")},
	{name: "hold and release", does: "waiting jobs are held and released all the time", depth: 10, act: turns("PENDING", "hold", "release")},
	{name: "begin later", does: "waiting jobs get StartTime=now+3 all the time", depth: 10, act: func(ctx context.Context, p *player, j queued) {
		if j.state == "PENDING" && j.reason != "BeginTime" {
			p.does(ctx, "scontrol", "update", "jobid="+j.id, "StartTime=now+3")
		}
	}},
	{name: "resubmit", does: "long jobs, cancelled after eight seconds and submitted anew", depth: 10, jobs: long, args: hourly, act: older("scancel")},
	{name: "requeue", does: "long jobs that their owner requeues every eight seconds", depth: 10, jobs: long, args: hourly, act: older("scontrol", "requeue")},
	{name: "requeuehold", does: "running jobs are requeued in hold, and released", depth: 10, jobs: long, args: hourly, act: func(ctx context.Context, p *player, j queued) {
		older("scontrol", "requeuehold")(ctx, p, j)
		if j.state == "PENDING" && strings.Contains(strings.ToLower(j.reason), "held") {
			p.does(ctx, "scontrol", "release", j.id)
		}
	}},
	{name: "requeue before the end", does: "long jobs that save, requeued just before their notice, two seconds before the term ends", depth: 8, jobs: long, args: savesOn,
		act: func(ctx context.Context, p *player, j queued) {
			if left := p.term - time.Duration(time.Now().UnixNano())%p.term; j.state == "RUNNING" && j.ran >= 4*time.Second && left < 3500*time.Millisecond && left > 1500*time.Millisecond {
				p.does(ctx, "scontrol", "requeue", j.id)
			}
		}},
	{name: "requeue at the notice", does: "long jobs that save and requeue themselves when their notice comes", depth: 6, jobs: long, args: []string{"-t", "90", "--comment=saves=notice", "--open-mode=append"}, script: atNotice},
	{name: "requeue at the start", does: "six jobs that requeue themselves as soon as they start, again and again; plain jobs", play: together(func(ctx context.Context, p *player) {
		for range 6 {
			p.submit(ctx, strategy{script: atStart(1 << 20), args: with(hourly, "-J", "again")}, shape{gpus: 4, seconds: hour})
		}
		<-ctx.Done()
	}, strategy{depth: honest.depth + 6})},
	{name: "requeue three times", does: "long jobs that requeue themselves as soon as they start, three times; then they stay", depth: 6, jobs: long, args: savesOn, script: atStart(3)},
	{name: "agent", does: "long jobs that save; an agent of the user requeues the one that has run longest, every three seconds", depth: 8, jobs: long, args: savesOn, act: agent(3 * time.Second)},
	{name: "expedite", does: "long jobs that save, with --requeue=expedite, requeued every eight seconds (Slurm 26.05)", depth: 8, jobs: long, args: with(savesOn, "--requeue=expedite"), act: older("scontrol", "requeue")},
	{name: "expedite at the start", does: "long jobs that save, with --requeue=expedite; they requeue themselves as soon as they start, three times (Slurm 26.05)", depth: 6, jobs: long,
		args: with(savesOn, "--requeue=expedite"), script: atStart(3)},
	{name: "expedite and requeue=0", note: "its jobs are like those of no-requeue then; bind.max lets them have one of 16 GPUs beyond its due", does: "long jobs that save, with --requeue=expedite; after eight seconds a requeue, and Requeue=0 at once (Slurm 26.05)", depth: 6, jobs: long, args: with(savesOn, "--requeue=expedite"),
		act: func(ctx context.Context, p *player, j queued) {
			if j.state == "RUNNING" && j.ran >= 8*time.Second {
				p.does(ctx, "scontrol", "requeue", j.id)
				p.does(ctx, "scontrol", "update", "jobid="+j.id, "Requeue=0")
			}
		}},
	{name: "array", does: "an array of 1,000 tasks of one GPU", play: arrays(20, "0-999")},
	{name: "array of tiny", does: "an array of 1,000 tasks of two seconds", play: arrays(2, "0-999")},
	{name: "array %8", does: "three arrays of 300 tasks, eight at a time", play: arrays(20, "0-299%8", "0-299%8", "0-299%8")},
	{name: "chain", does: "chains of dependent jobs", depth: 16, args: []string{"-J", "chain"}, jobs: []shape{{gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "a"}}, {gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "b"}}, {gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "c"}},
		{gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "d"}}, {gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "e"}}, {gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "f"}}, {gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "g"}}, {gpus: 2, seconds: 10, args: []string{"-d", "singleton", "-J", "h"}}}},
	{name: "deadline", does: "plain jobs with --deadline in three minutes", depth: 10, args: []string{"--deadline=now+3minutes"}},
	{name: "accounts", does: "plain jobs in three accounts of the tenant in turn", depth: 15, jobs: inAccounts("nlp", "nlp-a", "nlp-b")},
	{name: "two users", does: "two users of the tenant, each with plain jobs", play: func(ctx context.Context, p *player) {
		var hands sync.WaitGroup
		hands.Go(func() { p.stream(ctx, honest) })
		hands.Go(func() { p.plays("carol", honest)(ctx) })
		hands.Wait()
	}},
	{name: "partitions", does: "plain jobs with -p gpu,low", depth: 10, args: []string{"-p", "gpu,low"}},
	{name: "partitions of sub-accounts", does: "plain jobs with -p gpu,low in two sub-accounts", depth: 10, args: []string{"-p", "gpu,low"}, jobs: inAccounts("nlp-a", "nlp-b")},
	{name: "partition flip", does: "waiting jobs get Partition=low", depth: 10, waiting: []string{"Partition=low"}},
	{name: "request flip", does: "waiting jobs of one GPU get TresPerNode=gres/gpu:4", depth: 10, jobs: []shape{{gpus: 1, seconds: 40}}, waiting: []string{"TresPerNode=gres/gpu:4"}},
	{name: "request to and fro", does: "long jobs with --no-requeue; waiting ones ask for one GPU and for four in turn", depth: 6, jobs: []shape{{gpus: 1, seconds: hour}}, args: with(hourly, "--no-requeue"), act: flips("TresPerNode=gres/gpu:4", "TresPerNode=gres/gpu:1")},
	{name: "features flip", does: "waiting jobs get Features=fast and Features=slow in turn", depth: 10, act: flips("Features=fast", "Features=slow")},
	{name: "QOS flip", does: "jobs get QOS=capped and QOS=normal in turn", depth: 10, act: flips("QOS=capped", "QOS=normal")},
	{name: "name flip", does: "jobs get another JobName and WCKey all the time", depth: 10, act: func(ctx context.Context, p *player, j queued) {
		p.does(ctx, "scontrol", "update", "jobid="+j.id, fmt.Sprintf("JobName=j%d", time.Now().Unix()), fmt.Sprintf("WCKey=w%d", time.Now().Unix()))
	}},
	{name: "dependency flip", does: "waiting jobs get Dependency=singleton and none in turn", depth: 10, act: flips("Dependency=singleton", "Dependency=")},
	{name: "minimum flip", does: "long jobs; waiting ones get TimeMin=1", depth: 6, jobs: long, args: hourly, waiting: []string{"TimeMin=1"}},
	{name: "sessions and opened", does: "long salloc of whole nodes; while they wait, Licenses= and StartTime=now", keeps: true, play: func(ctx context.Context, p *player) {
		var hands sync.WaitGroup
		hands.Go(func() { sessions(4)(ctx, p.beside()) })
		hands.Go(func() { p.stream(ctx, strategy{waiting: []string{"Licenses=", "StartTime=now"}}) })
		hands.Wait()
	}},
	{name: "brackets", does: "long jobs with brackets in --constraint", depth: 6, jobs: long, args: with(hourly, "--constraint=[fast|slow]")},
	{name: "account flip", does: "waiting jobs get Account=nlp-a", depth: 10, waiting: []string{"Account=nlp-a"}},
	{name: "CPU hogs", does: "jobs without GPUs take 14 of 16 CPUs of each node; plain jobs", play: together(hogs("-n1", "-c14"), honest)},
	{name: "memory hogs", does: "jobs without GPUs take most memory of each node; plain jobs", play: together(hogs("--mem=62000"), honest)},
	{name: "GPU jobs with memory", does: "plain jobs that ask for all memory of a node", depth: 10, args: []string{"--mem=63000"}},
	{name: "exclusive", does: "plain jobs with --exclusive", depth: 10, args: []string{"--exclusive"}},
	{name: "exclusive=user", does: "long jobs with --exclusive=user", depth: 6, jobs: long, args: with(hourly, "--exclusive=user")},
	{name: "shards", does: "long jobs that ask for parts of GPUs; plain jobs", play: together(func(ctx context.Context, p *player) {
		p.stream(ctx, strategy{depth: 2, jobs: []shape{{seconds: hour, args: []string{"--gres=shard:1"}}}, args: hourly})
	}, honest)},
	{name: "deaf", does: "long jobs that ignore SIGTERM", depth: 6, jobs: long, args: savesOn, script: deaf},
	{name: "suspend", does: "running jobs are suspended and resumed by their owner (Slurm 26.05)", depth: 10, jobs: long, args: savesOn, act: turns("", "suspend", "resume")},
	{name: "gangs", does: "gangs of two and four nodes beside jobs of one GPU", depth: 8, jobs: []shape{{gpus: 4, seconds: 20, args: []string{"-N4"}}, {gpus: 1, seconds: 30}, {gpus: 4, seconds: 20, args: []string{"-N2"}}, {gpus: 1, seconds: 30}}},
	{name: "range of nodes", does: "jobs with -N1-4", depth: 8, jobs: []shape{{gpus: 4, seconds: 30, args: []string{"-N1-4"}}}},
	{name: "any width", does: "long jobs with --gpus=4 and -N1-4 or -N2-4", depth: 6, jobs: []shape{{seconds: hour, args: []string{"--gpus=4", "-N1-4"}}, {seconds: hour, args: []string{"--gpus=4", "-N2-4"}}}, args: hourly},
	{name: "per socket", does: "long jobs with --gpus-per-socket", depth: 6, jobs: []shape{{seconds: hour, args: []string{"--gpus-per-socket=4", "--sockets-per-node=1"}}}, args: hourly},
	{name: "node info", does: "plain jobs with --extra-node-info", depth: 10, args: []string{"-B", "1"}},
	{name: "wider", does: "waiting jobs get NumNodes=4", depth: 8, jobs: []shape{{gpus: 4, seconds: 40}}, waiting: []string{"NumNodes=4-4"}},
	{name: "kind trained", does: "many short jobs of a kind, then long ones of it", depth: 6, jobs: long, args: with(hourly, "--comment=kind=short"), before: func(ctx context.Context, p *player) {
		p.stream(ctx, strategy{depth: 20, jobs: []shape{{gpus: 4, seconds: 2}, {gpus: 2, seconds: 2}, {gpus: 1, seconds: 2}}, args: []string{"--comment=kind=short"}})
	}},
	{name: "kinds", does: "each job is of a kind of its own", depth: 10, args: []string{"--comment=kind=k%n", "-J", "j%n"}},
	hinted("saves=never", "saves=never"),
	hinted("saves=1s", "saves=1s"),
	hinted("save-time", "saves=notice,save-time=1d,signal=none"),
	hinted("min-lease", "min-lease=1d"),
	{name: "hint flip", does: "long jobs that save; once they run, Comment=saves=never", depth: 6, jobs: long, args: savesOn, running: []string{"Comment=saves=never"}},
	{name: "idle flip", does: "long jobs with gpus=idle; once they run, Comment=", depth: 6, jobs: long, args: with(hourly, "--comment=gpus=idle,saves=term"), running: []string{"Comment="}},
	{name: "no save", does: "long jobs that say that they save, and do not", depth: 6, jobs: long, args: savesOn},
	{name: "one minute", does: "plain jobs with a time limit of one minute", depth: 10, args: []string{"-t", "1"}},
	{name: "limit flip", does: "long jobs; once they run, TimeLimit=1", depth: 10, jobs: long, args: hourly, running: []string{"TimeLimit=1"}},
	{name: "time-min", does: "long jobs with --time-min=1", depth: 6, jobs: long, args: with(hourly, "--time-min=1")},
	{name: "begin mixed", does: "jobs with --begin now, in the past and ahead", depth: 10, jobs: []shape{{gpus: 2, seconds: 20, args: []string{"--begin=now"}}, {gpus: 2, seconds: 20, args: []string{"--begin=now+12"}}, {gpus: 2, seconds: 20, args: []string{"--begin=2020-01-01"}}}},
	{name: "node list", does: "jobs that name the nodes in turn", depth: 12, jobs: []shape{{gpus: 2, seconds: 30, args: []string{"-w", "v1"}}, {gpus: 2, seconds: 30, args: []string{"-w", "v2"}}, {gpus: 2, seconds: 30, args: []string{"-w", "v3"}}, {gpus: 2, seconds: 30, args: []string{"-w", "v4"}}}},
	{name: "node list flip", does: "waiting jobs get another ReqNodeList all the time", depth: 10, act: func(ctx context.Context, p *player, j queued) {
		if j.state == "PENDING" {
			p.does(ctx, "scontrol", "update", "jobid="+j.id, fmt.Sprintf("ReqNodeList=v%d", 1+time.Now().Unix()%4))
		}
	}},
	{name: "nice", does: "waiting jobs get Nice=1000", depth: 10, waiting: []string{"Nice=1000"}},
	{name: "oversubscribe", does: "plain jobs with --oversubscribe", depth: 10, args: []string{"--oversubscribe"}},
	{name: "coordinator", does: "tenants.level 2: six sub-accounts with fairshare=parent", depth: 18, jobs: inAccounts("c1", "c2", "c3", "c4", "c5", "c6", "nlp-a"), settings: "tenants: {level: 2}\n", prepare: coordinator},
	{name: "reservation", does: "a node is reserved for the account; plain jobs without --reservation", depth: 10, prepare: course},
	{name: "turns resumed", does: "a long job that takes turns; its owner resumes it whenever it is suspended (Slurm 26.05)", slices: true, play: live(1, modest, resumed(0))},
	{name: "turns begun early", does: "a long job that takes turns; its owner resumes it once it has been suspended for most of the other's turn (Slurm 26.05)", slices: true, play: live(1, modest, resumed(25*time.Second))},
	{name: "turns kept", does: "a long job that takes turns; its owner suspends it at the end of each, and resumes it after a moment (Slurm 26.05)", slices: true, play: live(1, modest, kept(30*time.Second))},
	{name: "turns requeued", does: "a long job that takes turns; its owner requeues it whenever it is suspended", slices: true, play: live(1, modest, requeued)},
	{name: "many turns", does: "20 long jobs that take turns", slices: true, play: live(20, modest, nil)},
	{name: "turns on little memory", does: "a long job that takes turns and says that it needs 1 MB of GPU memory", slices: true, play: live(1, "1m", nil)},
	third("third resumed", "as turns resumed, with two jobs of the other tenant (Slurm 26.05)", resumed(0)),
	third("third kept", "as turns kept, with two jobs of the other tenant (Slurm 26.05)", kept(time.Minute)),
	third("third requeued", "as turns requeued, with two jobs of the other tenant", requeued),
	inPairs("pairs that boast", "a long job that reports its steps, three times as many while both run", "$((n+2*both))"),
	inPairs("pairs that understate", "a long job that reports its steps, a third of them while it has the GPU to itself", "$((n/3+both*2/3))"),
	inPairs("pairs that fall silent", "a long job that reports its steps until both have run once", "$([ $both = 0 ] && echo $n)"),
	inPairs("pairs that belittle", "a long job that reports its steps, a quarter fewer while both run", "$((n-both/4))"),
	byJobs(inPairs("pairs that boast by jobs", "as pairs that boast, with preset gavel:las-jobs", "$((n+2*both))")),
	byJobs(inPairs("pairs that understate by jobs", "as pairs that understate, with preset gavel:las-jobs", "$((n/3+both*2/3))")),
	byJobs(inPairs("pairs that belittle by jobs", "as pairs that belittle, with preset gavel:las-jobs", "$((n-both/4))")),
	anywhere("scattering looks slow", "long gangs of two GPUs on any nodes, which report a tenth of their steps on more nodes than they need", 10, 1),
	anywhere("scattering looks fast", "long gangs of two GPUs on any nodes, which report a tenth of their steps on as few nodes as they need", 1, 10),
	{name: "reservation flip", does: "a node is reserved for the account; long jobs that save get ReservationName=course once they run", depth: 6, jobs: long, args: savesOn, running: []string{"ReservationName=course"}, prepare: course},
}

// course reserves a node for the strategist's account.
func course(ctx context.Context, s *site) error {
	return s.orders(ctx, []string{"scontrol", "create", "reservation", "ReservationName=course", "Nodes=v1", "StartTime=now", "Duration=120", "Accounts=nlp"})
}

// together plays beside a stream.
func together(first func(context.Context, *player), x strategy) func(context.Context, *player) {
	return func(ctx context.Context, p *player) {
		var hands sync.WaitGroup
		hands.Go(func() { first(ctx, p.beside()) })
		hands.Go(func() { p.stream(ctx, x) })
		hands.Wait()
	}
}

// sessions keeps so many allocations of whole nodes, which outlast the match.
func sessions(count int) func(context.Context, *player) {
	return func(ctx context.Context, p *player) {
		var hands sync.WaitGroup
		for range count {
			hands.Go(func() {
				for ctx.Err() == nil {
					if _, err := p.Exec(ctx, p.user, "salloc", "--no-shell", "-t", "90", "--gres=gpu:4"); err == nil {
						<-ctx.Done()
					}
					wait(ctx, time.Second)
				}
			})
		}
		hands.Wait()
	}
}

// flood is 60 jobs with options for which they cannot start, and plain jobs.
func flood(args ...string) func(context.Context, *player) {
	return together(func(ctx context.Context, p *player) {
		for range 60 {
			p.submit(ctx, strategy{args: append([]string{"-t", "90", "-J", "flood"}, args...)}, shape{gpus: 1, seconds: 30})
		}
		<-ctx.Done()
	}, strategy{name: honest.name, depth: 70})
}

// arrays submits arrays of jobs with one GPU, and again once few of their tasks are left.
func arrays(seconds int, ranges ...string) func(context.Context, *player) {
	return func(ctx context.Context, p *player) {
		for ctx.Err() == nil {
			if waits := p.mine(ctx); len(waits) < len(ranges) {
				for _, r := range ranges {
					p.submit(ctx, strategy{args: []string{"--array=" + r}}, shape{gpus: 1, seconds: seconds})
				}
			}
			wait(ctx, 3*time.Second)
		}
	}
}

// hogs keeps a job without GPUs on each node.
func hogs(args ...string) func(context.Context, *player) {
	return func(ctx context.Context, p *player) {
		for n := range nodes {
			p.submit(ctx, strategy{args: append([]string{"-t", "90", "-w", fmt.Sprintf("v%d", n+1)}, args...)}, shape{seconds: hour})
		}
		<-ctx.Done()
	}
}

// turns does one thing after the other to each job, a look each; to those of a state, "" = those that run or are suspended.
func turns(state string, verbs ...string) func(context.Context, *player, queued) {
	at := map[string]int{}
	var mu sync.Mutex
	return func(ctx context.Context, p *player, j queued) {
		if j.state != state && (state != "" || j.state == "PENDING") {
			return
		}
		mu.Lock()
		key := p.Name + "/" + j.id
		n := at[key]
		at[key]++
		mu.Unlock()
		p.does(ctx, "scontrol", verbs[n%len(verbs)], j.id)
	}
}

// flips updates waiting jobs by one word after the other, a look each.
func flips(words ...string) func(context.Context, *player, queued) {
	return func(ctx context.Context, p *player, j queued) {
		if j.state == "PENDING" {
			p.does(ctx, "scontrol", "update", "jobid="+j.id, words[time.Now().Unix()%int64(len(words))])
		}
	}
}

// modest is the GPU memory of jobs that may take turns on their GPUs of 32 GB.
const modest = "14g"

// live keeps so many long jobs that may take turns, each with so much GPU memory, and does something to each at every look.
func live(count int, memory string, act func(context.Context, *player, queued)) func(context.Context, *player) {
	return alive(count, strategy{args: turning(memory)}, act)
}

// turning are the options of a job that may take turns.
func turning(memory string) []string {
	return []string{"-t", "90", "--requeue", "--open-mode=append", "--comment=share=yes,mem.v100=" + memory + ",saves=term"}
}

// alive is live with jobs of a strategy.
func alive(count int, x strategy, act func(context.Context, *player, queued)) func(context.Context, *player) {
	return func(ctx context.Context, p *player) {
		for ctx.Err() == nil {
			jobs := p.mine(ctx)
			for _, j := range jobs {
				if act != nil {
					act(ctx, p, j)
				}
			}
			for n := len(jobs); n < count && ctx.Err() == nil; n++ {
				p.submit(ctx, x, shape{gpus: 1, seconds: hour})
			}
		}
	}
}

// stepsASecond are those of a job of a pair that has the GPU to itself.
const stepsASecond = 20

// steps is a job that counts its steps in a file. Beside another one it does so many of them, in percent. It reports what an expression of the shell gives, by
// all its steps (n) and those beside another job (both); nothing where that is empty.
func steps(percent int, reports string) func(int) string {
	return func(int) string {
		return fmt.Sprintf(`#!/bin/bash
n=0 both=0 own=/tmp/beat-$SLURM_JOB_ID
[ ! -s steps-$SLURM_JOB_ID ] || read -r n <steps-$SLURM_JOB_ID
while sleep 0.5; do
  add=%d
  echo $EPOCHSECONDS >$own
  for other in /tmp/beat-*; do
    if [ $other != $own ] && read -r at <$other && [ $((EPOCHSECONDS-at)) -le 2 ]; then add=%d both=$((both+%[2]d)); fi
  done
  n=$((n+add)) told=%[3]s
  echo $n >steps && mv steps steps-$SLURM_JOB_ID
  if [ -n "$told" ]; then echo '{"job":"'$SLURM_JOB_ID'","steps":'$told'}' >report && mv report $SLURM_JOB_ID.json; fi
done
`, stepsASecond/2, stepsASecond/2*percent/100, reports)
	}
}

// inPairs is a strategy of a job that reports its steps, beside an honest one that does less than half of them while both run.
func inPairs(name, does, reports string) strategy {
	job := func(percent int, reports string) func(context.Context, *player) {
		return alive(1, strategy{args: turning(modest), script: steps(percent, reports)}, nil)
	}
	return strategy{name: name, does: does, slices: true, pairs: true, play: job(90, reports), rival: &strategy{play: job(30, "$n")}}
}

// anywhere is a strategy of gangs on any nodes, which report so many steps a second on one node, and so many on more. Before the match they ask for one node or for
// two, so that both speeds are known.
func anywhere(name, does string, one, more int) strategy {
	gangs := strategy{name: name, depth: 8, args: []string{"-t", "90", "-n2", "--gpus=2", "--comment=saves=term,kind=gang", "--open-mode=append"}, script: func(int) string {
		return fmt.Sprintf(`#!/bin/bash
n=0 add=%d
[ $SLURM_JOB_NUM_NODES = 1 ] || add=%d
[ ! -s steps-$SLURM_JOB_ID ] || read -r n <steps-$SLURM_JOB_ID
while sleep 1; do
  n=$((n+add))
  echo $n >steps-$SLURM_JOB_ID
  echo '{"job":"'$SLURM_JOB_ID'","steps":'$n'}' >report-$SLURM_JOB_ID && mv report-$SLURM_JOB_ID $SLURM_JOB_ID.json
done
`, one, more)
	}}
	first := gangs
	first.jobs = []shape{{seconds: hour, args: []string{"-N1"}}, {seconds: hour, args: []string{"-N2"}}}
	gangs.jobs = []shape{{seconds: hour}}
	gangs.gangs, gangs.does, gangs.before = true, does, func(ctx context.Context, p *player) { p.stream(ctx, first) }
	return gangs
}

// lasting does something to each job, by the time for which it has been in its state.
func lasting(act func(ctx context.Context, p *player, j queued, lasts time.Duration)) func(context.Context, *player, queued) {
	var mu sync.Mutex
	type state struct {
		name  string
		since time.Time
	}
	of := map[string]state{}
	return func(ctx context.Context, p *player, j queued) {
		mu.Lock()
		was := of[p.Name+"/"+j.id]
		if was.name != j.state {
			was = state{j.state, time.Now()}
			of[p.Name+"/"+j.id] = was
		}
		mu.Unlock()
		act(ctx, p, j, time.Since(was.since))
	}
}

// resumed resumes jobs that have been suspended for so long.
func resumed(after time.Duration) func(context.Context, *player, queued) {
	return lasting(func(ctx context.Context, p *player, j queued, lasts time.Duration) {
		if j.state == "SUSPENDED" && lasts >= after {
			p.does(ctx, "scontrol", "resume", j.id)
		}
	})
}

// kept suspends a job at the end of its turn, and resumes it after a moment.
func kept(turn time.Duration) func(context.Context, *player, queued) {
	return lasting(func(ctx context.Context, p *player, j queued, lasts time.Duration) {
		switch {
		case j.state == "RUNNING" && lasts >= turn-4*time.Second:
			p.does(ctx, "scontrol", "suspend", j.id)
		case j.state == "SUSPENDED" && lasts >= 3*time.Second && lasts < 6*time.Second:
			p.does(ctx, "scontrol", "resume", j.id)
		}
	})
}

// requeued requeues a job that is suspended.
func requeued(ctx context.Context, p *player, j queued) {
	if j.state == "SUSPENDED" {
		p.does(ctx, "scontrol", "requeue", j.id)
	}
}

// third is a strategy of a job that takes turns with two of the honest tenant.
func third(name, does string, act func(context.Context, *player, queued)) strategy {
	const little = "9g" // three fit on a GPU
	return strategy{name: name, does: does, slices: true, among: 3, play: live(1, little, act), rival: &strategy{play: live(2, little, nil)}}
}

// byJobs has GPUs divided between jobs.
func byJobs(x strategy) strategy {
	x.settings = "preset: gavel:las-jobs\n"
	return x
}

// inAccounts gives the plain shapes in accounts in turn.
func inAccounts(accounts ...string) []shape {
	var out []shape
	for i := range len(plain) * len(accounts) {
		s := plain[i%len(plain)]
		s.args = []string{"-A", accounts[i%len(accounts)]}
		out = append(out, s)
	}
	return out
}

// coordinator has the strategist, as the coordinator of its account, make sub-accounts that pass its shares on.
func coordinator(ctx context.Context, s *site) error {
	if _, err := s.Exec(ctx, "root", "sacctmgr", "-iQ", "add", "coordinator", "account=nlp", "names=alice"); err != nil {
		return err
	}
	for i := range 6 {
		name := fmt.Sprintf("c%d", i+1)
		if _, err := s.Exec(ctx, "alice", "sacctmgr", "-iQ", "add", "account", name, "parent=nlp", "fairshare=parent"); err != nil {
			return err
		}
		if _, err := s.Exec(ctx, "alice", "sacctmgr", "-iQ", "add", "user", "alice", "account="+name); err != nil {
			return err
		}
	}
	return nil
}

// orders runs commands as root.
func (s *site) orders(ctx context.Context, commands ...[]string) error {
	for _, argv := range commands {
		if _, err := s.Exec(ctx, "root", argv...); err != nil {
			return err
		}
	}
	return nil
}
