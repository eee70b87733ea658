package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// profiling is what a profile of a kind is asked for.
type profiling struct {
	kind, script   string
	args           []string
	account        string
	partitions     []string
	models         []string
	gpus, minutes  int
	wait, idle, do bool // for the jobs' end; for idle GPUs; at all
	login          slurm.Login
}

// trial is one GPU model, and the job that measures it.
type trial struct {
	Model     string        `json:"model"`
	Partition string        `json:"partition,omitempty"`
	Job       string        `json:"job,omitempty"`
	State     string        `json:"state"` // skipped, refused (by sbatch), submitted, or Slurm's
	Nodes     string        `json:"nodes,omitempty"`
	Profile   *trialProfile `json:"profile,omitempty"` // nil = not measured
	Note      string        `json:"note,omitempty"`    // why, or what else is to be said

	nodes, perNode int // GPUs of the gang
	id             cluster.JobID
	over           bool
	began          cluster.Instant // when it was submitted
	ended          cluster.Instant
	exit, output   string
	tenant         string // as far as it is known
}

// trialProfile is what was measured.
type trialProfile struct {
	Rate    float64         `json:"rate"` // steps a second of the whole gang
	Speedup float64         `json:"speedup"`
	Samples int             `json:"samples"`
	Spread  float64         `json:"spread"`
	At      cluster.Instant `json:"at"`
}

func (p *program) profile() *cobra.Command {
	var l listing
	o := profiling{}
	var dry, noWait bool
	c := &cobra.Command{Use: "profile KIND [--account NAME] [--gpus N] [--minutes N] SCRIPT [-- ARGUMENT ...]",
		Short: "measure a kind of job: run a short one once per GPU model, on idle GPUs", Args: cobra.ArbitraryArgs,
		Long: `Run a batch script for a few minutes on each GPU model that has idle GPUs, and show how fast it was (OEF §4.1).
The jobs are submitted with sbatch as whoever asks, one a model, with a time limit, and with
--comment=kind=KIND,gpus=idle: what they report counts for that kind, and fairlease grants them idle GPUs only. Nobody's
lease ends for them, and they hold what they got for --minutes at most.

The script must report its progress (contrib/python has a library), twice at least, ten seconds apart; it need not
end by itself. What it reports is read in the journal, where that can be reached and a policy divides GPU models,
else in the folder FAIRLEASE_PROGRESS_FOLDER or models.progress.folder, of which the jobs are told.

  STEPS/S   of the whole gang
  SPEEDUP   over the slowest model measured
  SAMPLES   reports that it is the average of, in the journal with those of earlier jobs of the kind
  SPREAD    standard deviation of these
  NOTE      why a model was not measured

An interrupt cancels the jobs that have not started. Exit code 1 when a model was not measured.`,
		Example: "  fairlease profile bert --account nlp --gpus 4 --minutes 5 train.sh -- --batch-size 32\n  fairlease profile bert train.sh --models v100,k80 --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return &failure{code: exitUsage, what: "fairlease profile needs a kind and a batch script", next: "see fairlease profile --help"}
			}
			o.kind, o.script, o.args = args[0], args[1], args[2:]
			o.wait, o.do = !noWait, !dry
			if err := o.check(); err != nil {
				return err
			}
			return p.measure(c.Context(), l, &o)
		}}
	c.Flags().StringVarP(&o.account, "account", "A", "", "Slurm `ACCOUNT` of the jobs (default: the user's)")
	c.Flags().StringSliceVar(&o.partitions, "partition", nil, "`PARTITIONS` to look for idle GPUs in (default: those of the configuration)")
	c.Flags().StringSliceVar(&o.models, "models", nil, "measure these GPU `MODELS` only")
	c.Flags().IntVar(&o.gpus, "gpus", 1, "`N` GPUs for each job")
	c.Flags().IntVar(&o.minutes, "minutes", 5, "time limit of each job, `N` minutes")
	c.Flags().BoolVar(&o.idle, "wait-for-idle", false, "also submit jobs for models without idle GPUs; they wait")
	c.Flags().BoolVar(&noWait, "no-wait", false, "submit the jobs, and do not wait for what they report")
	c.Flags().BoolVar(&dry, "dry-run", false, "show what would be submitted")
	l.flags(c)
	return c
}

