package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Rows are sent as JSON objects that PostgreSQL turns into rows of the table
// (json_populate_recordset). So the tags are the columns' names, and queries use them. All fields
// are comparable with ==, which detects unchanged rows.

// stamp is an Instant as a timestamptz; "none" is null.
type stamp cluster.Instant

func (s stamp) MarshalJSON() ([]byte, error) {
	t := cluster.Instant(s).Time()
	switch {
	case s == 0:
		return []byte("null"), nil
	case t.Year() > 9999: // PostgreSQL's largest times are "never" in Slurm
		return []byte(`"infinity"`), nil
	case t.Year() < 1:
		return []byte(`"-infinity"`), nil
	}
	return t.AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

// optional is a number for which 0 means null.
type optional int64

func (o optional) MarshalJSON() ([]byte, error) {
	if o == 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(o), 10), nil
}

// millionths is a number in millionths as an exact numeric.
type millionths int64

func (m millionths) MarshalJSON() ([]byte, error) {
	sign, abs := "", uint64(m)
	if m < 0 {
		sign, abs = "-", -uint64(m)
	}
	return fmt.Appendf(nil, "%s%d.%06d", sign, abs/1e6, abs%1e6), nil
}

// rho is a fairness degree as a numeric.
type rho cluster.Rho

func (r rho) MarshalJSON() ([]byte, error) {
	if cluster.Rho(r) == cluster.Infinite {
		return []byte(`"Infinity"`), nil
	}
	return millionths(r).MarshalJSON()
}

// list is a text[], one element per line.
type list string

func listOf(names []string) list { return list(strings.Join(names, "\n")) }

func (l list) MarshalJSON() ([]byte, error) {
	if l == "" {
		return []byte("[]"), nil
	}
	return json.Marshal(strings.Split(string(l), "\n"))
}

// document is a value as JSON.
type document string

func documentOf(v any) document {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of this package are always valid JSON
	}
	return document(text)
}

func (d document) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("null"), nil
	}
	return []byte(d), nil
}

// date is a day, UTC: its first moment.
type date cluster.Instant

func (d date) MarshalJSON() ([]byte, error) {
	return time.UnixMilli(int64(d)).UTC().AppendFormat(nil, `"2006-01-02"`), nil
}

// rowsText gives rows as the JSON array that the queries take. PostgreSQL's text cannot hold NUL:
// it becomes U+FFFD, so that no job's name can stop the journal.
func rowsText(rows any) ([]byte, error) {
	text, err := json.Marshal(rows)
	if err != nil || !bytes.Contains(text, []byte(`\u0000`)) {
		return text, err
	}
	clean := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			clean = append(clean, text[i])
			continue
		}
		if bytes.HasPrefix(text[i:], []byte(`\u0000`)) {
			clean = append(clean, `\ufffd`...)
			i += 5
			continue
		}
		clean = append(clean, text[i], text[i+1]) // an escape is never split
		i++
	}
	return clean, nil
}

type roundRow struct {
	Number            int64  `json:"number"`
	At                stamp  `json:"at"`
	LeaderTerm        int64  `json:"leader_term"`
	Preset            string `json:"preset"`
	Nodes             int    `json:"nodes"`
	NodesBad          int    `json:"nodes_bad"`
	GPUs              int    `json:"gpus"`
	Tenants           int    `json:"tenants"`
	Jobs              int    `json:"jobs"`
	JobsRunning       int    `json:"jobs_running"`
	JobsWaiting       int    `json:"jobs_waiting"`
	JobsAside         int    `json:"jobs_aside"`
	Leases            int    `json:"leases"`
	LeasesEnded       int    `json:"leases_ended"`
	Claims            int    `json:"claims"`
	Actions           int    `json:"actions"`
	Gates             int    `json:"gates"`
	ActionsSuppressed int    `json:"actions_suppressed"`
	Events            int    `json:"events"`
}

type tenantRow struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
	Gone   stamp  `json:"gone_at"`
}

