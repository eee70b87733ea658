package cluster

import (
	compare "cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The rules of limits, as sacctmgr names them.
const (
	GrpTRES           = "GrpTRES" // of all running jobs together
	GrpJobs           = "GrpJobs"
	MaxJobs           = "MaxJobs" // of a user in an account
	MaxTRESPerUser    = "MaxTRESPerUser"
	MaxJobsPerUser    = "MaxJobsPerUser"
	MaxTRESPerAccount = "MaxTRESPerAccount"
	MaxJobsPerAccount = "MaxJobsPerAccount"
	MaxTRESPerJob     = "MaxTRESPerJob"
	MaxTRESPerNode    = "MaxTRESPerNode"
	MinTRESPerJob     = "MinTRESPerJob"
	MaxWall           = "MaxWall"
	MaxTRESMins       = "MaxTRESMins" // of a job: its resources times its time limit
	GrpTRESMins       = "GrpTRESMins" // of all jobs that ever ran, less what has decayed
	GrpWall           = "GrpWall"     // likewise, of their run times
)

// The flags of a QOS that change what starts, as the API names them.
const (
	OverPartQOS         = "OVERRIDE_PARTITION_QOS" // its limits come before those of the partition's QOS
	PartitionMaxNodes   = "PARTITION_MAXIMUM_NODE" // its jobs may exceed the partition's MaxNodes, …
	PartitionMinNodes   = "PARTITION_MINIMUM_NODE"
	PartitionTimeLimit  = "PARTITION_TIME_LIMIT"
	RequiresReservation = "REQUIRED_RESERVATION" // its jobs must name a reservation
)

// Cap is a limit.
type Cap struct {
	Rule string `json:"rule"`
	// TRES is the limited resource in Slurm's names: "cpu", "mem" (in MB), "node", "gres/gpu", "gres/gpu:MODEL"; "" = jobs, or
	// minutes with MaxWall and GrpWall.
	TRES string `json:"tres,omitempty"`
	Max  int64  `json:"max"`
	// Used are the minutes that were used of GrpTRESMins and GrpWall, at Limits.Read. Promised are those that jobs running then may
	// still use by their time limits.
	Used     int64 `json:"used,omitempty"`
	Promised int64 `json:"promised,omitempty"`
}

// Minutes tells whether it limits the minutes that jobs have used together.
func (c Cap) Minutes() bool { return c.Rule == GrpTRESMins || c.Rule == GrpWall }

// String writes the limit as Slurm does: "GrpTRES=gres/gpu=8", "GrpJobs=20".
func (c Cap) String() string {
	if c.TRES == "" {
		return fmt.Sprintf("%s=%d", c.Rule, c.Max)
	}
	return fmt.Sprintf("%s=%s=%d", c.Rule, c.TRES, c.Max)
}

// Compare orders by rule, resource, amount.
func (c Cap) Compare(o Cap) int {
	return compare.Or(strings.Compare(c.Rule, o.Rule), strings.Compare(c.TRES, o.TRES), compare.Compare(c.Max, o.Max))
}

// Association is the limits of an account (User is empty), or of a user in an account, perhaps in one partition only.
type Association struct {
	Account   string `json:"account"`
	User      string `json:"user_name,omitempty"`
	Partition string `json:"partition,omitempty"`
	Caps      []Cap  `json:"caps"`
	Unread    uint64 `json:"unread,omitempty"` // digest of limits that are not among Caps; 0 = none
}

// Compare orders by account, user, partition.
func (a *Association) Compare(o *Association) int {
	return compare.Or(strings.Compare(a.Account, o.Account), strings.Compare(a.User, o.User), strings.Compare(a.Partition, o.Partition))
}

// QOS is the limits of a QOS, and its flags that change what starts.
type QOS struct {
	Name  string   `json:"name"`
	Flags []string `json:"flags,omitempty"` // sorted
	Caps  []Cap    `json:"caps,omitempty"`
	// Unread is a digest of limits that are not among Caps; 0 = none.
	Unread uint64 `json:"unread,omitempty"`
}

// Limits are the limits to which Slurm holds jobs, as of the last look at slurmdbd. They are empty where
// AccountingStorageEnforce has no limits.
type Limits struct {
	Associations []Association `json:"associations,omitempty"` // in the order of Compare; those with limits
	QOS          []QOS         `json:"qos,omitempty"`          // by name; those with limits or flags
	// Others is what running jobs that are not among the jobs of an observation use.
	Others []Use `json:"others,omitempty"`
	// Read is when they were read. In an observation, 0 means that they have not been read since the start of the daemon.
	Read Instant `json:"limits_read,omitempty"`
	// Safe is true if Slurm starts no job whose time limit exceeds what is left of a limit on minutes.
	Safe bool `json:"safe,omitempty"`
	// Licenses are those that waiting jobs ask for, by name, without the licence of gates. They are as new as the jobs, and
	// do not depend on AccountingStorageEnforce.
	Licenses []LicenseCount `json:"licenses,omitempty"`
}

// Recall fills in limits that have not been read since the start of the daemon by the last known ones; nil = there are none. It
// reports whether it did.
func (l *Limits) Recall(known *Limits) bool {
	if l.Read > 0 || known == nil || len(known.Associations)+len(known.QOS) == 0 {
		return false
	}
	if len(l.Associations) == 0 {
		l.Associations = known.Associations
	}
	if len(l.QOS) == 0 {
		l.QOS = known.QOS
	}
	l.Read, l.Safe = known.Read, known.Safe
	return true
}

// Use is what jobs of one account, user, QOS and partition use.
type Use struct {
	Account   string `json:"account"`
	User      string `json:"user_name"`
	QOS       string `json:"qos,omitempty"`
	Partition string `json:"partition"`
	Jobs      int64  `json:"jobs"`
	CPUs      int64  `json:"cpus,omitempty"`
	MemoryMB  int64  `json:"memory_mb,omitempty"`
	Nodes     int64  `json:"nodes,omitempty"`
}

// Amount gives how much of a resource they use, as Cap.TRES names it. They hold no GPUs.
func (u *Use) Amount(tres string) int64 {
	switch tres {
	case "":
		return u.Jobs
	case "cpu":
		return u.CPUs
	case "mem":
		return u.MemoryMB
	case "node":
		return u.Nodes
	}
	return 0
}

// Compare orders by account, user, QOS, partition.
func (u *Use) Compare(o *Use) int {
	return compare.Or(strings.Compare(u.Account, o.Account), strings.Compare(u.User, o.User), strings.Compare(u.QOS, o.QOS), strings.Compare(u.Partition, o.Partition))
}

// LicenseCount is the licences of one name at a site, and what is not free of them.
type LicenseCount struct {
	Name  string `json:"name"` // as jobs ask for it: "matlab", "abaqus@flex"
	Total int64  `json:"total"`
	Used  int64  `json:"used,omitempty"` // by running jobs
	// Remote is true if slurmdbd has them for several clusters. Deficit are those in use outside of these.
	Remote  bool  `json:"remote,omitempty"`
	Deficit int64 `json:"deficit,omitempty"`
	// Reserved are those of reservations, by name.
	Reserved []ReservedLicenses `json:"reserved,omitempty"`
}

// ReservedLicenses are licences that a reservation keeps for its jobs from Start to End.
type ReservedLicenses struct {
	Reservation string  `json:"reservation"`
	Count       int64   `json:"count"`
	Start       Instant `json:"start,omitzero"`
	End         Instant `json:"end,omitzero"`
}

// LicenseNeed is a number of licences of one name.
type LicenseNeed struct {
	Name  string
	Count int64
}

// mostLicenses limits counts, so that no sum of them overflows.
const mostLicenses = 1 << 40

// ParseLicenses reads a request for licences in Slurm's syntax: "matlab:2,ansys" asks for both, "matlab|ansys:2" for one of
// the two (either). A name has at most one entry. Requests for licences of certain nodes ("name(nodes)") are not understood, and give nil.
func ParseLicenses(request string) (needs []LicenseNeed, either bool) {
	either = strings.Contains(request, "|")
	if strings.ContainsAny(request, "()") || either && strings.ContainsAny(request, ",;") {
		return nil, false
	}
	for item := range strings.FieldsFuncSeq(request, func(c rune) bool { return c == ',' || c == ';' || c == '|' }) {
		need := LicenseNeed{Name: item, Count: 1}
		if at := strings.IndexAny(item, ":="); at >= 0 {
			n, err := strconv.ParseInt(item[at+1:], 10, 64)
			if need.Name, need.Count = item[:at], min(n, mostLicenses); err != nil && n == 0 || n < 0 {
				return nil, false
			}
		}
		at := slices.IndexFunc(needs, func(o LicenseNeed) bool { return o.Name == need.Name })
		switch {
		case need.Count == 0 || need.Name == "": // Slurm drops it
		case at < 0:
			needs = append(needs, need)
		default:
			needs[at].Count = min(needs[at].Count+need.Count, mostLicenses)
		}
	}
	return needs, either && len(needs) > 1
}
