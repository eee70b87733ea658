package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Touched holds a job's original settings, from before we changed it.
type Touched struct {
	ID     cluster.JobID   `json:"id"` // of an array: its own id, without a task
	Record int64           `json:"record"`
	Array  bool            `json:"array,omitempty"` // stands for all tasks that still wait in Record
	User   string          `json:"user"`
	Submit cluster.Instant `json:"submit,omitzero"`
	// The user's own request: 0 or empty = none.
	Begin cluster.Instant `json:"begin,omitempty"`
	Nodes []string        `json:"nodes,omitempty"`
	Limit cluster.Span    `json:"limit,omitempty"`
	// MaxNodes is the maximum number of nodes if a grant has lowered it; -1 = no limit, 0 = it has not.
	MaxNodes int `json:"max_nodes,omitempty"`
	// Partitions are the user's own if a grant has narrowed them; nil = it has not.
	Partitions []string `json:"partitions,omitempty"`
	// SiteFactor is the administrator's own value.
	SiteFactor int64 `json:"site_factor,omitempty"`
	// Slice is its part of a GPU on which it takes turns; nil = it takes none.
	Slice *cluster.Slice `json:"slice,omitempty"`
}

// State is the content of the local file: every job that we may have changed and that has not
// ended.
type State struct {
	Written cluster.Instant `json:"written,omitzero"`
	// Term is the leadership in which it was written; 0 = by a version that did not record it.
	Term int64 `json:"term,omitempty"`
	// Round is the newest round then; 0 = a version wrote it that did not record it.
	Round int64     `json:"round,omitempty"`
	Jobs  []Touched `json:"jobs"` // by id
}

// stateWord starts the file, so that no other file is mistaken for it.
const stateWord = "fairlease state 1\n"

// ReadState reads the file. A missing file is an empty state.
func ReadState(path string) (State, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read what jobs had: %w", err)
	}
	rest, ok := cutPrefix(text, stateWord)
	var s State
	if !ok {
		return State{}, fmt.Errorf("read what jobs had: %s is no state file of this fairlease; move it away", path)
	}
	if err := json.Unmarshal(rest, &s); err != nil {
		return State{}, fmt.Errorf("read what jobs had: %s: %w; move it away", path, err)
	}
	return s, nil
}

func cutPrefix(text []byte, prefix string) ([]byte, bool) {
	if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
		return text, false
	}
	return text[len(prefix):], true
}

// write replaces the file in one step, durably.
func (s State) write(path string) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = replaceFile(path, append([]byte(stateWord), text...), 0o640, true)
	}
	if err != nil {
		return fmt.Errorf("write down what jobs had: %w", err)
	}
	return nil
}

// with gives the state for a plan that is about to be carried out. It adds the jobs that the plan
// changes and drops those that have ended. An array ends with the last of its known tasks.
func (s State) with(plan *cluster.Plan) State {
	records := map[cluster.JobID]*cluster.Record{} // of jobs and tasks, and one task for every array
	for i := range plan.State.Records {
		r := &plan.State.Records[i]
		if r.Done != 0 {
			continue
		}
		records[r.ID] = r
		// A task that has had no attempt has the settings of all tasks that still wait.
		if t, ok := records[r.ID.Array()]; !ok || t.Terms+t.Restarts > 0 {
			records[r.ID.Array()] = r
		}
	}
	out := State{Written: plan.At}
	at := map[cluster.JobID]int{}
	add := func(t Touched) {
		if i, ok := at[t.ID]; ok {
			out.Jobs[i] = t
			return
		}
		at[t.ID] = len(out.Jobs)
		out.Jobs = append(out.Jobs, t)
	}
	for _, t := range s.Jobs {
		switch r, ok := records[t.ID]; {
		case !ok || r.User != t.User:
		case t.Array && r.Terms+r.Restarts > 0:
			add(t) // waiting tasks are not known one by one
		default:
			add(touched(r, t.ID, t.Record, t.Array))
		}
	}
	for i := range plan.Actions {
		a := &plan.Actions[i]
		r, ok := records[a.ID]
		if !ok || a.Suppressed || a.Verb == cluster.Notify {
			continue
		}
		add(touched(r, a.ID, a.Record, false))
		if a.Array {
			add(touched(r, a.ID.Array(), a.Record, true))
		}
	}
	slices.SortFunc(out.Jobs, func(a, b Touched) int { return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Record, b.Record)) })
	return out
}

