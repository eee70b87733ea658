package slurm

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// lookJobs brings the job records up to date, as cheaply as can be done truly.
func (c *Client) lookJobs(ctx context.Context, now cluster.Instant, server int64) error {
	s := &c.seen
	full := s.records == nil || s.fullAt == 0 || now.Sub(s.fullAt) >= cluster.SpanOf(c.cfg.FullEvery) || len(s.records) <= c.cfg.SmallList
	if !full {
		ids, err := c.changedRecords(ctx)
		if err != nil {
			return err
		}
		if len(ids) <= c.cfg.Singles {
			return c.patch(ctx, now, ids)
		}
	}
	return c.readAll(ctx, now, server)
}

// readAll reads the full list, unless nothing is newer than what is known.
func (c *Client) readAll(ctx context.Context, now cluster.Instant, server int64) error {
	s := &c.seen
	t := c.translator(now)
	var fresh map[int64]*record
	rep, err := c.list(ctx, c.jobsPath("jobs/"), "jobs", s.jobs.ask, func(r *reader) error {
		w := r.job()
		if r.err != nil {
			return r.err
		}
		before := s.records[w.id]
		var rec *record
		var err error
		if r.junk == "" {
			rec, err = t.record(&w, s.known(&w))
		}
		if rec == nil {
			if before != nil { // better what it was than nothing
				fresh[w.id] = before
			}
			return err
		}
		fresh[w.id] = rec
		return nil
	}, func() { fresh = make(map[int64]*record, len(s.records)) })
	if err != nil {
		return err
	}
	if rep.same || s.jobs.ask > 0 && len(fresh) == 0 && rep.lastUpdate == 0 {
		s.fullAt = now
		return nil // what Slurm answers for "nothing newer" looks like an empty cluster
	}
	for _, rec := range fresh {
		if err := c.spellOut(ctx, rec); err != nil {
			return err
		}
	}
	s.jobs.read(rep.lastUpdate, server)
	s.changed = s.changed || !reflect.DeepEqual(s.records, fresh)
	s.records, s.fullAt = fresh, now
	s.calm(slices.Collect(maps.Keys(s.touched)), now)
	return nil
}

// known is what was known of the record; of a task that has just been split
// off, what was known of its array.
func (s *seen) known(w *wireJob) *record {
	if rec := s.records[w.id]; rec != nil || w.array == 0 {
		return rec
	}
	return s.records[w.array]
}

func (c *Client) translator(now cluster.Instant) translator {
	return translator{nodes: c.seen.gpuNodes, arrayCap: c.cfg.ArrayCap, now: now}
}

