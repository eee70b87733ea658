package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config/letter"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Config is the effective configuration. Its fields are the keys of the file, in the file's
// order; etc/fairlease.yaml explains each.
type Config struct {
	Mode       loop.Mode    `yaml:"mode"`
	Partitions []string     `yaml:"partitions"`
	Canary     []string     `yaml:"canary"`
	CanaryJobs CanaryJobs   `yaml:"canary_jobs"`
	QOS        []string     `yaml:"qos"`
	Exclude    Exclude      `yaml:"exclude"`
	OptOut     loop.OptOuts `yaml:"opt_out"`

	Preemption loop.PreemptionRule `yaml:"preemption"`

	Tenants Tenants `yaml:"tenants"`

	Budgets map[string]Budget `yaml:"budgets"`

	Preset   string   `yaml:"preset"`
	Cells    Cells    `yaml:"cells"`
	Models   Models   `yaml:"models"`
	Interval Duration `yaml:"interval"`
	Lease    Lease    `yaml:"lease"`
	Gate     Gate     `yaml:"gate"`
	Stop     Stop     `yaml:"stop"`
	Breaker  Breaker  `yaml:"breaker"`
	Bind     Bind     `yaml:"bind"`
	Start    Begin    `yaml:"start"`
	Saves    []Saves  `yaml:"saves"`

	Preemptible Preemptible `yaml:"preemptible"`

	Reclaim  Reclaim  `yaml:"reclaim"`
	Recall   Recall   `yaml:"recall"`
	Placing  Placing  `yaml:",inline"`
	Fairness Fairness `yaml:"fairness"`
	Credit   Credit   `yaml:"credit"`
	Burst    Burst    `yaml:"burst"`
	Repay    Repay    `yaml:"repay"`
	Users    string   `yaml:"users"`
	Jobs     Jobs     `yaml:"jobs"`

	Telemetry Telemetry `yaml:"telemetry"`
	Idle      Idle      `yaml:"idle"`

	Schedules []Schedule `yaml:"schedules"`
	Tune      Tune       `yaml:"tune"`
	Forecast  Forecast   `yaml:"forecast"`
	Notices   Notices    `yaml:"notices"`
	Config    Taking     `yaml:"config"`

	Objectives Objectives `yaml:"objectives"`

	Slurm    Slurm    `yaml:"slurm"`
	Database Database `yaml:"database"`
	Files    Files    `yaml:"files"`
	Output   Output   `yaml:",inline"`
	Web      Web      `yaml:"web"`

	from source
}

// source is the origin of a configuration.
type source struct {
	name    string            // the file's
	text    []byte            // the file's
	origins map[string]Origin // by dotted key; absent = default
	faulty  bool              // the file has mistakes: see Reach
	start   *Config           // has the values in force of the keys that need a restart; nil = all are of the file

	vcs      *CellFile       // content of cells.file; nil = no file, or not read
	profiles *ProfileFile    // content of models.profiles; nil = no file, or not read
	letters  *letter.Letters // of notices; nil = not read
}

// Taking says which changes of the configuration a reload does not take over unasked.
type Taking struct {
	AcceptAbove Percent `yaml:"accept_above"`
}

// CanaryJobs selects the jobs on which mode canary acts, in its partitions: those that fit all that is set.
type CanaryJobs struct {
	Accounts []string `yaml:"accounts"`
	Users    []string `yaml:"users"`
	Percent  Percent  `yaml:"percent"`
}

// chosen gives the same for the loop.
func (j *CanaryJobs) chosen() loop.Chosen {
	c := loop.Chosen{Accounts: j.Accounts, Users: j.Users}
	if j.Percent < 100 {
		c.Percent = int(j.Percent)
	}
	return c
}

// all tells whether all jobs are selected.
func (j *CanaryJobs) all() bool { return len(j.Accounts)+len(j.Users) == 0 && j.Percent >= 100 }

// Exclude lists jobs that are left alone.
type Exclude struct {
	Accounts []string `yaml:"accounts"`
	Users    []string `yaml:"users"`
	QOS      []string `yaml:"qos"`
}

// Tenants selects the accounts that are tenants, and their weights.
type Tenants struct {
	Level   int              `yaml:"level"`
	Weights map[string]int64 `yaml:"weights"`
}

