package slurm

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// wireJob is the part of a job record that we read, in Slurm's terms.
type wireJob struct {
	id        int64
	array     int64  // 0 = no array
	task      number // set once the task has a record of its own
	tasks     string // "0-4,11-19": the tasks that this record stands for
	arrayMax  int    // %limit, 0 = none
	states    []string
	reason    string
	remark    string // state_description
	hold      bool
	priority  number
	name      string
	user      string
	account   string
	qos       string
	partition []string
	batch     bool
	requeue   bool
	cron      bool
	het       int64
	depends   string
	resv      string
	mark      string // admin_comment
	comment   string
	wckey     string
	licenses  string
	// command is the script and its arguments, "" with --wrap. submitLine is the whole command
	// line of sbatch, from v0.0.44 on.
	command    string
	submitLine string
	dir        string // current_working_directory
	uid        number
	sluid      string // Slurm's own number of the job; from v0.0.44 on

	flags     []string
	shared    []string
	features  string
	contig    bool
	required  string
	excluded  string
	nodes     string
	nodeCount int
	maxNodes  int
	taskCount int
	tasksNode int
	cpus      int
	memNode   int64  // MB
	memCPU    int64  // MB
	wanted    string // tres_req_str
	got       string // tres_alloc_str
	perJob    string
	perNode   string
	perGPU    string // CPUs, memory and frequency that it asks for by its GPUs
	perSocket string
	perTask   string
	detail    []string // gres_detail
	parts     []nodePart

	submit, eligible, start, end, deadline int64  // seconds; 0 = none
	suspended, ranBefore                   int64  // suspend_time, pre_sus_time
	limit, least                           number // minutes: time_limit, time_minimum
	restarts                               int

	wrong string // the invalid part
}

// nodePart is the entry of one node in job_resources.
type nodePart struct {
	node     string
	cpus     int
	memoryMB int64
}

// readJob reads one record. Invalid parts are in wrong, and in r.junk, afterwards.
func readJob(r *reader) wireJob {
	var w wireJob
	members(r, func(name string) {
		switch name {
		case "job_id":
			w.id = r.number().n
		case "array_job_id":
			w.array = r.number().n
		case "array_task_id":
			w.task = r.number()
		case "array_task_string":
			w.tasks = r.text()
		case "array_max_tasks":
			w.arrayMax = r.count()
		case "job_state":
			w.states = r.list()
		case "state_reason":
			w.reason = r.text()
		case "state_description":
			w.remark = r.text()
		case "hold":
			w.hold = r.flag()
		case "priority":
			w.priority = r.number()
		case "name":
			w.name = r.text()
		case "user_id":
			w.uid = r.number()
		case "user_name":
			w.user = r.text()
		case "account":
			w.account = r.text()
		case "qos":
			w.qos = r.text()
		case "partition":
			w.partition = r.list()
		case "batch_flag":
			w.batch = r.flag()
		case "requeue":
			w.requeue = r.flag()
		case "cron":
			w.cron = r.text() != ""
		case "het_job_id":
			w.het = r.number().n
		case "dependency":
			w.depends = r.text()
		case "resv_name":
			w.resv = r.text()
		case "admin_comment":
			w.mark = r.text()
		case "comment":
			w.comment = r.text()
		case "wckey":
			w.wckey = r.text()
		case "command":
			w.command = r.text()
		case "step_id":
			w.sluid = readSLUID(r)
		case "submit_line":
			w.submitLine = r.text()
		case "current_working_directory":
			w.dir = r.text()
		case "flags":
			w.flags = r.list()
		case "shared":
			w.shared = r.list()
		case "features":
			w.features = r.text()
		case "contiguous":
			w.contig = r.flag()
		case "required_nodes":
			w.required = strings.Join(r.list(), ",")
		case "excluded_nodes":
			w.excluded = strings.Join(r.list(), ",")
		case "nodes":
			w.nodes = r.text()
		case "node_count":
			w.nodeCount = r.count()
		case "max_nodes":
			w.maxNodes = r.count()
		case "tasks":
			w.taskCount = r.count()
		case "tasks_per_node":
			w.tasksNode = r.count()
		case "cpus":
			w.cpus = r.count()
		case "memory_per_node":
			w.memNode = r.megabytes()
		case "memory_per_cpu":
			w.memCPU = r.megabytes()
		case "tres_req_str":
			w.wanted = r.text()
		case "tres_alloc_str":
			w.got = r.text()
		case "tres_per_job":
			w.perJob = r.text()
		case "tres_per_node":
			w.perNode = r.text()
		case "tres_per_socket":
			w.perSocket = r.text()
		case "tres_per_task":
			w.perTask = r.text()
		case "cpus_per_tres", "memory_per_tres", "tres_freq":
			w.perGPU += r.text()
		case "gres_detail":
			w.detail = readDetails(r)
		case "job_resources":
			w.parts = readResources(r)
		case "submit_time":
			w.submit = r.seconds()
		case "eligible_time":
			w.eligible = r.seconds()
		case "start_time":
			w.start = r.seconds()
		case "end_time":
			w.end = r.seconds()
		case "deadline":
			w.deadline = r.seconds()
		case "suspend_time":
			w.suspended = r.seconds()
		case "pre_sus_time":
			w.ranBefore = r.seconds()
		case "licenses":
			w.licenses = r.text()
		case "time_minimum":
			w.least = r.number()
		case "time_limit":
			w.limit = r.number()
		case "restart_cnt":
			w.restarts = r.count()
		default:
			r.skip()
		}
	}, false, "state_reason", "state_description", "name", "admin_comment", "comment", "wckey", "command", "step_id", "submit_line", "current_working_directory",
		"array_max_tasks", "excluded_nodes", "job_resources", "eligible_time", "deadline", "time_minimum")
	switch {
	case r.junk != "" || r.err != nil:
	case w.id <= 0 || len(w.states) == 0:
		r.junk = "a record without job_id or job_state"
	case w.task.set && (w.task.n < 0 || w.task.n > mostTask):
		r.junk, w.task = "a task whose number is out of range", number{}
	}
	w.wrong = r.junk
	if len(w.shared) == 0 { // API v0.0.45 never reports it
		w.shared = options(&w).shared
	}
	return w
}

