package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
	"github.com/fairlease/fairlease/sql"
)

// Look is what the journal keeps of a look at all GPUs.
type Look struct {
	Report *gpu.Report
	// Owners gives the job that alone holds a GPU; false = none, or several.
	Owners  func(*gpu.GPU) (cluster.JobKey, bool)
	Hours   []gpu.HourUse // since the last Look
	Remarks []gpu.Remark  // news since the last Look
	Stand   []gpu.Remark  // that hold now
	Usual   []remark.Baseline
}

// gpuRow is a row of gpus. Its numbers are rounded; negative = null.
type gpuRow struct {
	Node      string   `json:"node"`
	Index     int      `json:"gpu_index"`
	Instance  string   `json:"instance"`
	Model     string   `json:"model"`
	State     string   `json:"state"`
	Why       string   `json:"why"`
	Job       optional `json:"job_key"`
	Util      measured `json:"util"`
	Tensor    measured `json:"tensor"`
	Power     measured `json:"power_w"`
	Memory    measured `json:"memory_bytes"`
	Size      optional `json:"memory_size_bytes"`
	Idle      bool     `json:"idle"`
	IdleSince stamp    `json:"idle_since"`
}

type gpuKey struct {
	node     string
	index    int
	instance string
}

// measured is a number; negative = null.
type measured float64

func (k measured) MarshalJSON() ([]byte, error) {
	if k < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(k), 'f', -1, 64), nil // no exponent: PostgreSQL takes none for a bigint
}

// rounded rounds a counter to multiples of step.
func rounded(value, step float64) measured {
	if math.IsNaN(value) {
		return -1
	}
	return measured(math.Round(value/step) / (1 / step)) // a decimal fraction stays short
}

type gpuNodeRow struct {
	Node  string `json:"node"`
	State string `json:"state"`
	Why   string `json:"why"`
	Since stamp  `json:"since"`
	Read  stamp  `json:"read_at"`
}

type gpuUseRow struct {
	Hour      stamp           `json:"hour"`
	Job       cluster.JobKey  `json:"job_key"`
	Model     string          `json:"model"`
	Held      cluster.GPUTime `json:"held_ms"`
	Seen      cluster.GPUTime `json:"seen_ms"`
	Idle      cluster.GPUTime `json:"idle_ms"`
	UtilSum   float64         `json:"util_sum"`
	Util      cluster.GPUTime `json:"util_ms"`
	SMSum     float64         `json:"sm_sum"`
	SM        cluster.GPUTime `json:"sm_ms"`
	TensorSum float64         `json:"tensor_sum"`
	Tensor    cluster.GPUTime `json:"tensor_ms"`
	DRAMSum   float64         `json:"dram_sum"`
	DRAM      cluster.GPUTime `json:"dram_ms"`
	PowerSum  float64         `json:"power_sum"`
	Power     cluster.GPUTime `json:"power_ms"`
	Memory    int64           `json:"memory_bytes"`
}

type gpuMemoryRow struct {
	User      string `json:"user_name"`
	Command   string `json:"command"`
	GPUs      int    `json:"gpus"`
	Model     string `json:"model"`
	Bytes     int64  `json:"bytes"`
	Completed bool   `json:"completed"`
	Full      bool   `json:"full_failed"`
	At        stamp  `json:"at"`
}

type gpuSizeRow struct {
	Model string `json:"model"`
	Bytes int64  `json:"bytes"`
}

type gpuRemarkRow struct {
	Job   cluster.JobKey `json:"job_key"`
	Kind  string         `json:"kind"`
	Node  string         `json:"node"`
	GPU   int            `json:"gpu_index"`
	Since stamp          `json:"since"`
	Text  string         `json:"text"`
}

type gpuBaselineRow struct {
	User    string  `json:"user_name"`
	Command string  `json:"command"`
	GPUs    int     `json:"gpus"`
	Model   string  `json:"model"`
	Measure string  `json:"measure"`
	Jobs    int     `json:"jobs"`
	Mean    float64 `json:"mean"`
	Spread  float64 `json:"spread"`
	Apart   int     `json:"apart"`
	At      stamp   `json:"at"`
}