// Cells names the description of virtual clusters, and says how they share.
type Cells struct {
	File         string   `yaml:"file"`
	Chooser      string   `yaml:"chooser"`
	AffinityWait Duration `yaml:"affinity_wait"`
	StrictQOS    []string `yaml:"strict_qos"`
	Levels       Levels   `yaml:"levels"`
}

// Models holds the settings for heterogeneous GPUs.
type Models struct {
	Profiles    string             `yaml:"profiles"`
	Chooser     string             `yaml:"chooser"`
	Estimate    bool               `yaml:"estimate"`
	Speedups    Speedups           `yaml:"speedups"`
	Reference   string             `yaml:"reference"`
	DivideEvery Duration           `yaml:"divide_every"`
	MostKinds   int                `yaml:"most_kinds"`
	Prices      map[string]float64 `yaml:"prices"`
	Worth       map[string]Worth   `yaml:"worth"`
	Progress    Progress           `yaml:"progress"`
}

// Speedups says what is learnt from jobs that report nothing.
type Speedups struct {
	Completions bool     `yaml:"completions"`
	Counters    bool     `yaml:"counters"`
	History     Duration `yaml:"history"`
}

// Progress says how jobs report their progress.
type Progress struct {
	Listen string   `yaml:"listen"`
	Folder string   `yaml:"folder"`
	Leases string   `yaml:"leases"`
	Every  Duration `yaml:"every"`
	Munge  string   `yaml:"munge"`
	// WebConfig is a file with TLS for Listen, in the format of exporter-toolkit.
	WebConfig string `yaml:"web_config"`
}

// Lease sets the length of leases and the notice before their end.
type Lease struct {
	Term         Duration `yaml:"term"`
	Min          Duration `yaml:"min"`
	MinTerms     int      `yaml:"min_terms"`
	Notice       Duration `yaml:"notice"`
	NoticeMin    Duration `yaml:"notice_min"`
	NoticeMax    Duration `yaml:"notice_max"`
	NoticeAtOnce int      `yaml:"notice_concurrent"`
	GrantTimeout Duration `yaml:"grant_timeout"`
	Signal       string   `yaml:"signal"`
	SignalTo     string   `yaml:"signal_to"`
	Signals      []Signal `yaml:"signals"`
}

// Signal is another notice for jobs that match all its set fields.
type Signal struct {
	Partition string `yaml:"partition" json:"partition,omitempty"`
	QOS       string `yaml:"qos" json:"qos,omitempty"`
	Account   string `yaml:"account" json:"account,omitempty"`
	Signal    string `yaml:"signal" json:"signal"`
	To        string `yaml:"to" json:"to"`
}

// Gate says how waiting jobs are gated, and how far ahead.
type Gate struct {
	TTL        Duration `yaml:"ttl"`
	License    string   `yaml:"license"`
	BeginTimes int      `yaml:"begin_times"`
	PluginConf string   `yaml:"plugin_conf"`
	SiteFactor int64    `yaml:"site_factor"`
}

// Stop is the stop budget: the maximum cost of requeues to a job.
type Stop struct {
	Allowance Duration `yaml:"allowance"`
	Overhead  Percent  `yaml:"overhead"`
	Total     Percent  `yaml:"total"`
	// PerHour, PerHourTenant and PerHourUser limit the GPUs whose jobs are stopped within an hour.
	PerHour       Limit   `yaml:"per_hour"`
	PerHourTenant Percent `yaml:"per_hour_tenant"`
	PerHourUser   Percent `yaml:"per_hour_user"`
}

// perHour gives the limits within an hour.
func (s *Stop) perHour() cluster.StopsPerHour {
	return cluster.StopsPerHour{Site: max(int(s.PerHour), 0), Auto: s.PerHour == Auto, Tenant: int(s.PerHourTenant), User: int(s.PerHourUser)}
}

// Breaker has the bounds beyond which fairlease only observes.
type Breaker struct {
	FailedStarts JobBound     `yaml:"failed_starts"`
	LostWork     JobBound     `yaml:"lost_work"` // GPU hours
	Requeues     JobBound     `yaml:"requeues"`
	BadEnds      JobBound     `yaml:"bad_ends"`
	Latency      LatencyBound `yaml:"latency"`
}

