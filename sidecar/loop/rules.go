package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Mode says how far fairlease may go.
type Mode string

// Observe changes nothing; Canary acts on some partitions; Act on all managed ones.
const (
	Observe Mode = "observe"
	Canary  Mode = "canary"
	Act     Mode = "act"
)

// Rules says whose jobs are managed and who the tenants are.
type Rules struct {
	Mode Mode `json:"mode"`
	// Partitions and QOS are managed; no QOS listed = all. Canary lists the
	// partitions that are acted on in canary mode.
	Partitions []string `json:"partitions"`
	QOS        []string `json:"qos,omitempty"`
	Canary     []string `json:"canary,omitempty"`

	ExcludeAccounts []string `json:"exclude_accounts,omitempty"`
	ExcludeUsers    []string `json:"exclude_users,omitempty"`
	ExcludeQOS      []string `json:"exclude_qos,omitempty"`

	// TenantLevel is the depth in the account tree at which accounts are
	// tenants: 1 = the children of root.
	TenantLevel int `json:"tenant_level"`
	// Weights replaces the weights from Slurm's shares, by tenant.
	Weights map[string]int64 `json:"weights,omitempty"`
	// Cells describes virtual clusters; nil = there are none.
	Cells *cluster.Cells `json:"cells,omitempty"`
	// Profiles is what the administrator declares of kinds of jobs.
	Profiles []cluster.Profile `json:"profiles,omitempty"`
}

// Acting lists the partitions whose jobs we gate, grant and reclaim now.
func (r *Rules) Acting() []string {
	switch r.Mode {
	case Act:
		return r.Partitions
	case Canary:
		return r.Canary
	}
	return nil
}

// touch tells what may be done with a job, and why not more.
func (r *Rules) touch(j *cluster.Job, tenant string) (cluster.Touch, string) {
	if why := r.leave(j, tenant); why != "" {
		return cluster.Leave, why
	}
	if !overlap(j.Partitions, r.Acting()) {
		return cluster.Watch, fmt.Sprintf("mode %s: decisions are recorded, not carried out", r.Mode)
	}
	if !j.Requeueable {
		return cluster.Keep, "submitted with --no-requeue: never reclaimed"
	}
	return cluster.Act, ""
}

// overlap tells whether two lists have something in common.
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

func (r *Rules) leave(j *cluster.Job, tenant string) string {
	switch {
	case j.Request.GPUs == 0 && j.GPUsHeld() == 0:
		return "asks for no GPUs"
	case tenant == "":
		return fmt.Sprintf("account %q belongs to no tenant", j.Account)
	case !overlap(j.Partitions, r.Partitions):
		return fmt.Sprintf("partition %s is not managed", strings.Join(j.Partitions, ","))
	case len(r.QOS) > 0 && !slices.Contains(r.QOS, j.QOS):
		return fmt.Sprintf("QOS %s is not managed", j.QOS)
	case slices.Contains(r.ExcludeAccounts, j.Account):
		return fmt.Sprintf("account %s is excluded", j.Account)
	case slices.Contains(r.ExcludeUsers, j.User):
		return fmt.Sprintf("user %s is excluded", j.User)
	case slices.Contains(r.ExcludeQOS, j.QOS):
		return fmt.Sprintf("QOS %s is excluded", j.QOS)
	case j.Het:
		return "is part of a heterogeneous job"
	case !j.Batch:
		return "is interactive"
	case j.Reservation != "" && !strings.HasPrefix(j.Reservation, cluster.ReservationPrefix):
		return fmt.Sprintf("uses reservation %s", j.Reservation)
	case j.Request.Unplaceable != "":
		return "cannot be placed by fairlease: " + j.Request.Unplaceable
	case strings.ContainsAny(j.Request.Features, "[]()*,"):
		return "cannot be placed by fairlease: constraint " + j.Request.Features
	}
	return ""
}