// changedRecords asks for all ids and states (80 bytes a job), forgets the
// records that are gone, and gives those that must be read again.
func (c *Client) changedRecords(ctx context.Context) ([]int64, error) {
	s := &c.seen
	states, err := c.states(ctx, "")
	if err != nil {
		return nil, err
	}
	ids := map[int64]bool{}
	for id := range s.touched {
		ids[id] = true
	}
	for id, now := range states {
		rec := s.records[id]
		switch {
		case rec == nil:
			ids[id] = true
		case rec.states != now.state && !rec.wants && rests(now.state):
			// Without GPUs, and it holds nothing: nobody's concern, however it ended.
			s.changed = s.changed || len(rec.jobs) > 0
			s.records[id] = &record{id: id, states: now.state, array: rec.array}
		case rec.states != now.state:
			ids[id] = true
		case rec.tasks > 0 && rec.tasks != len(now.tasks) && len(rec.jobs) > 0:
			s.records[id] = rec.withTasks(now.tasks, c.cfg.ArrayCap)
			s.changed = true
		}
	}
	for id, rec := range s.records {
		if _, there := states[id]; !there {
			s.changed = s.changed || len(rec.jobs) > 0
			delete(s.records, id)
			delete(ids, id)
		}
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// rests reports whether a job in these states holds nothing.
func rests(states string) bool {
	return !strings.Contains(states, "RUNNING") && !strings.Contains(states, "SUSPENDED") && !strings.Contains(states, "COMPLETING")
}

// withTasks gives the record of a waiting array as it is after some of its tasks
// were started or cancelled.
func (r *record) withTasks(tasks []int, most int) *record {
	fresh := *r
	slices.Sort(tasks)
	fresh.standFor(tasks[:min(len(tasks), most)], len(tasks))
	return &fresh
}

// stateOf is what the list of states says of one record.
type stateOf struct {
	state string
	tasks []int // of a waiting array
}

// states reads the list of states; query narrows it.
func (c *Client) states(ctx context.Context, query string) (map[int64]stateOf, error) {
	states := map[int64]stateOf{}
	_, err := c.list(ctx, c.jobsPath("jobs/state/")+query, "jobs", 0, func(r *reader) error {
		e := r.jobState()
		if r.junk != "" || r.err != nil {
			return r.err
		}
		of := states[e.record]
		of.state = e.state
		if e.task >= 0 {
			of.tasks = append(of.tasks, e.task)
		}
		states[e.record] = of
		return nil
	}, func() { clear(states) })
	return states, err
}

// stateEntry is one entry of the list of states. Its job_id is the record's
// id with what it stands for: "7", "7_3" (task 3, perhaps of array 5), "7+1"
// (a component of a het job), "7_*" (what is left of a cancelled array).
type stateEntry struct {
	record int64
	task   int // -1 = none
	state  string
}

func (r *reader) jobState() stateEntry {
	var e stateEntry
	var id string
	r.object(func(name string) {
		switch name {
		case "job_id":
			id = r.text()
		case "state":
			e.state = stateKey(r.list())
		default:
			r.skip()
		}
	})
	number, task, _ := strings.Cut(id, "_")
	number, _, _ = strings.Cut(number, "+")
	e.record, _ = strconv.ParseInt(number, 10, 64)
	var err error
	if e.task, err = strconv.Atoi(task); err != nil {
		e.task = -1
	}
	if r.junk == "" && r.err == nil && (e.record <= 0 || e.state == "") {
		r.junk = "a state without job_id: " + id
	}
	return e
}

// spellOut asks for the tasks of a waiting array whose list Slurm cut short.
func (c *Client) spellOut(ctx context.Context, rec *record) error {
	if !rec.cut || len(rec.jobs) == 0 {
		return nil
	}
	states, err := c.states(ctx, fmt.Sprintf("?job_id=%d", rec.id))
	if tasks := states[rec.id].tasks; len(tasks) > 0 {
		slices.Sort(tasks)
		rec.standFor(tasks[:min(len(tasks), c.cfg.ArrayCap)], len(tasks))
	}
	return err
}

// patch reads the given records singly.
func (c *Client) patch(ctx context.Context, now cluster.Instant, ids []int64) error {
	s := &c.seen
	t := c.translator(now)
	for _, id := range ids {
		all, err := c.readRecord(ctx, id)
		if codeOf(err) == codeUnknownJob {
			s.changed = true
			delete(s.records, id)
			continue
		}
		if err != nil {
			return err
		}
		for i := range all {
			w := &all[i]
			before := s.records[w.id]
			rec, err := t.record(w, s.known(w))
			if err != nil {
				c.notes.add("job %d makes no sense and is taken for what it was: %v", w.id, err)
				continue
			}
			if err := c.spellOut(ctx, rec); err != nil {
				return err
			}
			s.changed = s.changed || !reflect.DeepEqual(before, rec)
			s.records[w.id] = rec
		}
	}
	s.calm(ids, now)
	return nil
}

// calm forgets of the touched records those that were just read and have come to
// rest, or have been watched for long enough.
func (s *seen) calm(ids []int64, now cluster.Instant) {
	for _, id := range ids {
		rec := s.records[id]
		if rec == nil || now > s.touched[id] || !slices.ContainsFunc(rec.jobs, func(j cluster.Job) bool {
			return j.State == cluster.Completing || j.State == cluster.Waiting && j.Eligible <= now && j.Inactive == ""
		}) {
			delete(s.touched, id)
		}
	}
}

// readRecord reads one record, or all records of an array.
func (c *Client) readRecord(ctx context.Context, id int64) ([]wireJob, error) {
	var all []wireJob
	rep, err := c.rest.get(ctx, c.cfg.Timeout, c.jobsPath("job/%d", id), func(r *reader, name string) bool {
		if name != "jobs" || r.kind() != '[' {
			return false
		}
		all = []wireJob{}
		r.array(func() {
			r.junk = ""
			if w := r.job(); r.junk == "" {
				all = append(all, w)
			} else {
				c.notes.add("left out a record of job %d: %s", id, r.junk)
			}
		})
		return true
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading job %d: %w", id, err)
	case all == nil || rep.same:
		return nil, fmt.Errorf("reading job %d: the reply has no list of jobs", id)
	}
	return all, nil
}