// rule gives the bounds in the engine's units.
func (b *Breaker) rule() cluster.BreakerRule {
	jobs := func(n JobBound, unit int64) cluster.Bound {
		return cluster.Bound{Max: max(int64(n), 0) * unit, Auto: n == AutoBound}
	}
	return cluster.BreakerRule{FailedStarts: jobs(b.FailedStarts, 1), LostWork: jobs(b.LostWork, int64(cluster.Hour)), Requeues: jobs(b.Requeues, 1), BadEnds: jobs(b.BadEnds, 1),
		Latency: cluster.Bound{Max: max(int64(b.Latency), 0), Auto: b.Latency == AutoBound}}
}

// Bind limits jobs that cannot be stopped, beyond what their tenants are due.
type Bind struct {
	Quiet   Duration `yaml:"quiet"`
	Horizon int      `yaml:"horizon"`
	Max     Percent  `yaml:"max"`
}

// Begin is the cost of a job's start, where it has not been measured.
type Begin struct {
	Cost Duration `yaml:"cost"`
}

// Saves says how jobs save that have neither shown nor declared it, if they match all its set
// fields.
type Saves struct {
	Partition string `yaml:"partition" json:"partition,omitempty"`
	QOS       string `yaml:"qos" json:"qos,omitempty"`
	Saves     string `yaml:"saves" json:"saves"`
}

// of words the jobs that match.
func (r Saves) of() string {
	switch {
	case r.QOS == "":
		return "partition " + r.Partition
	case r.Partition == "":
		return "QOS " + r.QOS
	}
	return "QOS " + r.QOS + " in partition " + r.Partition
}

// Preemptible lists where a requeue is acceptable to every job: it counts as a declaration that
// the job saves on SIGTERM.
type Preemptible struct {
	QOS        []string `yaml:"qos"`
	Partitions []string `yaml:"partitions"`
}

// Reclaim limits preemption at the end of terms.
type Reclaim struct {
	Threshold Duration `yaml:"threshold"`
	Max       int      `yaml:"max"`
}

// Placing says where jobs are put. Its sections are at the top of the file.
type Placing struct {
	Compact   Compact   `yaml:"compact"`
	Sharing   Sharing   `yaml:"sharing"`
	SlowNodes SlowNodes `yaml:"slow_nodes"`
}

// SlowNodes says when a node counts as slow.
type SlowNodes struct {
	Below Percent `yaml:"below"`
}

// Sharing says whose jobs may have parts of one GPU, and whether they take turns there or run at the same time.
type Sharing struct {
	Across  string            `yaml:"across"`
	Slices  string            `yaml:"slices"`
	Pairs   string            `yaml:"pairs"`
	Jobs    int               `yaml:"jobs"`
	Quantum Duration          `yaml:"quantum"`
	Memory  map[string]string `yaml:"memory"`
}

// slices gives the settings of turns for the engine; nil = there are none.
func (s *Sharing) slices() *cluster.Slices {
	if s.Slices != on {
		return nil
	}
	out := &cluster.Slices{Quantum: s.Quantum.Span(), Pairs: s.Pairs == on, Jobs: s.Jobs}
	for _, model := range sortedKeys(s.Memory) {
		bytes, _ := cluster.ParseMemory(s.Memory[model]) // checked
		out.Memory = append(out.Memory, cluster.GPUMemory{Model: model, Bytes: bytes})
	}
	return out
}

// The words for turns.
const on, off = "on", "off"

// across gives the same for the engine.
func (s *Sharing) across() cluster.Across {
	if s.Across == anyUser {
		return cluster.AnyUser
	}
	return cluster.Across(s.Across)
}

// anyUser is the word for jobs of all users.
const anyUser = "any"

// Compact limits how gangs get nodes together: by moves of running jobs, and by waiting.
type Compact struct {
	MaxCost Percent  `yaml:"max_cost"`
	MaxWait Duration `yaml:"max_wait"`
}

// Recall says how leases end before their term is over.
type Recall struct {
	FirstLease bool     `yaml:"first_lease"`
	Notice     Duration `yaml:"notice"`
}

// Fairness sets how fairness is computed.
type Fairness struct {
	RhoSelect int      `yaml:"rho_select"`
	Window    Duration `yaml:"window"`
	HalfLife  Duration `yaml:"half_life"`
}

// Credit limits what idle tenants accumulate.
type Credit struct {
	Cap Duration `yaml:"cap"`
}

