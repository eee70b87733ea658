package experiment

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Admission is the rules to which the simulated Slurm holds all jobs. The zero value has none.
type Admission struct {
	Limits cluster.Limits
	Rules  cluster.Rules // of the partition
}

// Empty tells whether there is no rule.
func (a *Admission) Empty() bool {
	return len(a.Limits.Associations)+len(a.Limits.QOS) == 0 && a.Rules.None()
}

// partitionQOS is the QOS of the partition: all jobs have its limits.
const partitionQOS = "partition"

// The limits that a line may set, by what it is about.
var (
	limitsOfAccounts = []string{cluster.GrpTRES, cluster.GrpJobs}
	limitsOfUsers    = []string{cluster.GrpTRES, cluster.MaxJobs, cluster.MaxTRESPerJob, cluster.MaxTRESPerNode}
	limitsOfQOS      = []string{cluster.GrpTRES, cluster.GrpJobs, cluster.MaxTRESPerUser, cluster.MaxJobsPerUser, cluster.MaxTRESPerAccount, cluster.MaxJobsPerAccount,
		cluster.MaxTRESPerJob, cluster.MaxTRESPerNode, cluster.MinTRESPerJob}
)

// ReadLimits reads rules in Slurm's words, a line for each account (a tenant, or root for all), user of a tenant, or for the
// partition and its QOS. It skips empty lines and those that begin with #. name is the file's name in errors.
//
//	account vision GrpTRES=gres/gpu=8,cpu=64 GrpJobs=20
//	user vision/alice MaxJobs=4 MaxTRESPerJob=gres/gpu=2
//	qos MaxTRESPerUser=gres/gpu=8
//	partition AllowAccounts=vision,nlp MaxNodes=2
func ReadLimits(r io.Reader, name string) (Admission, error) {
	var out Admission
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if err := out.line(words[0], words[1:]); err != nil {
			return out, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return out, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if out.Empty() {
		return out, fmt.Errorf("%s: sets no limit: write a line like: account vision GrpTRES=gres/gpu=8", name)
	}
	return out, nil
}

func (a *Admission) line(about string, words []string) error {
	of := ""
	if about == "account" || about == "user" {
		if len(words) < 2 {
			return fmt.Errorf("write %s, a name, and limits", about)
		}
		of, words = words[0], words[1:]
	}
	var caps []cluster.Cap
	var err error
	switch about {
	case "account":
		caps, err = capsOf(words, limitsOfAccounts)
		a.Limits.Associations = append(a.Limits.Associations, cluster.Association{Account: of, Caps: caps})
	case "user":
		tenant, user, ok := strings.Cut(of, "/")
		if !ok || tenant == "" || user == "" {
			return fmt.Errorf("%q is no tenant and user: write them as in vision/alice", of)
		}
		caps, err = capsOf(words, limitsOfUsers)
		a.Limits.Associations = append(a.Limits.Associations, cluster.Association{Account: tenant, User: user, Caps: caps})
	case "qos":
		caps, err = capsOf(words, limitsOfQOS)
		a.Limits.QOS, a.Rules.QOS = append(a.Limits.QOS, cluster.QOS{Name: partitionQOS, Caps: caps}), partitionQOS
		if len(a.Limits.QOS) > 1 {
			return fmt.Errorf("there is a line for the QOS already")
		}
	case "partition":
		err = a.partition(words)
	default:
		return fmt.Errorf("%q is no account, user, qos or partition", about)
	}
	return err
}

func capsOf(words, known []string) (out []cluster.Cap, err error) {
	for _, word := range words {
		rule, value, ok := strings.Cut(word, "=")
		if !ok || !slices.Contains(known, rule) {
			return nil, fmt.Errorf("%q is none of %s", word, strings.Join(known, ", "))
		}
		for item := range strings.SplitSeq(value, ",") {
			c, most := cluster.Cap{Rule: rule}, item
			if strings.Contains(rule, "TRES") {
				at := strings.LastIndexByte(item, '=')
				c.TRES, most = item[:max(at, 0)], item[at+1:]
				if c.TRES != "cpu" && c.TRES != "mem" && c.TRES != "node" && c.TRES != "gres/gpu" && !strings.HasPrefix(c.TRES, "gres/gpu:") {
					return nil, fmt.Errorf("%q: write cpu, mem (in MB), node, gres/gpu or gres/gpu:MODEL, and an amount, as in %s=gres/gpu=8", word, rule)
				}
			}
			if c.Max, err = strconv.ParseInt(most, 10, 64); err != nil || c.Max < 0 {
				return nil, fmt.Errorf("%q: %q is no amount", word, most)
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Cap) int { return a.Compare(b) })
	return out, nil
}

func (a *Admission) partition(words []string) (err error) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch list := strings.Split(value, ","); key {
		case "AllowAccounts":
			a.Rules.AllowAccounts = list
		case "DenyAccounts":
			a.Rules.DenyAccounts = list
		case "MinNodes":
			a.Rules.MinNodes, err = strconv.Atoi(value)
		case "MaxNodes":
			a.Rules.MaxNodes, err = strconv.Atoi(value)
		case "MaxCPUsPerNode":
			a.Rules.CPUsPerNode, err = strconv.Atoi(value)
		default:
			return fmt.Errorf("%q is none of AllowAccounts, DenyAccounts, MinNodes, MaxNodes, MaxCPUsPerNode", word)
		}
		if err != nil {
			return fmt.Errorf("%q: %q is no number", word, value)
		}
	}
	return nil
}

// of gives the rules with the names that accounts have in a run, for the tenants of it. All lines must be about one of them.
func (a *Admission) of(weights map[string]int64) (Admission, error) {
	out := *a
	known := func(tenant string) error {
		if _, ok := weights[tenant]; !ok && tenant != "root" {
			return fmt.Errorf("limits name %q, which is no tenant: write its name as in the trace, or root for all", tenant)
		}
		return nil
	}
	named := func(tenant string) string { // root is all tenants, even where one has that name
		if tenant == "root" {
			return tenant
		}
		return account(tenant)
	}
	out.Limits.Associations = slices.Clone(a.Limits.Associations)
	for i := range out.Limits.Associations {
		x := &out.Limits.Associations[i]
		if err := known(x.Account); err != nil {
			return out, err
		}
		x.Account = named(x.Account)
	}
	for _, list := range []*[]string{&out.Rules.AllowAccounts, &out.Rules.DenyAccounts} {
		*list = slices.Clone(*list)
		for i, tenant := range *list {
			if err := known(tenant); err != nil {
				return out, err
			}
			(*list)[i] = named(tenant)
		}
	}
	return out, nil
}

// into sets the rules of a virtual cluster.
func (a *Admission) into(v *sim.Virtual) {
	if !a.Empty() {
		v.SetLimits(a.Limits)
		v.SetRules(partition, a.Rules, 0)
	}
}

// ruled gives an idle cluster with the rules; nil = there are none.
func (s *Setup) ruled() *sim.Virtual {
	rules, err := s.Limits.of(s.Weights)
	if err != nil || rules.Empty() {
		return nil
	}
	v := sim.NewVirtual(Start, s.Fleet.Nodes(), s.accounts())
	rules.into(v)
	return v
}

// knowsLimits tells whether a scheduler is the product, which alone knows Slurm's limits.
func (s *Setup) knowsLimits() bool {
	x, err := s.scheduler(nil, nil)
	return err != nil || cmp.Or(x.Chooser, x.Divide) != "" || s.Scheduler == Schedulers()[0]
}