// check refuses what no job can be made of.
func (o *profiling) check() error {
	if err := profile.CheckName(o.kind); err != nil {
		return &failure{code: exitUsage, what: err.Error(), next: "the tenant is that of --account"}
	}
	if o.gpus < 1 || o.minutes < 1 {
		return usage(fmt.Sprintf("--gpus=%d --minutes=%d: a job needs one at least of each", o.gpus, o.minutes))
	}
	text, err := os.ReadFile(o.script)
	if err == nil && !bytes.HasPrefix(text, []byte("#!")) {
		err = errors.New("sbatch takes no script that does not begin with #!, as in #!/bin/bash")
	}
	if at := adds.FindString(string(text)); err == nil && at != "" {
		err = fmt.Errorf("it has %q, which counts beside what is asked for here", strings.TrimSpace(at))
	}
	if err != nil {
		return &failure{code: exitUsage, what: "the batch script cannot be used", err: err, next: "fairlease profile KIND SCRIPT; its arguments stand behind --"}
	}
	return nil
}

// adds finds a line by which a script asks sbatch for what --gres does not replace: other GPUs, or many jobs.
var adds = regexp.MustCompile(`(?m)^#SBATCH(\s.*)?\s(--gpus|-G|--array|-a).*$`)

// measure submits the jobs, waits for them and shows what they did.
func (p *program) measure(ctx context.Context, l listing, o *profiling) error {
	cfg, err := p.userConfig()
	if err != nil {
		return err
	}
	if len(o.partitions) == 0 {
		o.partitions = cfg.Partitions
	}
	nodes, err := o.login.Nodes(ctx)
	if err != nil {
		return p.noLogin(ctx, err)
	}
	trials, err := o.trials(nodes)
	if err != nil {
		return err
	}
	o.login.Env = []string{"FAIRLEASE_PROGRESS_EVERY=" + strconv.Itoa(max(int(cfg.Models.Progress.Every.Span()/cluster.Second), 1))}
	hear := func(context.Context, []*trial) (cluster.Instant, error) { return p.now(), nil }
	if o.wait {
		heard, err := p.ears(ctx, cfg, o)
		if err != nil {
			return err
		}
		defer heard.close()
		hear = heard.hear
		o.login.Env = append(o.login.Env, heard.env...)
	}
	if !o.do {
		for _, x := range trials {
			if x.State == "" {
				line := slices.Concat([]string{"env"}, o.login.Env, []string{"sbatch"}, o.sbatch(x))
				p.printf("%s\n", shellWords(line...))
			} else {
				p.printf("# %s: %s\n", x.Model, x.Note)
			}
		}
		return nil
	}
	if err := p.submit(ctx, o, trials); err != nil {
		return err
	}
	if o.wait || ctx.Err() != nil {
		p.await(ctx, o, trials, hear)
	}
	return p.measured(ctx, l, o, trials)
}

// userConfig reads the configuration as far as the user may: the site's may be for
// administrators only.
func (p *program) userConfig() (*config.Config, error) {
	c, err := config.Load(p.file, p.env)
	if errors.Is(err, fs.ErrPermission) && p.file == "" {
		c, err = config.Parse("", nil, p.env)
	}
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}

// noLogin says that Slurm's commands do not work here.
func (p *program) noLogin(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &failure{code: exitAbsent, what: "Slurm cannot be asked", err: err,
		next: "run it where sbatch and scontrol work, as on a login node; check that slurmctld runs"}
}