// Burst limits tenants while others wait.
type Burst struct {
	Max Factor `yaml:"max"`
}

// Repay sets what a tenant keeps while it repays a debt.
type Repay struct {
	Floor Percent `yaml:"floor"`
}

// Jobs orders the jobs inside a tenant.
type Jobs struct {
	Order     string            `yaml:"order"`
	Patience  Duration          `yaml:"patience"`
	NewFirst  bool              `yaml:"new_first"`
	NewShare  Percent           `yaml:"new_share"`
	LongTerms int               `yaml:"long_terms"`
	UrgentQOS []string          `yaml:"urgent_qos"`
	Weights   map[string]Factor `yaml:"weights"`
}

// Slurm says how to reach Slurm.
type Slurm struct {
	Address       string   `yaml:"address"`
	User          string   `yaml:"user"`
	TokenFile     string   `yaml:"token_file"`
	JWT           string   `yaml:"jwt"`
	TLS           TLS      `yaml:"tls"`
	APIVersion    string   `yaml:"api_version"`
	Scontrol      Command  `yaml:"scontrol"`
	Timeout       Duration `yaml:"timeout"`
	ListTimeout   Duration `yaml:"list_timeout"`
	Retries       int      `yaml:"retries"`
	FullEvery     Duration `yaml:"full_every"`
	AccountsEvery Duration `yaml:"accounts_every"`
	SmallList     int      `yaml:"small_list"`
	Singles       int      `yaml:"singles"`
	ArrayCap      int      `yaml:"array_cap"`
}

// Values of slurm.jwt beside addresses: users' tokens of auth/jwt are checked by the slurmrestd of slurm.address if fairlease itself
// uses a token there, or none are taken.
const (
	JWTAuto = "auto"
	JWTNone = "none"
)

// Checker gives the address of the slurmrestd that checks users' tokens of auth/jwt; "" = none are taken.
func (s *Slurm) Checker() string {
	switch {
	case s.JWT != JWTAuto && s.JWT != JWTNone:
		return s.JWT
	case s.JWT == JWTAuto && s.TokenFile != "":
		return s.Address
	}
	return ""
}

// TLS is for https addresses.
type TLS struct {
	CAFile     string `yaml:"ca_file"`
	CertFile   string `yaml:"cert_file"`
	KeyFile    string `yaml:"key_file"`
	ServerName string `yaml:"server_name"`
}

// Database says where the journal is and how long it is kept.
type Database struct {
	URL        string   `yaml:"url"`
	Schema     string   `yaml:"schema"`
	KeepRounds Duration `yaml:"keep_rounds"`
	Keep       Duration `yaml:"keep"`
}

// Files are the daemon's own.
type Files struct {
	Heartbeats string `yaml:"heartbeats"`
	State      string `yaml:"state"`
}

// Output says where the daemon writes what administrators read. Its sections are at the top of the file.
type Output struct {
	Log     Log     `yaml:"log"`
	Audit   Audit   `yaml:"audit"`
	Metrics Metrics `yaml:"metrics"`
}

// Log configures the daemon's log.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Metrics says where the daemon answers questions for its metrics and its health.
type Metrics struct {
	Listen    string `yaml:"listen"`
	WebConfig string `yaml:"web_config"`
}