type gpuEventRow struct {
	Kind string   `json:"kind"`
	Job  optional `json:"job_key"`
	Node string   `json:"node"`
	Text string   `json:"text"`
}

var (
	clearGPUs     = sql.Query("clear_gpus")
	clearGPUNodes = sql.Query("clear_gpu_nodes")
	clearRemarks  = sql.Query("clear_gpu_remarks")
	putGPUs       = query[gpuRow]("put_gpus")
	putGPUNodes   = query[gpuNodeRow]("put_gpu_nodes")
	addGPUUse     = query[gpuUseRow]("add_gpu_use")
	putGPUMemory  = query[gpuMemoryRow]("put_gpu_memory")
	putGPUSizes   = query[gpuSizeRow]("put_gpu_sizes")
	putRemarks    = query[gpuRemarkRow]("put_gpu_remarks")
	putBaselines  = query[gpuBaselineRow]("put_gpu_baselines")
	putGPUEvents  = sql.Query("put_gpu_events")
	readMemory    = query[memoryNow]("gpu_memory")
	readSizes     = query[gpuSizeRow]("gpu_sizes")
	readBaselines = query[baselineNow]("gpu_baselines")
	readRemarks   = query[Remark]("gpu_remarks_now")
	readGPUs      = query[GPU]("gpus_now")
	readJobGPUs   = query[GPU]("gpus_of_job")
	readGPUNodes  = query[GPUNode]("gpu_nodes_now")
	readGPULooks  = query[GPULook]("gpu_looks")
)

// gpuTables are the tables of GPUs as a leader wrote them last.
type gpuTables struct {
	gpus   *table[gpuKey, gpuRow]
	nodes  *table[string, gpuNodeRow]
	memory *table[gpuMemoryKey, gpuMemoryRow]
	sizes  *table[string, gpuSizeRow]
	stand  *table[gpuRemarkKey, gpuRemarkRow]
	usual  *table[gpuBaselineKey, gpuBaselineRow]
}

type gpuMemoryKey struct {
	user, command string
	gpus          int
	model         string
}

type gpuRemarkKey struct {
	job        cluster.JobKey
	kind, node string
	gpu        int
}

type gpuBaselineKey struct {
	gpuMemoryKey
	measure string
}

func newGPUTables() *gpuTables {
	t := &gpuTables{
		gpus:   newTable(putGPUs, func(r gpuRow) gpuKey { return gpuKey{r.Node, r.Index, r.Instance} }),
		nodes:  newTable(putGPUNodes, func(r gpuNodeRow) string { return r.Node }),
		memory: newTable(putGPUMemory, func(r gpuMemoryRow) gpuMemoryKey { return gpuMemoryKey{r.User, r.Command, r.GPUs, r.Model} }),
		sizes:  newTable(putGPUSizes, func(r gpuSizeRow) string { return r.Model }),
		stand:  newTable(putRemarks, func(r gpuRemarkRow) gpuRemarkKey { return gpuRemarkKey{r.Job, r.Kind, r.Node, r.GPU} }),
		usual: newTable(putBaselines, func(r gpuBaselineRow) gpuBaselineKey {
			return gpuBaselineKey{gpuMemoryKey{r.User, r.Command, r.GPUs, r.Model}, r.Measure}
		}),
	}
	t.gpus.gone, t.nodes.gone = sql.Query("drop_gpus"), sql.Query("drop_gpu_nodes")
	t.memory.gone, t.stand.gone = sql.Query("drop_gpu_memory"), sql.Query("drop_gpu_remarks")
	return t
}

