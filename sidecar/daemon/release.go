package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Release returns every job to Slurm as its user submitted it, and removes everything that
// fairlease added: gates, site factors, required nodes, reservations. It finds them in the state
// file, in the journal's memory if available, and in Slurm itself, by the submit plugin's mark
// and the names of reservations.
type Release struct {
	Cluster loop.Cluster
	State   State
	// Of is the cluster of the memory; the zero value = unknown.
	Of     cluster.Identity
	Memory cluster.State // of the journal; empty if there is none
	// Patience is how long to wait for jobs that still clean up after a requeue. After that they
	// are opened too, and Slurm starts them two minutes later.
	Patience time.Duration
	// Only is the owner of the jobs to release; the zero value = everybody, with all reservations.
	Only Whose
}

// Whose names the owner of jobs: a user, a tenant, or a user of a tenant.
type Whose struct{ Tenant, User string }

// Everybody tells whether it is not one owner.
func (w Whose) Everybody() bool { return w == Whose{} }

// String names the owner.
func (w Whose) String() string {
	switch {
	case w.Everybody():
		return "everybody"
	case w.Tenant == "":
		return "user " + w.User
	case w.User == "":
		return "tenant " + w.Tenant
	}
	return "user " + w.User + " of tenant " + w.Tenant
}

// has tells whether a job is the owner's. of gives the tenants of jobs that the journal knows; of another job the account counts.
func (w Whose) has(j *cluster.Job, of map[cluster.JobID]string) bool {
	tenant, known := of[j.ID]
	if !known {
		tenant = j.Account
	}
	return (w.User == "" || j.User == w.User) && (w.Tenant == "" || tenant == w.Tenant)
}

// Released is the result of a release.
type Released struct {
	Opened       int      `json:"opened"`       // waiting jobs and arrays given back
	Freed        int      `json:"freed"`        // running jobs that were released from a reservation
	Reservations int      `json:"reservations"` // removed
	Resumed      int      `json:"resumed"`      // jobs that were suspended for their partner on a GPU
	Failed       []string `json:"failed"`       // in words
	Owned        int      `json:"owned"`        // jobs of the owner that were not over at the last look, released or not
	// Pinned are running jobs that keep the node list of their grant: Slurm does not change it
	// while they run. It matters only if they are requeued.
	Pinned []cluster.JobID `json:"pinned"`
	// Sliced are running jobs that keep asking for a part of a GPU, for the same reason.
	Sliced []cluster.JobID `json:"sliced"`

	opened map[cluster.JobID]bool
}

// between is the pause between two looks.
const between = time.Second

// Plan gives the actions of a release now, and how many jobs of the owner are not over.
func (r *Release) Plan(ctx context.Context) (list []cluster.Action, owned int, err error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return nil, 0, err
	}
	t := r.actions(&seen, true, false)
	return t.list, t.owned, nil
}

// Do releases, and looks again until nothing of ours is left or no more is possible. Its error
// concerns the cluster as a whole; single failures are in Released.
func (r *Release) Do(ctx context.Context) (Released, error) {
	done := Released{opened: map[cluster.JobID]bool{}}
	end := time.Now().Add(r.Patience)
	for first := true; ; first = false {
		seen, err := r.observe(ctx)
		if err != nil {
			return done, err
		}
		last := !time.Now().Before(end)
		todo := r.actions(&seen, first, last)
		done.Failed = nil
		for i, o := range r.Cluster.Apply(ctx, todo.list) {
			done.count(&todo.list[i], &o)
		}
		done.Pinned, done.Sliced, done.Owned = todo.pinned, todo.sliced, todo.owned
		if last || !first && len(todo.list) == 0 && !todo.wait {
			return done, nil
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(between):
		}
	}
}

// observe looks at the cluster and makes sure that the memory belongs to it.
func (r *Release) observe(ctx context.Context) (cluster.Observation, error) {
	seen, err := r.Cluster.Observe(ctx, 0)
	if err != nil {
		return seen, fmt.Errorf("look at the cluster: %w", err)
	}
	if r.Of.Name != "" && !r.Of.Is(seen.Identity()) {
		return seen, fmt.Errorf("%w: it is of cluster %v, but Slurm is cluster %v", ErrCluster, r.Of, seen.Identity())
	}
	return seen, nil
}