// trials makes one of each GPU model of the partitions, and says of which have no idle GPUs.
func (o *profiling) trials(nodes []slurm.UserNode) ([]*trial, error) {
	in := map[string][]slurm.UserNode{} // by model
	for _, n := range nodes {
		if slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(o.partitions, p) }) {
			for _, g := range n.GPUs {
				in[g.Model] = append(in[g.Model], n)
			}
		}
	}
	if len(in) == 0 {
		return nil, &failure{code: exitNo, what: "no node of partition " + strings.Join(o.partitions, ", ") + " has GPUs", next: "name others with --partition; sinfo has them"}
	}
	models := slices.Compact(slices.Sorted(slices.Values(o.models)))
	if len(models) == 0 {
		models = sortedNames(in)
	}
	var out []*trial
	for _, m := range models {
		if in[m] == nil {
			return nil, &failure{code: exitUsage, what: fmt.Sprintf("--models: no node of partition %s has a GPU model %q", strings.Join(o.partitions, ", "), m),
				next: "there are " + strings.Join(sortedNames(in), ", ")}
		}
		x := &trial{Model: m}
		if m == untypedModel && len(in) > 1 {
			x.State, x.Note = "skipped", "its nodes name no GPU model, so Slurm cannot be asked for it"
		} else {
			o.fit(x, in[m])
		}
		out = append(out, x)
	}
	return out, nil
}

// untypedModel is the model of GPUs of which Slurm knows none.
const untypedModel = "gpu"

func sortedNames[V any](m map[string]V) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// fit finds the first partition with idle GPUs for the gang of a trial; else, if it may wait, the first that
// could have them.
func (o *profiling) fit(x *trial, nodes []slurm.UserNode) {
	count := func(of []cluster.GPUs) int {
		for _, g := range of {
			if g.Model == x.Model {
				return g.Count
			}
		}
		return 0
	}
	idle, all := 0, 0
	free := func(n *slurm.UserNode) int {
		if n.Bad != "" || n.Busy != "" {
			return 0
		}
		return count(n.Idle)
	}
	whole := func(n *slurm.UserNode) int {
		if n.Bad != "" {
			return 0
		}
		return count(n.GPUs)
	}
	for i := range nodes {
		idle, all = idle+free(&nodes[i]), all+whole(&nodes[i])
	}
	for _, gpus := range []func(*slurm.UserNode) int{free, whole} {
		for _, part := range o.partitions {
			var on []int
			for i := range nodes {
				if slices.Contains(nodes[i].Partitions, part) {
					on = append(on, gpus(&nodes[i]))
				}
			}
			if n, each := spread(o.gpus, on); n > 0 {
				x.Partition, x.nodes, x.perNode = part, n, each
				return
			}
		}
		if !o.idle {
			x.State, x.Note = "skipped", fmt.Sprintf("%d of %d GPUs are idle; --wait-for-idle waits for more", idle, all)
			if idle >= o.gpus {
				x.Note = fmt.Sprintf("%d of %d GPUs are idle, but not %d of them together; --wait-for-idle waits for that", idle, all, o.gpus)
			}
			return
		}
	}
	x.State, x.Note = "skipped", fmt.Sprintf("its nodes cannot hold %d GPUs, evenly spread", o.gpus)
}

// spread gives on how many nodes a gang fits, as few as can be, and how many GPUs it has on each:
// the same on all. on is the GPUs of each node. 0 = it does not fit.
func spread(gang int, on []int) (nodes, each int) {
	for nodes = 1; nodes <= min(gang, len(on)); nodes++ {
		if gang%nodes != 0 {
			continue
		}
		room := 0
		for _, n := range on {
			if n >= gang/nodes {
				room++
			}
		}
		if room >= nodes {
			return nodes, gang / nodes
		}
	}
	return 0, 0
}

// sbatch gives the arguments by which a trial is submitted.
func (o *profiling) sbatch(x *trial) []string {
	gres := fmt.Sprintf("--gres=gpu:%s:%d", x.Model, x.perNode)
	if x.Model == untypedModel {
		gres = fmt.Sprintf("--gres=gpu:%d", x.perNode)
	}
	args := []string{"--job-name=profile-" + o.kind, "--comment=kind=" + o.kind + ",gpus=idle", fmt.Sprintf("--time=%d", o.minutes),
		"--partition=" + x.Partition, fmt.Sprintf("--nodes=%d", x.nodes), gres}
	if o.account != "" {
		args = append(args, "--account="+o.account)
	}
	return append(append(args, o.script), o.args...)
}