// Default gives the configuration of an empty file.
func Default() *Config {
	const second, minute, hour, day = Duration(cluster.Second), Duration(cluster.Minute), Duration(cluster.Hour), Duration(cluster.Day)
	return &Config{
		Mode:       loop.Observe,
		Partitions: []string{"gpu"},
		CanaryJobs: CanaryJobs{Percent: 100},
		OptOut:     loop.AllOut(loop.Charge),
		Preemption: loop.PreemptionObserve,
		Tenants:    Tenants{Level: 1},
		Preset:     preset.Astraea,
		Cells:      Cells{Chooser: "astraea", AffinityWait: 10 * minute},
		Models:     Models{Chooser: cluster.Nearest, Estimate: true, Speedups: Speedups{Completions: true, Counters: true, History: 30 * day}, DivideEvery: 5 * minute, MostKinds: 16, Progress: Progress{Every: 10 * second}},
		Interval:   10 * second,
		Lease: Lease{Term: 15 * minute, Min: 5 * minute, MinTerms: 2, Notice: minute, GrantTimeout: minute,
			Signal: "USR1", SignalTo: "steps"},
		Gate:       Gate{TTL: 10 * minute, License: "fairlease", BeginTimes: 2000, SiteFactor: 1_000_000},
		Stop:       Stop{Allowance: 15 * minute, Overhead: 2, Total: 3, PerHour: Auto},
		Breaker:    Breaker{FailedStarts: AutoBound, LostWork: AutoBound, Requeues: AutoBound, BadEnds: AutoBound, Latency: AutoBound},
		Bind:       Bind{Quiet: 12 * hour, Horizon: 4, Max: 5},
		Start:      Begin{Cost: 5 * minute},
		Reclaim:    Reclaim{Threshold: 15 * minute, Max: 100},
		Recall:     Recall{FirstLease: true},
		Placing:    Placing{Compact: Compact{MaxCost: 25, MaxWait: 8 * hour}, Sharing: Sharing{Across: anyUser, Slices: off, Pairs: off, Jobs: 2, Quantum: Duration(cluster.Minute), Memory: map[string]string{}}, SlowNodes: SlowNodes{Below: 85}},
		Fairness:   Fairness{RhoSelect: 16, Window: 14 * day},
		Credit:     Credit{Cap: 2 * hour},
		Burst:      Burst{Max: 2000},
		Repay:      Repay{Floor: 75},
		Users:      "job",
		Jobs:       Jobs{Order: string(cluster.ByExpected), Patience: 4 * hour, NewFirst: true, NewShare: 50},
		Telemetry:  Telemetry{GPU: GPUCounters{Every: 30 * second, MaxAge: 2 * minute}},
		Idle:       Idle{TellAfter: 30 * minute},
		Objectives: Objectives{FirstLease: FirstLease{Within: 4 * hour, Target: 95}, GPUs: Objective{Target: 95}, Rounds: Objective{Target: 99}},
		Tune: Tune{Last: 7 * day, Terms: []Duration{5 * minute, 10 * minute, 15 * minute, 20 * minute, 30 * minute, hour},
			WorseBy: 2, Watch: 3 * day, Rest: 30 * day},
		Forecast: Forecast{Every: 10 * minute, Runs: 100, Horizon: 7 * day, Last: 14 * day},
		Notices:  Notices{Rate: 10, Mail: Mail{TLS: StartTLS}},
		Config:   Taking{AcceptAbove: 10},
		Slurm: Slurm{Address: "unix:///run/slurmrestd/slurmrestd.socket", JWT: JWTAuto, Scontrol: Command{"scontrol"},
			Timeout: 20 * second, ListTimeout: 2 * minute, Retries: 3, FullEvery: 30 * second,
			AccountsEvery: 5 * minute, SmallList: 200, Singles: 64, ArrayCap: 1000},
		Database: Database{Schema: "fairlease", KeepRounds: 14 * day, Keep: 365 * day},
		Files:    Files{Heartbeats: "/run/fairlease", State: "/var/lib/fairlease/state.json"},
		Output:   Output{Log: Log{Level: "info", Format: "auto"}, Audit: Audit{Syslog: SyslogOff}, Metrics: Metrics{Listen: "127.0.0.1:9963"}},
		Web: Web{Listen: "127.0.0.1:9964", Socket: "/run/fairlease-web/socket", Munge: true, UserHeader: "X-Remote-User",
			Anonymous: AnonymousSums, MaxConnections: 1000},
	}
}

// Rules gives the rules for managed jobs and tenants.
func (c *Config) Rules() loop.Rules {
	r := loop.Rules{
		Mode: c.Mode, Partitions: c.Partitions, QOS: c.QOS, Canary: c.Canary,
		ExcludeAccounts: c.Exclude.Accounts, ExcludeUsers: c.Exclude.Users, ExcludeQOS: c.Exclude.QOS,
		OptOut: c.OptOut, Preemption: c.Preemption,
		TenantLevel: c.Tenants.Level, Weights: c.Tenants.Weights,
	}
	if r.Chosen = c.CanaryJobs.chosen(); len(r.Canary) == 0 && !c.CanaryJobs.all() {
		r.Canary = c.Partitions
	}
	if c.from.vcs != nil {
		r.Cells = c.from.vcs.Cells
	}
	if c.from.profiles != nil {
		r.Profiles = c.from.profiles.Profiles
	}
	return r
}