func (d *Released) count(a *cluster.Action, o *cluster.Outcome) {
	switch {
	case o.Skipped:
	case !o.OK:
		what := a.Reservation
		if a.Job != 0 || a.ID != (cluster.JobID{}) {
			what = "job " + a.ID.String()
		}
		d.Failed = append(d.Failed, fmt.Sprintf("%s %s: %s", a.Verb, what, o.Error))
	case a.Verb == cluster.Open || a.Verb == cluster.RevokeGrant:
		d.opened[a.ID] = true
		d.Opened = len(d.opened)
	case a.Verb == cluster.Release:
		d.Freed++
	case a.Verb == cluster.Resume:
		d.Resumed++
	case a.Verb == cluster.Unreserve:
		d.Reservations++
	}
}

// todo is one pass.
type todo struct {
	list   []cluster.Action
	wait   bool // more will be possible soon
	owned  int  // jobs of the owner that are not over
	pinned []cluster.JobID
	sliced []cluster.JobID
}

// actions computes one pass: at first everything that may be ours, later only what is still
// visible.
func (r *Release) actions(seen *cluster.Observation, first, last bool) todo {
	var t todo
	known := r.known()
	arrays := map[int64]bool{}
	tenants := map[cluster.JobID]string{}
	for i := range r.Memory.Records {
		tenants[r.Memory.Records[i].ID] = r.Memory.Records[i].Tenant
	}
	reservations := seen.Reservations
	if !r.Only.Everybody() { // others wait for them
		reservations = nil
	}
	// Without the lock all gates open at once.
	for i := range reservations {
		if v := &reservations[i]; v.Name == cluster.GateReservation && v.End > seen.Now {
			t.list = append(t.list, unreserve(v))
		}
	}
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		if j.State == cluster.Done || !r.Only.has(j, tenants) {
			continue
		}
		t.owned++
		had, ours := find(known, j)
		if !ours || j.UnsplitArray && arrays[j.Record] {
			continue
		}
		arrays[j.Record] = arrays[j.Record] || j.UnsplitArray
		switch j.State {
		case cluster.Running, cluster.Suspended, cluster.Configuring:
			if j.State == cluster.Suspended && had.Slice != nil {
				t.list = append(t.list, action(cluster.Resume, j, cluster.Action{}))
			}
			if had.Slice != nil {
				t.sliced = append(t.sliced, j.ID)
			}
			if isOurs(j.Reservation) {
				t.list = append(t.list, action(cluster.Release, j, cluster.Action{Reservation: j.Reservation, SiteFactor: had.SiteFactor}))
			}
			if j.Locked && j.State != cluster.Suspended {
				t.list = append(t.list, action(cluster.Gate, j, cluster.Action{Unlock: true, Licenses: j.Licenses}))
			}
			if len(j.NodeList) > 0 && !hostlist.Same(j.NodeList, had.Nodes) {
				t.pinned = append(t.pinned, j.ID)
			}
		case cluster.Completing:
			t.wait = !last
			if last {
				t.list = append(t.list, open(j, had, seen.Now))
			}
		case cluster.Waiting:
			if first || changed(j, had, seen.Now) {
				t.list = append(t.list, open(j, had, seen.Now))
			}
		}
	}
	for i := range reservations {
		if v := &reservations[i]; v.Ours && v.Name != cluster.GateReservation && v.End > seen.Now {
			t.list = append(t.list, unreserve(v))
		}
	}
	return t
}

func unreserve(v *cluster.Reservation) cluster.Action {
	return cluster.Action{Verb: cluster.Unreserve, Reservation: v.Name, Reason: cluster.Reason{Code: cluster.ReasonTidy}}
}

func action(verb cluster.Verb, j *cluster.Job, a cluster.Action) cluster.Action {
	a.Verb, a.ID, a.Record, a.UnsplitArray, a.Restarts = verb, j.ID, j.Record, j.UnsplitArray, j.Restarts
	a.Reason = cluster.Reason{Code: cluster.ReasonTidy}
	return a
}