type nodeRow struct {
	Name       string   `json:"name"`
	GPUs       document `json:"gpus"`
	CPUs       int      `json:"cpus"`
	MemoryMB   int64    `json:"memory_mb"`
	Partitions list     `json:"partitions"`
	Features   list     `json:"features"`
	Bad        string   `json:"bad"`
	Busy       string   `json:"busy"`
	Gone       stamp    `json:"gone_at"`
}

type jobRow struct {
	Key        cluster.JobKey   `json:"key"`
	SlurmID    string           `json:"slurm_id"`
	SlurmJob   int64            `json:"slurm_job"`
	Name       string           `json:"name"`
	User       string           `json:"user_name"`
	Account    string           `json:"account"`
	Tenant     string           `json:"tenant"`
	QOS        string           `json:"qos"`
	Partitions list             `json:"partitions"`
	State      cluster.JobState `json:"state"`
	Inactive   string           `json:"inactive"`
	Outcome    string           `json:"outcome"`
	Control    cluster.Control  `json:"control"`
	ControlWhy string           `json:"control_why"`
	GPUs       cluster.GPUCount `json:"gpus"`
	Model      string           `json:"model"`
	Nodes      int              `json:"nodes"`
	CPUs       int              `json:"cpus"`
	MemoryMB   int64            `json:"memory_mb"`
	Limit      cluster.Span     `json:"limit_ms"`
	Submitted  stamp            `json:"submitted_at"`
	Eligible   stamp            `json:"eligible_at"`
	Done       stamp            `json:"done_at"`
	UserBegin  stamp            `json:"user_begin_at"`
	Restarts   int              `json:"restarts"`
	Terms      int              `json:"terms"`
	Failed     int              `json:"failed"`
	Avoid      stamp            `json:"avoid_until"`
	Said       string           `json:"said"`
	Alloc      cluster.GPUTime  `json:"alloc_gpu_ms"`
	Due        cluster.GPUTime  `json:"due_gpu_ms"`
	Lost       cluster.GPUTime  `json:"lost_gpu_ms"`
	extraColumns
	othersColumns
}

// othersColumns are the columns of requeues that fairlease did not order: null where there were none, as for nearly all jobs.
type othersColumns struct {
	Others    int                  `json:"others_requeues,omitzero"`
	Preempted int                  `json:"others_preempted,omitzero"`
	At        stamp                `json:"others_requeued_at,omitzero"`
	Cause     cluster.RequeueCause `json:"others_requeue_cause,omitzero"`
	Node      string               `json:"others_requeue_node,omitzero"`
}

func othersOf(x *cluster.Requeues) othersColumns {
	if x == nil {
		return othersColumns{}
	}
	return othersColumns{x.Count, x.Preempted, stamp(x.At), x.Cause, x.Node}
}

// extraColumns are the columns of work beyond GPU time.
type extraColumns struct {
	Extra    cluster.GPUTime `json:"extra_gpu_ms" db:"extra_gpu_ms"`
	ExtraDue cluster.GPUTime `json:"extra_due_gpu_ms" db:"extra_due_gpu_ms"`
}

func extraOf(x cluster.Extra) extraColumns { return extraColumns{x.Alloc, x.Due} }

type statusRow struct {
	reasonColumns
	Job       cluster.JobKey  `json:"job_key"`
	Round     int64           `json:"round"`
	At        stamp           `json:"at"`
	Until     stamp           `json:"until_at"`
	For       optional        `json:"for_job"`
	Rho       rho             `json:"rho"`
	Alloc     cluster.GPUTime `json:"alloc_gpu_ms"`
	Due       cluster.GPUTime `json:"due_gpu_ms"`
	Gate      stamp           `json:"gate_until"`
	OtherJob  optional        `json:"other_job"`
	SlurmSays string          `json:"slurm_says"`
	Details   document        `json:"details"`
	extraColumns
}