// Look writes down a look at all GPUs: only what has changed since the leader's last one. It fails with ErrDeposed when
// the lead is lost. It is for one goroutine.
func (s *Leadership) Look(ctx context.Context, l *Look) error {
	first := s.gpus == nil
	if first {
		s.gpus = newGPUTables()
	}
	w := &writer{}
	var nodes []gpuNodeRow
	for _, n := range l.Report.Nodes {
		nodes = append(nodes, gpuNodeRow{n.Node, string(n.State), foreign(n.Why), stamp(n.Since), stamp(n.Read - n.Read%cluster.Instant(cluster.Minute))})
	}
	at := stamp(l.Report.At)
	gpus := s.gpus.gpus.diff(gpuRows(l))
	states := s.gpus.nodes.diff(nodes)
	memory := s.gpus.memory.diff(memoryRows(l.Report.Memory))
	sizes := s.gpus.sizes.diff(sizeRows(l.Report.Sizes))
	stand := s.gpus.stand.diff(standRows(l.Stand))
	usual := s.gpus.usual.diff(usualRows(l.Usual))
	gpus.write(w, at)
	states.write(w, at)
	memory.write(w, at)
	sizes.write(w, at)
	stand.write(w, at)
	usual.write(w, at)
	add(w, addGPUUse, useRows(l.Hours))
	add(w, putGPUEvents, remarkRows(l.Remarks))
	if w.err != nil {
		return fmt.Errorf("writing the GPUs down: %w", w.err)
	}
	err := s.inTerm(ctx, func(tx pgx.Tx) error {
		for _, query := range []string{clearGPUs, clearGPUNodes, clearRemarks} {
			if first {
				if _, err := tx.Exec(ctx, query); err != nil {
					return err
				}
			}
		}
		for _, r := range w.rows {
			if _, err := tx.Exec(ctx, r.query, r.text); err != nil {
				return err
			}
		}
		return s.Notices.put(ctx, tx, idle(l.Remarks))
	})
	if err != nil {
		s.gpus = nil // the contents of the tables are not known now
		return fmt.Errorf("writing the GPUs down: %w", err)
	}
	gpus.keep()
	states.keep()
	memory.keep()
	sizes.keep()
	stand.keep()
	usual.keep()
	return nil
}

