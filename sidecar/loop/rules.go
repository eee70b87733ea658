package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Mode is the extent of fairlease's control.
type Mode string

// Observe changes nothing; Canary acts on some partitions; Act on all managed ones.
const (
	Observe Mode = "observe"
	Canary  Mode = "canary"
	Act     Mode = "act"
)

// PreemptionRule is the treatment of partitions in which Slurm may requeue, cancel or suspend jobs by itself.
type PreemptionRule string

// PreemptionObserve: such partitions are only observed. PreemptionKnown: the site knows, and they are managed all the same.
const (
	PreemptionObserve PreemptionRule = "observe"
	PreemptionKnown   PreemptionRule = "known"
)

// OptOut is the treatment of jobs whose users chose a way out of leases or of reclaims (cluster.Way).
type OptOut string

// Charge: their tenants pay for their GPU time. LeaveAlone: they have no lease, no tenant pays, and their GPUs are no
// capacity meanwhile. Refuse: the submit plugin refuses them; those that run in spite of it are
// charged. Override: the option is taken away.
const (
	Charge     OptOut = "charge"
	LeaveAlone OptOut = "leave"
	Refuse     OptOut = "refuse"
	Override   OptOut = "override"
)

// OptOuts is the treatment of each way out; "" = Charge.
type OptOuts struct {
	NoRequeue  OptOut `yaml:"no_requeue" json:"no_requeue,omitempty"`
	Contiguous OptOut `yaml:"contiguous" json:"contiguous,omitempty"`
	Session    OptOut `yaml:"session" json:"session,omitempty"`
	Het        OptOut `yaml:"het" json:"het,omitempty"`
	Other      OptOut `yaml:"other" json:"other,omitempty"`
	NoGPUs     OptOut `yaml:"no_gpus" json:"no_gpus,omitempty"`
	Expedite   OptOut `yaml:"expedite" json:"expedite,omitempty"`
}

// AllOut gives the meaning of one word for all jobs that cannot be leased. Jobs with --no-requeue and with --requeue=expedite can, and jobs without GPUs need
// no lease: all are charged.
func AllOut(word OptOut) OptOuts {
	return OptOuts{NoRequeue: Charge, Contiguous: word, Session: word, Het: word, Other: word, NoGPUs: Charge, Expedite: Charge}
}

// Of gives the treatment of a way; Charge for "".
func (o *OptOuts) Of(way cluster.Way) OptOut {
	word := Charge
	switch way {
	case cluster.WayNoRequeue:
		word = o.NoRequeue
	case cluster.WayContiguous:
		word = o.Contiguous
	case cluster.WaySession:
		word = o.Session
	case cluster.WayHet:
		word = o.Het
	case cluster.WayOther:
		word = o.Other
	case cluster.WayNoGPUs:
		word = o.NoGPUs
	case cluster.WayExpedite:
		word = o.Expedite
	}
	return cmp.Or(word, Charge)
}

// Rules selects the managed jobs and the tenants.
type Rules struct {
	Mode Mode `json:"mode"`
	// Tripped is true if fairlease only observes since its breaker has tripped. Resumed is an operator's word after that.
	Tripped bool            `json:"tripped,omitempty"`
	Resumed cluster.GoAhead `json:"resumed,omitzero"`
	// Partitions and QOS are managed; no QOS listed = all. Canary lists the
	// partitions that are acted on in canary mode.
	Partitions []string `json:"partitions"`
	QOS        []string `json:"qos,omitempty"`
	Canary     []string `json:"canary,omitempty"`
	// Chosen are the jobs that canary mode manages. It leaves the others alone.
	Chosen Chosen `json:"chosen,omitzero"`

	// Preemption says what becomes of partitions in which Slurm may stop jobs by itself; "" = PreemptionObserve.
	Preemption PreemptionRule `json:"preemption,omitempty"`

	ExcludeAccounts []string `json:"exclude_accounts,omitempty"`
	ExcludeUsers    []string `json:"exclude_users,omitempty"`
	ExcludeQOS      []string `json:"exclude_qos,omitempty"`

	// OptOut is the treatment of jobs whose users opt out of leases or reclaims.
	OptOut OptOuts `json:"opt_out,omitzero"`

	// TenantLevel is the depth in the account tree at which accounts are
	// tenants: 1 = the children of root.
	TenantLevel int `json:"tenant_level"`
	// Weights replaces the weights from Slurm's shares, by tenant.
	Weights map[string]int64 `json:"weights,omitempty"`
	// Budgets is the state of tenants' budgets, where there is something to say.
	Budgets map[string]cluster.TenantBudget `json:"budgets,omitempty"`
	// Cells describes virtual clusters; nil = there are none.
	Cells *cluster.Cells `json:"cells,omitempty"`
	// Profiles are the administrator's declarations for kinds of jobs.
	Profiles []cluster.Profile `json:"profiles,omitempty"`
}