// VCs gives the content of cells.file; nil = there are no virtual clusters.
func (c *Config) VCs() *CellFile { return c.from.vcs }

// CellFile gives the path of cells.file. Relative paths are relative to the configuration's
// folder.
func (c *Config) CellFile() string { return beside(c.from.name, c.Cells.File) }

// readCells reads the cells file, if there is one, and gives the problems of its key and of its content.
func (c *Config) readCells() (own, its Problems) {
	if c.Cells.File == "" {
		return nil, nil
	}
	f, err := LoadCells(c.CellFile())
	c.from.vcs = f
	return c.unread("cells.file", err, "`fairlease cells init` writes one")
}

// unread sorts the problems of a file that a key names: those of its content, or that it cannot be read.
func (c *Config) unread(key string, err error, next string) (own, its Problems) {
	if err == nil || errors.As(err, &its) {
		return nil, its
	}
	origin := c.from.origins[key]
	return Problems{{Place: origin.String(), Key: key, Text: fmt.Sprintf("%v; %s", err, next), line: origin.line}}, nil
}

// ProfileFile gives the content of models.profiles; nil = no file is named.
func (c *Config) ProfileFile() *ProfileFile { return c.from.profiles }

// readProfiles is readCells for the profiles file. Relative paths are relative to the configuration's folder.
func (c *Config) readProfiles() (own, its Problems) {
	if c.Models.Profiles == "" {
		return nil, nil
	}
	f, err := LoadProfiles(beside(c.from.name, c.Models.Profiles))
	c.from.profiles = f
	return c.unread("models.profiles", err, "the sources have an example, etc/profiles.yaml")
}