// touched gives a job's original settings, as the entry of the job or of its array.
func touched(r *cluster.Record, id cluster.JobID, record int64, array bool) Touched {
	return Touched{ID: id, Record: record, Array: array, User: r.User, Submit: r.Submit,
		Begin: r.UserBegin, Nodes: r.UserNodes, Limit: r.UserLimit, MaxNodes: r.UserMaxNodes, Partitions: r.UserPartitions, SiteFactor: r.SiteFactor, Slice: r.Slice}
}

// Sliced gives the jobs of the journal that take turns on GPUs.
func Sliced(m *cluster.State) (out []Touched) {
	for i := range m.Records {
		if r := &m.Records[i]; r.Slice != nil && r.Done == 0 {
			out = append(out, touched(r, r.ID, r.ID.ID, false))
		}
	}
	return out
}

// had gives the jobs' original settings as records with nothing else, by id.
func (s State) had() []cluster.Record {
	out := make([]cluster.Record, len(s.Jobs))
	for i := range s.Jobs {
		t := &s.Jobs[i]
		out[i] = cluster.Record{ID: t.ID, User: t.User, Submit: t.Submit, UserBegin: t.Begin, UserNodes: t.Nodes, UserLimit: t.Limit,
			UserMaxNodes: t.MaxNodes, UserPartitions: t.Partitions, SiteFactor: t.SiteFactor, Slice: t.Slice}
	}
	return out
}

// recorder is a journal that also keeps the state file. When Commit returns nil, the file has the
// original settings of the plan's jobs.
type recorder struct {
	loop.Journal
	path  string
	term  int64 // of the leadership
	state State
	top   *top
	// restored is called when the journal is opened and has lost rounds.
	restored func(cluster.Restored)
}

// top is the newest term and round that this daemon has seen, or an earlier process of this host. A journal below it lost rounds.
type top struct {
	term, round int64
	filed       bool // the state file was read for that
}

func (t *top) see(term, round int64) { t.term, t.round = max(t.term, term), max(t.round, round) }

// record reads the state file, to continue the work of an earlier process.
func record(j loop.Journal, path string, term int64, top *top, restored func(cluster.Restored)) (*recorder, error) {
	s, err := ReadState(path)
	return &recorder{Journal: j, path: path, term: term, state: s, top: top, restored: restored}, err
}

// Open opens the journal, and sees whether it has got younger: it then lost rounds that this daemon or this host wrote.
func (r *recorder) Open(ctx context.Context) (cluster.State, error) {
	m, err := r.Journal.Open(ctx)
	if err != nil {
		return m, err
	}
	if r.top.round > m.Round {
		m.Restored, m.Had = &cluster.Restored{Knew: r.top.round, Found: m.Round}, r.state.had()
		r.restored(*m.Restored)
	}
	return m, nil
}

// Commit commits the round and then, if the plan acts, writes the state file. If that write
// fails, nothing is acted on; the round stands and the next one looks again.
func (r *recorder) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	if err := r.Journal.Commit(ctx, snap, plan); err != nil {
		return err
	}
	r.top.round = plan.Round // also if it is below what was known: that was reported
	acts := slices.ContainsFunc(plan.Actions, func(a cluster.Action) bool { return !a.Suppressed })
	if !acts && len(r.state.Jobs) == 0 {
		return nil
	}
	next := r.state.with(&plan)
	next.Term, next.Round = r.term, plan.Round
	if !acts && len(next.Jobs) == len(r.state.Jobs) && next.Term == r.state.Term {
		return nil
	}
	if err := next.write(r.path); err != nil {
		return err
	}
	r.state = next
	return nil
}