func open(j *cluster.Job, had Touched, now cluster.Instant) cluster.Action {
	verb, a := cluster.Open, cluster.Action{Array: j.UnsplitArray, NodeList: had.Nodes, MaxNodes: had.MaxNodes, Partitions: had.Partitions, SiteFactor: had.SiteFactor, Unlock: j.Locked, Licenses: j.Licenses}
	if had.Begin > now {
		verb, a.Until = cluster.RevokeGrant, had.Begin
	}
	if had.Limit > 0 && had.Limit != j.Limit {
		a.Limit = had.Limit
	}
	if sliced(j, had) {
		a.Ask, a.Unhold = had.Slice.Ask, had.Slice.Held
	}
	return action(verb, j, a)
}

// slack is the maximum difference between Slurm's whole seconds and our milliseconds.
const slack = 2 * cluster.Second

// changed tells whether a waiting job still differs from its user's submission.
func changed(j *cluster.Job, had Touched, now cluster.Instant) bool {
	return j.Locked || sliced(j, had) || j.Eligible > max(now, had.Begin).Add(slack) || isOurs(j.Reservation) || !hostlist.Same(j.NodeList, had.Nodes) ||
		had.MaxNodes != 0 && j.Request.MaxNodes != max(had.MaxNodes, 0) || len(had.Partitions) > 0 && !slices.Equal(j.Partitions, had.Partitions)
}

// sliced tells whether a waiting job asks for a part of a GPU instead of its user's whole one.
func sliced(j *cluster.Job, had Touched) bool {
	return had.Slice != nil && j.Request.Shards == had.Slice.Shards
}

func isOurs(reservation string) bool {
	return len(reservation) > len(cluster.ReservationPrefix) && reservation[:len(cluster.ReservationPrefix)] == cluster.ReservationPrefix
}

// known holds the original settings of jobs by id, and of arrays by the array's id.
type known struct {
	jobs   map[cluster.JobID]Touched
	arrays map[int64]Touched
}

// known merges the state file and the journal's memory; the file is newer.
func (r *Release) known() known {
	k := known{jobs: map[cluster.JobID]Touched{}, arrays: map[int64]Touched{}}
	for i := range r.Memory.Records {
		if m := &r.Memory.Records[i]; m.Done == 0 && (m.Gate > 0 || m.Pinned || m.Terms > 0) {
			k.jobs[m.ID] = touched(m, m.ID, m.ID.ID, false)
		}
	}
	for _, t := range r.State.Jobs {
		if t.Array {
			k.arrays[t.ID.ID] = t
		} else {
			k.jobs[t.ID] = t
		}
	}
	return k
}

// find tells whether fairlease may have changed a job, and gives its original settings. The id
// alone proves nothing: Slurm reuses ids.
func find(k known, j *cluster.Job) (Touched, bool) {
	for _, look := range []func() (Touched, bool){
		func() (Touched, bool) { t, ok := k.jobs[j.ID]; return t, ok },
		func() (Touched, bool) { t, ok := k.arrays[j.ID.ID]; return t, ok },
	} {
		if t, ok := look(); ok && t.User == j.User && (t.Submit == j.Submit || j.Restarts > 0) {
			return t, true
		}
	}
	if j.Marked || j.Locked || isOurs(j.Reservation) {
		had := Touched{ID: j.ID, Begin: j.MarkedBegin, Nodes: unpinned(j)}
		if j.Locked && !j.Marked && j.Restarts == 0 { // the licence left the begin time unchanged; Slurm delays requeued jobs
			had.Begin = j.Eligible
		}
		return had, true
	}
	return Touched{}, false
}

// unpinned guesses the nodes that the user requested, if there is no record: none if the job has
// a reservation of ours, since then its node list is ours too.
func unpinned(j *cluster.Job) []string {
	if isOurs(j.Reservation) {
		return nil
	}
	return j.NodeList
}

// Forget removes the local files after a complete release.
func Forget(state, heartbeats string, partitions []string) error {
	paths := []string{state, filepath.Join(heartbeats, budgetList)}
	for _, p := range partitions {
		paths = append(paths, filepath.Join(heartbeats, p))
	}
	var err error
	for _, p := range paths {
		if e := os.Remove(p); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