// Chosen selects jobs by what is the same for as long as a job lives. A list that is empty selects all.
type Chosen struct {
	Accounts []string `json:"accounts,omitempty"` // of jobs, or of their tenants
	Users    []string `json:"users,omitempty"`
	Percent  int      `json:"percent,omitempty"` // of all jobs; 0 = all
}

// has tells whether a job is selected. Tasks of an array, and components of a heterogeneous job, go together.
func (c *Chosen) has(j *cluster.Job, tenant string) bool {
	in := func(list []string, names ...string) bool { return len(list) == 0 || overlap(list, names) }
	return in(c.Accounts, j.Account, tenant) && in(c.Users, j.User) && (c.Percent == 0 || place(cmp.Or(j.Het, j.ID.ID)) < c.Percent)
}

// place gives the place of a job id among hundred, by Fibonacci hashing: consecutive ids are spread evenly.
func place(id int64) int { return int(uint64(uint32(id)*2654435769) * 100 >> 32) }

// others tells whether canary mode leaves a job alone.
func (r *Rules) others(j *cluster.Job, tenant string) bool {
	return r.Mode == Canary && !r.Chosen.has(j, tenant)
}

// Selects tells whether canary mode leaves some jobs of its partitions alone.
func (r *Rules) Selects() bool {
	return r.Mode == Canary && len(r.Chosen.Accounts)+len(r.Chosen.Users)+r.Chosen.Percent > 0
}

// Acting lists the partitions whose jobs we gate, grant and reclaim now.
func (r *Rules) Acting() []string {
	if r.Tripped {
		return nil
	}
	switch r.Mode {
	case Act:
		return r.Partitions
	case Canary:
		return r.Canary
	}
	return nil
}

// verdicts are the partitions that are acted on, by name, where Slurm preempts: those that are only watched since Slurm may stop
// their jobs by itself, and those that are known to be clear of that.
type verdicts struct {
	preempted []cluster.Preempted
	clear     []string
}

func (v *verdicts) equal(o *verdicts) bool {
	return slices.Equal(v.preempted, o.preempted) && slices.Equal(v.clear, o.clear)
}

// preempted gives the verdicts. While what decides one has not been read, that of the last round holds; without one a partition is
// only watched, unless it is not even known whether Slurm preempts at all.
func (r *Rules) preempted(p *cluster.Preemption, partitions []cluster.Partition, was verdicts) verdicts {
	if p.None() || r.Preemption == PreemptionKnown {
		return verdicts{}
	}
	var out verdicts
	for _, name := range r.Acting() {
		why, free := p.Of(name, partitions, r.ManagesQOS), p.Known(name, partitions)
		if !free {
			free = slices.Contains(was.clear, name)
			at := slices.IndexFunc(was.preempted, func(x cluster.Preempted) bool { return x.Partition == name })
			if at >= 0 {
				why = was.preempted[at].Why
			} else if free {
				why = ""
			}
		}
		if why != "" {
			out.preempted = append(out.preempted, cluster.Preempted{Partition: name, Why: why})
		} else if free {
			out.clear = append(out.clear, name)
		}
	}
	slices.SortFunc(out.preempted, func(a, b cluster.Preempted) int { return strings.Compare(a.Partition, b.Partition) })
	slices.Sort(out.clear)
	return verdicts{slices.Compact(out.preempted), slices.Compact(out.clear)}
}