// Settings gives the engine's settings.
func (c *Config) Settings() cluster.Settings {
	s := cluster.Settings{
		Preset: c.Preset, Differs: c.differs(),
		Interval: c.Interval.Span(), Term: c.Lease.Term.Span(), MinLease: c.Lease.Min.Span(), MinLeaseTerms: c.Lease.MinTerms,
		Notice: c.Lease.Notice.Span(), NoticeConcurrent: c.Lease.NoticeAtOnce, GrantTimeout: c.Lease.GrantTimeout.Span(),
		GateTTL: c.Gate.TTL.Span(), MaxBeginTimes: c.Gate.BeginTimes, SiteFactor: c.Gate.SiteFactor,
		RhoSelect: c.Fairness.RhoSelect, Window: c.Fairness.Window.Span(), HalfLife: c.Fairness.HalfLife.Span(),
		CreditCap: c.Credit.Cap.Span(), BurstMaxMilli: int64(c.Burst.Max),
		Threshold: c.Reclaim.Threshold.Span(), MaxReclaims: c.Reclaim.Max,
		RepayFloorPercent: int(c.Repay.Floor), CompactPercent: int(c.Placing.Compact.MaxCost), ScatterWait: c.Placing.Compact.MaxWait.Span(), SlowNodePercent: int(c.Placing.SlowNodes.Below), Across: c.Placing.Sharing.across(), Slices: c.Placing.Sharing.slices(),
		StopAllowance: c.Stop.Allowance.Span(), StopOverheadMilli: 10 * int64(c.Stop.Overhead), StopTotalMilli: 10 * int64(c.Stop.Total), StartCost: c.Start.Cost.Span(),
		StopsPerHour: c.Stop.perHour(), Breaker: c.Breaker.rule(),
		BindQuiet: c.Bind.Quiet.Span(), BindHorizon: c.Bind.Horizon, BindMaxPercent: int(c.Bind.Max),
		RecallFirst: c.Recall.FirstLease, RecallNotice: c.Recall.Notice.Span(),
		NewFirst: c.Jobs.NewFirst, NewSharePercent: int(c.Jobs.NewShare),
		LongTerms: c.Jobs.LongTerms, UrgentQOS: c.Jobs.UrgentQOS,
		Signal: bare(c.Lease.Signal), SignalTo: c.Lease.SignalTo,
		IdleReclaim: c.Idle.ReclaimAfter.Span(),
	}
	if c.Lease.NoticeMax > 0 {
		s.NoticeMin, s.NoticeMax = c.Lease.NoticeMin.Span(), c.Lease.NoticeMax.Span()
	}
	if c.Users == string(cluster.UsersEqual) {
		s.Users = cluster.UsersEqual
	}
	if c.Jobs.Order != "rho" {
		s.JobOrder, s.Patience = cluster.JobOrder(c.Jobs.Order), c.Jobs.Patience.Span()
	}
	if c.Cells.File != "" {
		s.Chooser, s.AffinityWait, s.StrictQOS = c.Cells.Chooser, c.Cells.AffinityWait.Span(), c.Cells.StrictQOS
		s.Levels = c.Cells.Levels.list()
	}
	if c.market() {
		s.Divide, s.DivideJobs = preset.Base(c.Preset), preset.OfJobs(c.Preset)
		s.DivideEvery = max(int64(c.Models.DivideEvery/c.Interval), 1)
		s.NoEstimates, s.MostKinds, s.Reference = !c.Models.Estimate, c.Models.MostKinds, c.Models.Reference
		s.Mechanism = preset.Mechanism(c.Preset, c.Models.Chooser)
		s.NoCounters = !c.Models.Speedups.Counters
		for _, model := range sortedKeys(c.Models.Prices) {
			s.Prices = append(s.Prices, cluster.Price{Model: model, Price: c.Models.Prices[model]})
		}
	}
	if s.NoCompletions = !c.Models.Speedups.Completions; c.from.profiles != nil {
		s.Kinds = c.from.profiles.Rules
	}
	for _, model := range sortedKeys(c.Models.Worth) {
		if worth := cluster.MicroGPU(c.Models.Worth[model]); worth != cluster.WholeGPU {
			s.Worths = append(s.Worths, cluster.Worth{Model: model, Worth: worth})
		}
	}
	for _, qos := range sortedKeys(c.Jobs.Weights) {
		s.JobWeights = append(s.JobWeights, cluster.JobWeight{QOS: qos, Milli: int64(c.Jobs.Weights[qos])})
	}
	for _, qos := range c.Preemptible.QOS {
		s.Saves = append(s.Saves, cluster.SavingRule{QOS: qos, Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration,
			Evidence: "QOS " + qos + " is preemptible here"})
	}
	for _, partition := range c.Preemptible.Partitions {
		s.Saves = append(s.Saves, cluster.SavingRule{Partition: partition, Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration,
			Evidence: "partition " + partition + " is preemptible here"})
	}
	for _, r := range c.Saves {
		saving, _ := cluster.ParseSaving(r.Saves) // check has validated it
		s.Saves = append(s.Saves, cluster.SavingRule{Partition: r.Partition, QOS: r.QOS, Manner: saving.Manner, Every: saving.Every,
			Source: cluster.FromSite, Evidence: "the site's rule for " + r.of()})
	}
	for _, r := range c.Lease.Signals {
		s.Signals = append(s.Signals, cluster.SignalRule{Partition: r.Partition, QOS: r.QOS, Account: r.Account,
			Signal: bare(r.Signal), To: r.To})
	}
	return s
}

// Levels are the levels of jobs inside a virtual cluster, by QOS.
type Levels map[string]int

// mostLevel bounds a level in both directions.
const mostLevel = 1000

// wrong words what is wrong with the levels; "" = nothing.
func (l Levels) wrong() string {
	for _, qos := range sortedKeys(l) {
		switch level := l[qos]; {
		case qos == "":
			return "contains an empty name; remove it"
		case level < -mostLevel || level > mostLevel:
			return fmt.Sprintf("%s: a level must be %d to %d, got %d", qos, -mostLevel, mostLevel, level)
		}
	}
	return ""
}

// list gives the levels by QOS; nil = none.
func (l Levels) list() []cluster.QOSLevel {
	var out []cluster.QOSLevel
	for _, qos := range sortedKeys(l) {
		out = append(out, cluster.QOSLevel{QOS: qos, Level: l[qos]})
	}
	return out
}

// market tells whether the preset divides heterogeneous GPUs.
func (c *Config) market() bool { return slices.Contains(preset.Dividing(), preset.Base(c.Preset)) }

// TakesWorth tells whether devices may count as parts of GPUs (models.worth): where GPU models are divided, speedups say what a device is worth, and the
// cells of virtual clusters are whole devices.
func TakesWorth(c *Config) bool { return !c.market() && c.Cells.File == "" }

// bare gives a signal without SIG; "none" gives "".
func bare(signal string) string {
	if signal == "none" {
		return ""
	}
	return trimSIG(signal)
}