// submit submits the jobs of all trials that may be. It fails where sbatch takes none.
func (p *program) submit(ctx context.Context, o *profiling, trials []*trial) error {
	var refused error
	taken := false
	for _, x := range trials {
		if x.State != "" || ctx.Err() != nil {
			continue
		}
		id, err := o.login.Submit(ctx, o.sbatch(x))
		if err != nil {
			x.State, x.Note = "refused", cause(err)
			refused = cmp.Or(refused, err)
			continue
		}
		x.id, x.Job, x.State, x.began, taken = id, id.String(), "submitted", p.now(), true
	}
	if refused != nil && !taken {
		return &failure{code: exitNo, what: "sbatch took none of the jobs", err: refused, next: "try the line that --dry-run shows"}
	}
	return nil
}

// lateReports is how long what jobs have reported may take to be in the journal when they are over.
const lateReports = 30 * cluster.Second

// await follows the jobs to their ends, or to an interrupt. Then it cancels those that have not started.
func (p *program) await(ctx context.Context, o *profiling, trials []*trial, hear func(context.Context, []*trial) (cluster.Instant, error)) {
	line := p.statusLine()
	defer line.end()
	for {
		over, last := true, cluster.Instant(0)
		for _, x := range trials {
			if x.Job == "" {
				continue
			}
			p.look(ctx, o, x)
			over, last = over && x.over, max(last, x.ended)
		}
		upTo, err := hear(ctx, trials)
		if err != nil && ctx.Err() == nil {
			line.say("what the jobs report cannot be read: " + cause(err))
		}
		line.set(following(trials, line.terminal))
		if over && (err == nil && upTo >= last || p.now().Sub(last) > lateReports) {
			return
		}
		select {
		case <-time.After(p.poll):
		case <-ctx.Done():
			p.abandon(context.WithoutCancel(ctx), o, trials)
			return
		}
	}
}

// look looks at the job of a trial.
func (p *program) look(ctx context.Context, o *profiling, x *trial) {
	if x.over {
		return
	}
	j, known, err := o.login.Job(ctx, x.id)
	switch {
	case err != nil: // it is looked at again
		x.Note = cause(err)
	case !known:
		x.State, x.over, x.ended = "forgotten", true, p.now()
	default:
		x.State, x.Nodes, x.exit, x.output, x.Note = j.State, j.Nodes, j.Exit, j.Output, ""
		if j.State == "PENDING" {
			x.Note = j.Reason
		}
		if j.Over() {
			x.over, x.ended = true, p.now()
		}
	}
}

// abandon cancels the jobs that have not started.
func (p *program) abandon(ctx context.Context, o *profiling, trials []*trial) {
	var left []cluster.JobID
	for _, x := range trials {
		if x.Job != "" && !x.over {
			left = append(left, x.id)
		}
	}
	if len(left) == 0 {
		return
	}
	if err := o.login.CancelWaiting(ctx, left); err != nil {
		fmt.Fprintf(p.err, "fairlease: jobs that have not started could not be cancelled: %s\n", cause(err))
	}
	for _, x := range trials {
		if x.Job != "" {
			p.look(ctx, o, x)
		}
	}
}