// ManagesQOS tells whether jobs of a QOS are managed.
func (r *Rules) ManagesQOS(qos string) bool {
	return (len(r.QOS) == 0 || slices.Contains(r.QOS, qos)) && !slices.Contains(r.ExcludeQOS, qos)
}

// only gives the first of the partitions that a job names, if those are all acting ones that it names; nil = they are not. In
// the others the job waits for a lease (package admit).
func only(preempted []cluster.Preempted, acting []string, j *cluster.Job) *cluster.Preempted {
	if len(preempted) == 0 {
		return nil
	}
	var first *cluster.Preempted
	for _, name := range j.Partitions {
		if !slices.Contains(acting, name) {
			continue
		}
		at := slices.IndexFunc(preempted, func(p cluster.Preempted) bool { return p.Partition == name })
		if at < 0 {
			return nil
		}
		if first == nil {
			first = &preempted[at]
		}
	}
	return first
}

// touch sets how far fairlease controls a case's job, why not further, and whether its GPU time
// is charged. preempted are the partitions that are only watched.
func (r *Rules) touch(c *cluster.Case, preempted []cluster.Preempted) {
	j := &c.Job
	c.Left, c.Way, c.ControlWhy = r.leave(j, c.Record.Tenant)
	c.Record.Uncharged = (c.Left == cluster.LeftOptOut || c.Way == cluster.WayNoGPUs) && r.OptOut.Of(c.Way) == LeaveAlone
	switch {
	case c.ControlWhy != "":
		c.Control = cluster.Unmanaged
	case r.Tripped:
		c.Control, c.ControlWhy = cluster.ObserveOnly, "the breaker has tripped (fairlease status): decisions are recorded, not carried out"
	case !overlap(j.Partitions, r.Acting()):
		c.Control, c.ControlWhy = cluster.ObserveOnly, fmt.Sprintf("mode %s: decisions are recorded, not carried out", r.Mode)
	case only(preempted, r.Acting(), j) != nil:
		c.Control, c.ControlWhy = cluster.ObserveOnly, only(preempted, r.Acting(), j).Says()
	case c.Record.Basis != nil && c.Record.Basis.Forced:
		c.Control, c.Way = cluster.FullControl, ""
	case c.Way == cluster.WayNoRequeue: // perhaps all jobs of a site
		c.Control, c.ControlWhy = cluster.NoReclaim, "was submitted with --no-requeue, so it keeps its GPUs until it ends (opt_out.no_requeue)"
	case c.Way != "":
		_, what := r.wayOut(j)
		c.Control, c.ControlWhy = cluster.NoReclaim, fmt.Sprintf("%s, so it keeps its GPUs until it ends (opt_out.%s)", what, c.Way)
	default:
		c.Control = cluster.FullControl
	}
}

// overlap tells whether two lists have a common element.
func overlap(a, b []string) bool {
	for i := range a {
		for k := range b {
			if a[i] == b[k] {
				return true
			}
		}
	}
	return false
}