// reasonColumns are the columns of job_statuses that hold a reason unchanged.
type reasonColumns struct {
	Code        cluster.Code       `db:"code" json:"code"`
	Pool        string             `db:"pool" json:"pool"`
	Need        cluster.GPUCount   `db:"need_gpus" json:"need_gpus"`
	Free        cluster.GPUCount   `db:"free_gpus" json:"free_gpus"`
	Behind      cluster.Span       `db:"behind_ms" json:"behind_ms"`
	Other       string             `db:"other" json:"other"`
	OtherBehind cluster.Span       `db:"other_behind_ms" json:"other_behind_ms"`
	Rank        int                `db:"rank" json:"rank"`
	Note        string             `db:"note" json:"note"`
	Cell        string             `db:"cell" json:"cell"`
	Chain       string             `db:"chain" json:"chain"`
	Right       cluster.LeaseClass `db:"for_right" json:"for_right"`
	Queue       cluster.Queuer     `db:"queue" json:"queue"`
}

type settingsRow struct {
	Settings document `json:"settings"`
}

type leaseKey struct {
	Job  cluster.JobKey `json:"job_key"`
	Term int            `json:"term"`
}

type leaseRow struct {
	leaseKey
	SlurmID   string             `json:"slurm_id"`
	Tenant    string             `json:"tenant"`
	User      string             `json:"user_name"`
	State     cluster.LeaseState `json:"state"`
	Class     cluster.LeaseClass `json:"class"`
	Pool      string             `json:"pool"`
	GPUs      cluster.GPUCount   `json:"gpus"`
	Nodes     list               `json:"nodes"`
	Holdings  document           `json:"holdings"`
	Granted   stamp              `json:"granted_at"`
	Start     stamp              `json:"started_at"`
	End       stamp              `json:"ends_at"`
	Noticed   stamp              `json:"noticed_at"`
	Ended     stamp              `json:"ended_at"`
	Adopted   bool               `json:"adopted"`
	Behind    cluster.JobKey     `json:"behind"`
	Why       string             `json:"why"`
	GrantedIn int64              `json:"granted_round"`
	EndedIn   optional           `json:"ended_round"`
	AllocFrom known              `json:"alloc_from_gpu_ms"`
}

// known is a GPU time that may be unknown: then it is null.
type known struct {
	time cluster.GPUTime
	ok   bool
}

func (k known) MarshalJSON() ([]byte, error) {
	if !k.ok {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(k.time), 10), nil
}

// markRow is what a job had received at the boundary between two leases.
type markRow struct {
	leaseKey
	Next  int             `json:"next_term"`
	Ended stamp           `json:"ended_at"`
	Alloc cluster.GPUTime `json:"alloc_gpu_ms"`
}

type claimKey struct {
	Job  cluster.JobKey `json:"job_key"`
	Made stamp          `json:"made_at"`
}

type claimRow struct {
	claimKey
	Pool  string           `json:"pool"`
	GPUs  cluster.GPUCount `json:"gpus"`
	Nodes list             `json:"nodes"`
	At    stamp            `json:"at"`
	Ended stamp            `json:"ended_at"`
}

type accountKey struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
}

type ledgerRow struct {
	sampleRow
	Weight      int64           `json:"weight"`
	Base        millionths      `json:"base_gpus"`
	Lent        millionths      `json:"lent_gpus"`
	Borrowed    millionths      `json:"borrowed_gpus"`
	Behind      cluster.Span    `json:"behind_ms"`
	WindowAlloc cluster.GPUTime `json:"window_alloc_gpu_ms"`
	WindowDue   cluster.GPUTime `json:"window_due_gpu_ms"`
	RhoAll      rho             `json:"rho_all"`
	Owed        cluster.GPUTime `json:"owed_gpu_ms"`
	Repays      millionths      `json:"repays_gpus"`

	WindowExtra    cluster.GPUTime `json:"window_extra_gpu_ms"`
	WindowExtraDue cluster.GPUTime `json:"window_extra_due_gpu_ms"`
}

// sampleRow is the part of a ledger row that tenant_history stores.
type sampleRow struct {
	accountKey
	At          stamp            `json:"at"`
	Entitlement millionths       `json:"entitlement_gpus"`
	Demand      millionths       `json:"demand_gpus"`
	Holds       cluster.GPUCount `json:"holds_gpus"`
	Waiting     int              `json:"waiting_jobs"`
	Deficit     cluster.GPUTime  `json:"deficit_gpu_ms"`
	Alloc       cluster.GPUTime  `json:"alloc_gpu_ms"`
	Due         cluster.GPUTime  `json:"due_gpu_ms"`
	Rho         rho              `json:"rho"`
	extraColumns
}