// foreign gives a text that another host may have made as PostgreSQL takes it, shortened.
func foreign(text string) string {
	return cluster.CutWrong(strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?"))
}

func gpuRows(l *Look) []gpuRow {
	rows := make([]gpuRow, len(l.Report.GPUs))
	for i := range l.Report.GPUs {
		g := &l.Report.GPUs[i]
		r := gpuRow{Node: g.Node, Index: g.Index, Instance: g.Instance, Model: foreign(g.Model), State: string(g.State), Why: foreign(g.Why), Idle: g.Idle, IdleSince: stamp(g.IdleSince),
			Util: rounded(g.Values[gpu.Util], 0.05), Tensor: rounded(g.Values[gpu.Tensor], 0.05), Power: rounded(g.Values[gpu.Power], 10), Memory: rounded(g.Values[gpu.Used], 1<<28), Size: optional(g.Values.Memory())}
		if key, ok := l.Owners(g); ok {
			r.Job = optional(key)
		}
		rows[i] = r
	}
	return rows
}

func useRows(hours []gpu.HourUse) []gpuUseRow {
	rows := make([]gpuUseRow, len(hours))
	for i, h := range hours {
		rows[i] = gpuUseRow{stamp(h.Hour), h.Job, h.Model, h.Held, h.Seen, h.Idle, h.Util.Sum, h.Util.Time, h.SM.Sum, h.SM.Time, h.Tensor.Sum, h.Tensor.Time,
			h.DRAM.Sum, h.DRAM.Time, h.Power.Sum, h.Power.Time, h.Memory}
	}
	return rows
}

func memoryRows(list []cluster.MemoryUse) []gpuMemoryRow {
	rows := make([]gpuMemoryRow, len(list))
	for i, x := range list {
		rows[i] = gpuMemoryRow{x.Type.User, x.Type.Command, x.Type.GPUs, x.Model, x.Bytes, x.Completed, x.Full, stamp(x.At - x.At%cluster.Instant(cluster.Hour))}
	}
	return rows
}

func sizeRows(list []cluster.GPUMemory) []gpuSizeRow {
	rows := make([]gpuSizeRow, len(list))
	for i, x := range list {
		rows[i] = gpuSizeRow{x.Model, x.Bytes}
	}
	return rows
}

// remarkRows makes events of remarks. The same remark about jobs of one array is one event: one command submits thousands of them.
func remarkRows(list []gpu.Remark) []gpuEventRow {
	type cause struct {
		kind  string
		array cluster.JobID
	}
	rows, jobs, at := make([]gpuEventRow, 0, len(list)), []map[cluster.JobID]bool{}, map[cause]int{}
	for _, x := range list {
		_, task := x.ID.Index()
		i, shared := at[cause{x.Kind, x.ID.Array()}]
		if task && shared && !jobs[i][x.ID] {
			jobs[i][x.ID] = true
			continue
		}
		if !task || !shared {
			at[cause{x.Kind, x.ID.Array()}] = len(rows)
		}
		rows, jobs = append(rows, gpuEventRow{x.Kind, optional(x.Job), x.Node, foreign(x.Text)}), append(jobs, map[cluster.JobID]bool{x.ID: true})
	}
	for i := range rows {
		if n := len(jobs[i]) - 1; n > 0 {
			rows[i].Text += fmt.Sprintf(" (and %d more of its array)", n)
		}
	}
	return rows
}

func standRows(list []gpu.Remark) []gpuRemarkRow {
	rows := make([]gpuRemarkRow, len(list))
	for i, x := range list {
		rows[i] = gpuRemarkRow{x.Job, x.Kind, x.Node, x.GPU, stamp(x.Since), foreign(x.Text)}
	}
	return rows
}

func usualRows(list []remark.Baseline) []gpuBaselineRow {
	rows := make([]gpuBaselineRow, len(list))
	for i, x := range list {
		rows[i] = gpuBaselineRow{x.Type.User, x.Type.Command, x.Type.GPUs, x.Model, x.Measure, x.Jobs, x.Mean, x.Spread, x.Apart, stamp(x.At)}
	}
	return rows
}

// baselineNow is a row of gpu_baselines, as it is read.
type baselineNow struct {
	User         string `db:"user_name"`
	Command      string
	GPUs         int
	Model        string
	Measure      string
	Jobs         int
	Mean, Spread float64
	Apart        int
	At           time.Time
}

// Baselines gives what is usual for jobs of each type on each model, as written last.
func (s *Leadership) Baselines(ctx context.Context) ([]remark.Baseline, error) {
	rows, err := collect[baselineNow](ctx, s.store.base, "reading what is usual for types of jobs", readBaselines)
	var out []remark.Baseline
	for _, r := range rows {
		out = append(out, remark.Baseline{Type: cluster.JobType{User: r.User, Command: r.Command, GPUs: r.GPUs}, Model: r.Model, Measure: r.Measure,
			Level: cluster.Level{Jobs: r.Jobs, Mean: r.Mean, Spread: r.Spread}, Apart: r.Apart, At: cluster.InstantOf(r.At)})
	}
	return out, err
}

// memoryNow is a row of gpu_memory, as it is read.
type memoryNow struct {
	User      string `db:"user_name"`
	Command   string
	GPUs      int
	Model     string
	Bytes     int64
	Completed bool
	Full      bool `db:"full_failed"`
	At        time.Time
}

// Memory gives how much memory of a GPU each type of job used, and how much each model has, as written last.
func (s *Leadership) Memory(ctx context.Context) ([]cluster.MemoryUse, []cluster.GPUMemory, error) {
	const doing = "reading the memory that jobs used"
	rows, err := collect[memoryNow](ctx, s.store.base, doing, readMemory)
	if err != nil {
		return nil, nil, err
	}
	sizes, err := collect[gpuSizeRow](ctx, s.store.base, doing, readSizes)
	if err != nil {
		return nil, nil, err
	}
	var uses []cluster.MemoryUse
	for _, r := range rows {
		uses = append(uses, cluster.MemoryUse{Type: cluster.JobType{User: r.User, Command: r.Command, GPUs: r.GPUs}, Model: r.Model, Bytes: r.Bytes,
			Completed: r.Completed, Full: r.Full, At: cluster.InstantOf(r.At)})
	}
	var all []cluster.GPUMemory
	for _, r := range sizes {
		all = append(all, cluster.GPUMemory{Model: r.Model, Bytes: r.Bytes})
	}
	return uses, all, nil
}

// GPU is a GPU, or MIG instance, as it was seen last.
type GPU struct {
	Node     string  `json:"node"`
	Index    int     `json:"index" db:"gpu_index"`
	Instance string  `json:"instance,omitempty"`
	Model    string  `json:"model"`
	State    string  `json:"state"`
	Why      string  `json:"why,omitempty"`
	Job      *string `json:"job,omitempty" db:"slurm_id"`
	// Key is our own number of the job: Slurm reuses its ids.
	Key       *cluster.JobKey `json:"job_key,omitempty" db:"job_key"`
	Name      *string         `json:"job_name,omitempty" db:"job_name"`
	User      *string         `json:"user,omitempty" db:"user_name"`
	Tenant    *string         `json:"tenant,omitempty"`
	Util      *float64        `json:"util,omitempty"`
	Tensor    *float64        `json:"tensor,omitempty"`
	Power     *float64        `json:"power_w,omitempty" db:"power_w"`
	Memory    *int64          `json:"memory_bytes,omitempty" db:"memory_bytes"`
	Size      *int64          `json:"memory_size_bytes,omitempty" db:"memory_size_bytes"`
	Idle      bool            `json:"idle"`
	IdleSince *time.Time      `json:"idle_since,omitempty" db:"idle_since"`
	Read      *time.Time      `json:"read_at,omitempty" db:"read_at"`
	Remarks   *string         `json:"remarks,omitempty"` // their kinds, on it or on its job as a whole
}

// Remark says that a running job does not do what is usual for it.
type Remark struct {
	Job   string         `json:"job" db:"slurm_id"`
	Key   cluster.JobKey `json:"job_key" db:"job_key"` // our own number of the job: Slurm reuses its ids
	User  string         `json:"user" db:"user_name"`
	Kind  string         `json:"kind"`
	Node  string         `json:"node,omitempty"`
	GPU   *int           `json:"gpu,omitempty" db:"gpu_index"`
	Since time.Time      `json:"since,omitzero"`
	Text  string         `json:"text"`
}

// Remarks lists those that hold now, the oldest first, at most limit: on a job, by its key; 0 = on all.
func (s GPUs) Remarks(ctx context.Context, job cluster.JobKey, limit int) ([]Remark, error) {
	return collect[Remark](ctx, s.base, "reading the remarks on jobs", readRemarks, job, limit)
}

// List lists the GPUs by node and index, at most limit: those of a node, of a user or of the newest job with an id; "" = all.
func (s GPUs) List(ctx context.Context, of string, limit int) ([]GPU, error) {
	id, _ := cluster.ParseJobID(of) // else it is no job's
	return collect[GPU](ctx, s.base, "reading the GPUs", readGPUs, of, limit, id.ID)
}

// GPUNode is a node whose GPUs are not seen well.
type GPUNode struct {
	Node  string     `json:"node"`
	State string     `json:"state"`
	Why   string     `json:"why"`
	Since *time.Time `json:"since,omitempty"`
	Read  *time.Time `json:"read_at,omitempty" db:"read_at"`
}

// GPULook counts the nodes whose GPUs are in one state.
type GPULook struct {
	State string     `json:"state"`
	Nodes int        `json:"nodes"`
	Read  *time.Time `json:"read_at,omitempty" db:"read_at"` // the newest
}

// Looks says how well the GPUs of all nodes are seen, by state, and lists the nodes that are not fresh; both are empty
// where GPUs are not looked at.
func (s GPUs) Looks(ctx context.Context) (states []GPULook, nodes []GPUNode, err error) {
	const doing = "reading how well GPUs are seen"
	if states, err = collect[GPULook](ctx, s.base, doing, readGPULooks); err == nil {
		nodes, err = collect[GPUNode](ctx, s.base, doing, readGPUNodes)
	}
	return states, nodes, err
}
