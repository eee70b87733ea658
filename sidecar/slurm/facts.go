package slurm

import (
	"context"
	"net/http"
	"net/url"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Facts describes a Slurm for `doctor`, without judgement.
type Facts struct {
	Address  string   `json:"address"`
	Release  string   `json:"release"` // "26.05.5"
	Cluster  string   `json:"cluster"`
	Offered  []string `json:"offered"`   // API versions of slurmrestd
	Speaks   string   `json:"speaks"`    // the version that we use
	ReadJobs string   `json:"read_jobs"` // the version in which we read jobs
	// Dropped is the next release of Slurm, if it lacks the version that we use; else "".
	Dropped string `json:"dropped,omitempty"`
	// HidesExclusive: the version in which we read jobs does not report --exclusive, so only sbatch's command line tells it.
	HidesExclusive bool `json:"hides_exclusive,omitempty"`
	// Requeue and Reserve name the interface for these operations: "rest" or "scontrol".
	Requeue string `json:"requeue"`
	Reserve string `json:"reserve"`

	// Conf is Slurm's whole configuration, by the names of slurm.conf; empty if scontrol could
	// not run (ConfError).
	Conf      map[string]string `json:"conf"`
	ConfError string            `json:"conf_error,omitempty"`
	// MinJobAge is how long a finished job stays listed.
	MinJobAge cluster.Span `json:"min_job_age"`

	// Operator is the Slurm user that slurmrestd uses for us ("" = unknown). Rights is its admin
	// level: "None", "Operator", "Administrator".
	Operator string `json:"operator,omitempty"`
	Rights   string `json:"rights,omitempty"`
	// QOS are the names of all QOS; nil = unknown.
	QOS []string `json:"qos,omitempty"`
	// NoSubmit are the QOS in which no job can be submitted, with the limit as sacctmgr names it: "GrpSubmitJobs".
	NoSubmit map[string]string `json:"no_submit,omitempty"`
	// RestDenied and ScontrolDenied are Slurm's answers to an operator's request that changes
	// nothing, tried over both interfaces; "" = allowed.
	RestDenied     string `json:"rest_denied,omitempty"`
	ScontrolDenied string `json:"scontrol_denied,omitempty"`

	// Token warns of a token that has expired or will soon; "" = it is valid, or none is used.
	Token string `json:"token,omitempty"`

	Nodes []cluster.Node `json:"nodes"` // those with GPUs
	// Unread are nodes whose records make no sense, with their names and partitions where these are known.
	Unread []cluster.Node `json:"unread,omitempty"`
}

// The keys of Facts.Conf that matter to us.
const (
	ConfUser              = "SlurmUser"
	ConfSelectType        = "SelectType"
	ConfTRES              = "AccountingStorageTRES"
	ConfKillWait          = "KillWait"
	ConfPriorityFlags     = "PriorityFlags"
	ConfScheduler         = "SchedulerParameters"
	ConfJobSubmit         = "JobSubmitPlugins"
	ConfPreempt           = "PreemptType"
	ConfPreemptMode       = "PreemptMode"
	ConfMinJobAge         = "MinJobAge"
	ConfPreemptParameters = "PreemptParameters"
	ConfProctrackType     = "ProctrackType"
	ConfJobRequeue        = "JobRequeue"
	ConfJobFileAppend     = "JobFileAppend"
	ConfLicenses          = "Licenses"
	ConfFile              = "SLURM_CONF" // path of slurm.conf as slurmctld has it
	ConfPlugStack         = "PlugStackConfig"
	ConfPluginDir         = "PluginDir"
	confBoot              = "BOOT_TIME"
	ConfEnforce           = "AccountingStorageEnforce"
	ConfScron             = "ScronParameters"
	ConfGresTypes         = "GresTypes"
	ConfController        = "SlurmctldParameters"
)

// Facts queries Slurm. Missing information is reported in the Facts; an error means that
// slurmrestd itself does not answer; then the Facts have the token's warning only.
func (c *Client) Facts(ctx context.Context) (Facts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speech = nil // negotiate again
	if err := c.talk(ctx); err != nil {
		return Facts{Token: c.rest.token.warning(c.cfg.Now())}, err
	}
	if _, err := (site{c.link}).lookController(ctx); err != nil {
		return Facts{}, err
	}
	if err := (site{c.link}).lookNodes(ctx, 0); err != nil {
		return Facts{}, err
	}
	f := Facts{
		Address:  c.cfg.Address,
		Speaks:   c.speech.version.String(),
		ReadJobs: c.speech.jobs.String(),
		Requeue:  "scontrol",
		Reserve:  "scontrol",
		Nodes:    c.seen.last.Nodes,
		Unread:   c.seen.unread,
		Token:    c.rest.token.warning(c.cfg.Now()),
	}
	f.HidesExclusive = c.speech.jobs > lastThatShowsExclusive
	for _, v := range c.speech.offered {
		f.Offered = append(f.Offered, v.String())
	}
	if c.speech.version.requeues() {
		f.Requeue = "rest"
	}
	if c.speech.version.reserves() {
		f.Reserve = "rest"
	}
	f.Conf = map[string]string{}
	conf, err := c.conf(ctx)
	if err != nil {
		f.ConfError = err.Error()
	} else {
		f.Conf = conf
	}
	f.MinJobAge = minJobAge(conf)
	f.Cluster, f.Release = c.seen.cluster, c.seen.release
	if next := halves(f.Release) + 1; next >= halves(c.speech.version.until()) {
		f.Dropped = releaseOf(next)
	}
	f.Operator = setup{c.link}.operator()
	f.Rights = setup{c.link}.adminLevel(ctx, f.Operator)
	f.QOS, f.NoSubmit = setup{c.link}.qos(ctx)
	f.RestDenied, f.ScontrolDenied = setup{c.link}.denied(ctx)
	return f, nil
}

// operator gives the name of the user that slurmrestd uses for us: the one in our headers, or
// else, on a unix socket, the user that slurmrestd runs as.
func (c setup) operator() string {
	if c.cfg.User != "" {
		return c.cfg.User
	}
	path, ok := strings.CutPrefix(c.cfg.Address, "unix://")
	if !ok {
		return ""
	}
	var s syscall.Stat_t
	if syscall.Stat(path, &s) != nil {
		return ""
	}
	u, err := user.LookupId(strconv.Itoa(int(s.Uid)))
	if err != nil {
		return ""
	}
	return u.Username
}

// submitLimits are the limits of a QOS on jobs that are submitted, by their paths in its record.
var submitLimits = map[string]string{"max/jobs/count": "GrpSubmitJobs", "max/jobs/per/user": "MaxSubmitJobsPerUser", "max/jobs/per/account": "MaxSubmitJobsPerAccount"}

// qos asks slurmdbd for the names of all QOS, and for those in which no job can be submitted, with the limit; nil if it does not answer.
func (c setup) qos(ctx context.Context) (names []string, none map[string]string) {
	none = map[string]string{}
	_, err := c.rest.get(ctx, c.cfg.Timeout, c.dbPath("qos/"), func(r *reader, member string) bool {
		if member != "qos" {
			return false
		}
		r.array(func() {
			name, limit := "", ""
			r.object(func(field string) {
				switch field {
				case "name":
					name = r.text()
				case "limits":
					readPath(r, "", &caps{}, func(path string) bool {
						rule := submitLimits[path]
						if rule == "" || r.kind() != '{' {
							return false
						}
						if n := r.number(); n.set && !n.infinite && n.n == 0 {
							limit = rule
						}
						return true
					})
				default:
					r.skip()
				}
			})
			if names = append(names, name); limit != "" {
				none[name] = limit
			}
		})
		return true
	})
	if err != nil {
		return nil, nil
	}
	return names, none
}

// adminLevel asks slurmdbd for the rights of a user; "" if it does not answer.
func (c setup) adminLevel(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	level := ""
	_, err := c.rest.get(ctx, c.cfg.Timeout, c.dbPath("user/%s", url.PathEscape(name)), func(r *reader, member string) bool {
		if member != "users" {
			return false
		}
		r.array(func() {
			r.object(func(field string) {
				if field == "administrator_level" {
					level = strings.Join(r.list(), ",")
				} else {
					r.skip()
				}
			})
		})
		return true
	})
	if err != nil {
		return ""
	}
	return level
}

// denied tries a harmless operation that only an operator may do: deleting a reservation that
// does not exist. Slurm checks the rights first.
func (c setup) denied(ctx context.Context) (rest, scontrol string) {
	const nobodys = cluster.ReservationPrefix + "doctor_asks"
	words := func(err error) string {
		if err == nil || codeOf(err) == codeUnknownResv {
			return ""
		}
		return err.Error()
	}
	if c.speech.version.reserves() {
		rest = words(c.rest.put(ctx, http.MethodDelete, c.path("reservation/"+nobodys), nil, nil))
	}
	_, err := c.scontrol(ctx, "delete", "reservation="+nobodys)
	return rest, words(err)
}

// conf reads slurmctld's configuration. REST cannot.
func (c *link) conf(ctx context.Context) (map[string]string, error) {
	out, err := c.scontrol(ctx, "show", "config")
	if err != nil {
		return nil, err
	}
	conf := map[string]string{}
	for line := range strings.Lines(out) {
		if key, value, ok := strings.Cut(line, " = "); ok {
			conf[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return conf, nil
}

// usualMinJobAge is Slurm's default.
const usualMinJobAge = 300 * cluster.Second

// minJobAge reads "300 sec".
func minJobAge(conf map[string]string) cluster.Span {
	word, _, _ := strings.Cut(conf[ConfMinJobAge], " ")
	if n := atoi(word); n > 0 {
		return span(int64(n))
	}
	return usualMinJobAge
}