// following puts the state of the jobs into words, with their speeds if these are to be seen.
func following(trials []*trial, speeds bool) string {
	var words []string
	for _, x := range trials {
		if x.Job == "" {
			continue
		}
		word := fmt.Sprintf("%s: job %s %s", x.Model, x.Job, strings.ToLower(x.State))
		if x.Note != "" {
			word += " (" + x.Note + ")"
		} else if speeds && x.Profile != nil {
			word += fmt.Sprintf(", %.4g steps/s", x.Profile.Rate)
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

// statusLine is one line that is written over on a terminal; elsewhere each change is a line.
type statusLine struct {
	out      io.Writer
	terminal bool
	last     string
	said     string
}

func (p *program) statusLine() *statusLine {
	f, ok := p.err.(*os.File)
	return &statusLine{out: p.err, terminal: ok && isatty.IsTerminal(f.Fd())}
}

func (s *statusLine) set(text string) {
	if text == s.last {
		return
	}
	s.last = text
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s", text[:min(len(text), 79)])
	} else {
		fmt.Fprintln(s.out, text)
	}
}

// say says what is no state, once.
func (s *statusLine) say(text string) {
	if text == s.said {
		return
	}
	s.said = text
	s.end()
	fmt.Fprintf(s.out, "fairlease: %s\n", text)
}

func (s *statusLine) end() {
	if s.terminal && s.last != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.last = ""
	}
}

// measured shows what came of the trials.
func (p *program) measured(ctx context.Context, l listing, o *profiling, trials []*trial) error {
	slowest := 0.0
	all := true
	for _, x := range trials {
		if x.Profile != nil && (slowest == 0 || x.Profile.Rate < slowest) {
			slowest = x.Profile.Rate
		}
	}
	for _, x := range trials {
		switch {
		case x.Profile != nil:
			x.Profile.Speedup = x.Profile.Rate / slowest
		case x.State == "skipped" || x.State == "refused" || !o.wait:
		default:
			x.Note = x.unmeasured()
		}
		all = all && (x.Profile != nil || !o.wait && x.Job != "")
	}
	if err := p.list(l, trialTable(trials, p.now()), trials); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return p.interrupted(trials)
	}
	if !o.wait && !l.json && !l.parsable {
		p.printf("\nwhat they report: fairlease profiles %s\n", o.kind)
	}
	if !all {
		return quiet(exitNo)
	}
	return nil
}

// unmeasured says why nothing is known of a job's speed.
func (x *trial) unmeasured() string {
	see := ""
	if x.output != "" {
		see = "; see " + x.output
	}
	switch {
	case x.State == "PENDING":
		return strings.TrimSuffix("it waits: "+x.Note, ": ")
	case !x.over:
		return "it has not reported twice, ten seconds apart"
	case strings.HasPrefix(x.State, "CANCELLED") && x.Nodes == "":
		return "cancelled before it started"
	case x.State == "COMPLETED" || x.State == "TIMEOUT":
		return "it did not report twice, ten seconds apart" + see
	case x.State == "forgotten":
		return "Slurm does not know its job any more"
	}
	return "its job ended as " + x.State + ", exit code " + or(x.exit, "unknown") + see
}

// interrupted says what is left of the jobs.
func (p *program) interrupted(trials []*trial) error {
	var left []string
	for _, x := range trials {
		if x.Job != "" && !x.over {
			left = append(left, x.Job)
		}
	}
	f := &failure{code: exitNo, what: "interrupted: jobs that had not started are cancelled, and none is left"}
	if len(left) > 0 {
		f.what = "interrupted: jobs that had not started are cancelled; left " + strings.Join(left, ", ")
		f.next = "scancel " + strings.Join(left, " ") + " ends them; what they report counts all the same"
	}
	return f
}

func trialTable(trials []*trial, now cluster.Instant) *table {
	t := &table{head: []string{"MODEL", "PARTITION", ">JOB", "STATE", "NODES", ">STEPS/S", ">SPEEDUP", ">SAMPLES", ">SPREAD", ">AGE", "NOTE"}}
	for _, x := range trials {
		cells := []string{x.Model, x.Partition, x.Job, strings.ToLower(x.State), x.Nodes, "", "", "", "", "", x.Note}
		if m := x.Profile; m != nil {
			copy(cells[5:], []string{fmt.Sprintf("%.4g", m.Rate), fmt.Sprintf("%.2f", m.Speedup), strconv.Itoa(m.Samples), fmt.Sprintf("%.1f%%", 100*m.Spread), max(now.Sub(m.At), 0).String()})
		}
		t.add(cells...)
	}
	return t
}