// count reads a number of things, bounded; 0 where unset or unlimited.
func (r *reader) count() int { return int(bounded(r.number().n, mostThings)) }

// megabytes reads an amount of memory, bounded; 0 where unset or unlimited.
func (r *reader) megabytes() int64 { return bounded(r.number().n, mostMemory) }

// seconds reads a moment or a length in seconds, bounded; 0 where unset, unlimited or negative.
func (r *reader) seconds() int64 { return bounded(r.number().n, lastSecond) }

// readDetails reads gres_detail: a list with one entry a node, or one string.
// Its entries have commas of their own.
func readDetails(r *reader) []string {
	if r.kind() != '[' {
		if s := r.text(); s != "" {
			return []string{s}
		}
		return nil
	}
	var out []string
	r.array(func() { out = append(out, r.text()) })
	return out
}

// readResources reads the CPUs and memory on each node from job_resources.
func readResources(r *reader) []nodePart {
	var out []nodePart
	r.object(func(name string) {
		if name != "nodes" || r.kind() != '{' {
			r.skip()
			return
		}
		r.object(func(name string) {
			if name != "allocation" {
				r.skip()
				return
			}
			r.array(func() { out = append(out, readNodePart(r)) })
		})
	})
	return out
}

func readNodePart(r *reader) nodePart {
	var p nodePart
	r.object(func(name string) {
		switch name {
		case "name":
			p.node = r.text()
		case "cpus":
			p.cpus = int(bounded(readMember(r, "count"), mostThings))
		case "memory":
			p.memoryMB = bounded(readMember(r, "allocated"), mostMemory)
		default:
			r.skip()
		}
	})
	return p
}

// readMember reads one number of an object; a plain number is accepted too.
func readMember(r *reader, want string) int64 {
	if r.kind() != '{' {
		return r.number().n
	}
	var n int64
	r.object(func(name string) {
		if name == want {
			n = r.number().n
		} else {
			r.skip()
		}
	})
	return n
}

func (w *wireJob) is(state string) bool { return slices.Contains(w.states, state) }

// jobID gives the id of the record's job; for a waiting array that of its first task.
func (w *wireJob) jobID() cluster.JobID {
	if w.array > 0 && w.task.set {
		return cluster.TaskID(w.array, int32(w.task.n))
	}
	return cluster.JobID{ID: w.id}
}

func instant(seconds int64) cluster.Instant { return cluster.Instant(seconds * 1000) }
func span(seconds int64) cluster.Span       { return cluster.Span(seconds) * cluster.Second }

// half is the maximum error of a time that is cut to seconds.
const half = cluster.Second / 2

// within gives the middle of the second in which something happened. Slurm cuts times to whole
// seconds; time charged between a cut start and an uncut end would be half a second too long for
// every attempt.
func within(seconds int64) cluster.Instant {
	if seconds == 0 {
		return 0
	}
	return instant(seconds).Add(half)
}