// leave says why a job is left alone, and the way out that its user chose; "" = it is not.
func (r *Rules) leave(j *cluster.Job, tenant string) (cluster.Left, cluster.Way, string) {
	switch {
	case j.Aside != "":
		return cluster.LeftAside, "", "is set aside: " + j.Aside
	case j.Request.Size.Devices == 0 && j.GPUsHeld() == 0:
		return "", r.noGPUs(j, tenant), "asks for no GPUs"
	case tenant == "":
		return cluster.LeftNoTenant, "", fmt.Sprintf("account %q belongs to no tenant", j.Account)
	case !overlap(j.Partitions, r.Partitions):
		return cluster.LeftExcluded, "", fmt.Sprintf("partition %s is not managed", strings.Join(j.Partitions, ","))
	case len(r.QOS) > 0 && !slices.Contains(r.QOS, j.QOS):
		return cluster.LeftExcluded, "", fmt.Sprintf("QOS %s is not managed", j.QOS)
	case slices.Contains(r.ExcludeAccounts, j.Account):
		return cluster.LeftExcluded, "", fmt.Sprintf("account %s is excluded", j.Account)
	case slices.Contains(r.ExcludeUsers, j.User):
		return cluster.LeftExcluded, "", fmt.Sprintf("user %s is excluded", j.User)
	case slices.Contains(r.ExcludeQOS, j.QOS):
		return cluster.LeftExcluded, "", fmt.Sprintf("QOS %s is excluded", j.QOS)
	case r.others(j, tenant):
		return cluster.LeftExcluded, "", "is not among the jobs of mode canary (canary_jobs)"
	case j.Reservation != "" && !strings.HasPrefix(j.Reservation, cluster.ReservationPrefix):
		return cluster.LeftReservation, "", fmt.Sprintf("uses reservation %s", j.Reservation)
	}
	switch way, what := r.wayOut(j); {
	case way == "":
		return "", "", ""
	case r.OptOut.Of(way) == LeaveAlone:
		return cluster.LeftOptOut, way, fmt.Sprintf("%s, so it has no lease; its GPU time is charged to nobody (opt_out.%s)", what, way)
	case !j.Request.Leasable() || j.Het != 0 && j.Parts == 0 || r.partsOfCells(j):
		return cluster.LeftOptOut, way, fmt.Sprintf("%s, so it has no lease; its GPU time is charged to its tenant (opt_out.%s)", what, way)
	default:
		return "", way, ""
	}
}

// noGPUs gives WayNoGPUs for a tenant's job in a managed partition, else "".
func (r *Rules) noGPUs(j *cluster.Job, tenant string) cluster.Way {
	if tenant == "" || !overlap(j.Partitions, r.Partitions) || slices.Contains(r.ExcludeAccounts, j.Account) || slices.Contains(r.ExcludeUsers, j.User) ||
		slices.Contains(r.ExcludeQOS, j.QOS) || r.others(j, tenant) {
		return ""
	}
	return cluster.WayNoGPUs
}

// partsOfCells reports whether a job asks for shards where virtual clusters divide the GPUs: cells are of whole GPUs.
func (r *Rules) partsOfCells(j *cluster.Job) bool { return j.Request.Shards > 0 && r.Cells != nil }

// wayOut gives the option by which a job's user keeps its GPUs from being reclaimed, and names it in words; "" = none. The submit
// plugin (gate_opts_out) and its Lua version have the same order; slurmplugin/ways.txt tests them.
func (r *Rules) wayOut(j *cluster.Job) (cluster.Way, string) {
	switch {
	case j.Het != 0: // all its components have one way
		return cluster.WayHet, "is part of a heterogeneous job"
	case j.Request.Unplaceable == cluster.Contiguous && r.OptOut.Contiguous != Override:
		return cluster.WayContiguous, "cannot be placed by fairlease: " + j.Request.Unplaceable
	case !j.Batch:
		return cluster.WaySession, "is interactive"
	case j.Request.Unplaceable != "" && j.Request.Unplaceable != cluster.Contiguous:
		return cluster.WayOther, "cannot be placed by fairlease: " + j.Request.Unplaceable
	case r.partsOfCells(j):
		return cluster.WayOther, "asks for parts of GPUs, which virtual clusters do not divide"
	case cluster.Brackets(j.Request.Features):
		return cluster.WayOther, "cannot be placed by fairlease: constraint " + j.Request.Features
	case !j.Requeueable && r.OptOut.NoRequeue != Override:
		return cluster.WayNoRequeue, "was submitted with --no-requeue"
	}
	return "", ""
}