type bucketKey struct {
	accountKey
	Start stamp `json:"start_at"`
}

type bucketRow struct {
	bucketKey
	Alloc cluster.GPUTime `json:"alloc_gpu_ms"`
	Due   cluster.GPUTime `json:"due_gpu_ms"`
	extraColumns
}

type poolRow struct {
	Pool        string           `json:"pool"`
	At          stamp            `json:"at"`
	GPUs        cluster.GPUCount `json:"gpus"`
	BadGPUs     cluster.GPUCount `json:"bad_gpus"`
	Capacity    cluster.GPUTime  `json:"capacity_gpu_ms"`
	Tenants     cluster.GPUTime  `json:"tenants_gpu_ms"`
	Untouchable cluster.GPUTime  `json:"untouchable_gpu_ms"`
	Overhead    cluster.GPUTime  `json:"overhead_gpu_ms"`
	Idle        cluster.GPUTime  `json:"idle_gpu_ms"`
	Bad         cluster.GPUTime  `json:"bad_gpu_ms"`
	Stops       cluster.GPUTime  `json:"stops_gpu_ms"`
}

type chargeKey struct {
	Day    date   `json:"day"`
	Tenant string `json:"tenant"`
	User   string `json:"user_name"`
	Pool   string `json:"pool"`
}

type chargeRow struct {
	chargeKey
	Time cluster.GPUTime `json:"gpu_ms"`
}

type lendingKey struct {
	Pool     string `json:"pool"`
	Lender   string `json:"lender"`
	Borrower string `json:"borrower"`
}

type lendingRow struct {
	lendingKey
	GPUs millionths `json:"gpus"`
	At   stamp      `json:"at"`
}

type lendingDayRow struct {
	Day date `json:"day"`
	lendingKey
	Time millionths `json:"gpu_ms"`
}

type lossRow struct {
	Round   int64           `json:"round"`
	Job     cluster.JobKey  `json:"job_key"`
	At      stamp           `json:"at"`
	SlurmID string          `json:"slurm_id"`
	Tenant  string          `json:"tenant"`
	User    string          `json:"user_name"`
	Pool    string          `json:"pool"`
	Term    int             `json:"lease_term"`
	Time    cluster.GPUTime `json:"gpu_ms"`
	Most    cluster.GPUTime `json:"most_gpu_ms"`

	Certainty cluster.Certainty `json:"certainty"`
	Command   string            `json:"command"`
	GPUs      int               `json:"type_gpus"`
}

type actionRow struct {
	Round       int64        `json:"round"`
	Ordinal     int          `json:"ordinal"`
	At          stamp        `json:"at"`
	Verb        cluster.Verb `json:"verb"`
	Job         optional     `json:"job_key"`
	SlurmID     string       `json:"slurm_id"`
	Until       stamp        `json:"until_at"`
	Nodes       list         `json:"nodes"`
	Reservation string       `json:"reservation"`
	Limit       cluster.Span `json:"limit_ms"`
	Signal      string       `json:"signal"`
	Suppressed  bool         `json:"suppressed"`
	Reason      document     `json:"reason"`
}

// failedGate is a gate that could not be shut.
type failedGate struct {
	actionRow
	OK      bool         `json:"ok"`
	Skipped bool         `json:"skipped"`
	Error   string       `json:"error"`
	Done    stamp        `json:"done_at"`
	Took    cluster.Span `json:"took_ms"`
}

type outcomeRow struct {
	Round   int64        `json:"round"`
	Ordinal int          `json:"ordinal"`
	OK      bool         `json:"ok"`
	Skipped bool         `json:"skipped"`
	Error   string       `json:"error"`
	Done    stamp        `json:"done_at"`
	Took    cluster.Span `json:"took_ms"`
}

type eventRow struct {
	Round   int64    `json:"round"`
	Ordinal int      `json:"ordinal"`
	At      stamp    `json:"at"`
	Kind    string   `json:"kind"`
	Job     optional `json:"job_key"`
	Node    string   `json:"node"`
	Text    string   `json:"text"`
}
