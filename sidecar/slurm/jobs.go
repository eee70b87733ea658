package slurm

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// lookJobs updates the job records, as cheaply as correctness allows.
func (c queue) lookJobs(ctx context.Context, now cluster.Instant, server int64) error {
	s := &c.seen
	full := s.records == nil || s.fullAt == 0 || now.Sub(s.fullAt) >= cluster.SpanOf(c.cfg.FullEvery) || len(s.records) <= c.cfg.SmallList
	if !full {
		ids, list, err := c.changedRecords(ctx)
		if err != nil {
			return err
		}
		if len(ids) <= c.cfg.Singles {
			ours, touched := !slices.ContainsFunc(ids, func(id int64) bool { _, ok := s.touched[id]; return !ok }), len(s.touched)
			if err := c.patch(ctx, now, ids); err != nil {
				return err
			}
			if ours && len(s.touched) == touched {
				s.states = list // all records match it, except those that are read again at every look
			}
			return nil
		}
	}
	return c.readAll(ctx, now, server)
}

// readAll reads the full list, unless nothing is newer than the known one.
func (c queue) readAll(ctx context.Context, now cluster.Instant, server int64) error {
	s := &c.seen
	t := c.translator(now)
	var fresh map[int64]*record
	var wrong notes
	rep, err := c.list(ctx, c.jobsPath("jobs/"), "jobs", s.jobs.ask, func(r *reader) error {
		w := readJob(r)
		if r.err != nil {
			return r.err
		}
		s.identify(&w)
		if rec := c.translate(&t, &w, &wrong); rec != nil {
			fresh[w.id] = rec
		}
		return nil
	}, func() { fresh, wrong = make(map[int64]*record, len(s.records)), notes{} })
	if err != nil {
		return err
	}
	c.notes.join(wrong)
	if rep.same || s.jobs.ask > 0 && len(fresh) == 0 && rep.lastUpdate == 0 {
		s.fullAt = now
		return nil // Slurm's answer for "nothing newer" looks like an empty cluster
	}
	for _, rec := range fresh {
		if err := c.spellOut(ctx, rec); err != nil {
			return err
		}
	}
	s.jobs.read(rep.lastUpdate, server)
	s.states = 0
	s.changed = s.changed || !reflect.DeepEqual(s.records, fresh)
	s.records, s.fullAt = fresh, now
	s.calm(slices.Collect(maps.Keys(s.touched)), now)
	return nil
}

// translate gives the record for w. An invalid one is set aside; it is nil if nothing at all is
// known of it.
func (c queue) translate(t *translator, w *wireJob, notes *notes) *record {
	if w.wrong == "" && len(w.states) > 0 && state(w) == "" {
		w.wrong = "its state is not known: " + strings.Join(w.states, ",")
	}
	if w.wrong == "" {
		rec, err := t.record(w, c.seen.known(w))
		if err == nil {
			return rec
		}
		w.wrong = err.Error()
	}
	if w.id <= 0 || len(w.states) == 0 {
		return c.seen.records[w.id]
	}
	notes.add("job %d is set aside: %s", w.id, w.wrong)
	return t.aside(w, c.seen.records[w.id])
}

// known is the previous record; for a task that was just split off, that of its array.
func (s *seen) known(w *wireJob) *record {
	if rec := s.records[w.id]; rec != nil || w.array == 0 {
		return rec
	}
	return s.records[w.array]
}

func (c queue) translator(now cluster.Instant) translator {
	return translator{nodes: c.seen.gpuNodes, arrayCap: c.cfg.ArrayCap, license: c.cfg.License, now: now}
}

// changedRecords reads all ids and states (80 bytes a job) and forgets the records that are gone.
// It gives the records that must be read again, and the list's hash.
func (c queue) changedRecords(ctx context.Context) ([]int64, uint64, error) {
	s := &c.seen
	was := s.states
	s.states = 0
	states, list, err := c.states(ctx, "", was)
	if err != nil {
		return nil, 0, err
	}
	if was != 0 && list == was {
		return slices.Sorted(maps.Keys(s.touched)), list, nil
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
			// It has no GPUs and holds nothing: its end does not matter.
			s.changed, s.gone = s.changed || len(rec.jobs) > 0, s.gone || rec.use != nil
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
			s.changed, s.gone = s.changed || len(rec.jobs) > 0, s.gone || rec.use != nil
			delete(s.records, id)
			delete(ids, id)
		}
	}
	return slices.Sorted(maps.Keys(ids)), list, nil
}

// rests reports whether a job in these states holds nothing.
func rests(states string) bool {
	s := stateOfAll(strings.Split(states, ","))
	return s != "" && !holds(s)
}

// withTasks gives the record of a waiting array after some of its tasks were started or
// cancelled.
func (r *record) withTasks(tasks []int, most int) *record {
	fresh := *r
	slices.Sort(tasks)
	fresh.standFor(tasks[:min(len(tasks), most)], len(tasks))
	return &fresh
}

// stateOf is the entry of one record in the list of states.
type stateOf struct {
	state string
	tasks []int // of a waiting array
}

// states reads the list of states, and gives its hash; query restricts it. A list with the hash
// known is not parsed: nothing has changed, the usual case while many jobs wait.
func (c *link) states(ctx context.Context, query string, known uint64) (states map[int64]stateOf, list uint64, err error) {
	states = map[int64]stateOf{}
	same := func(text []byte) bool {
		list = maphash.Bytes(hashSeed, text)
		return list == known
	}
	_, err = c.listUnless(ctx, c.jobsPath("jobs/state/")+query, "jobs", 0, same, func(r *reader) error {
		e := readJobState(r)
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
	return states, list, err
}

var hashSeed = maphash.MakeSeed()

// stateEntry is one entry of the list of states. Its job_id is the record's id with its contents:
// "7", "7_3" (task 3, perhaps of array 5), "7+1" (a component of a het job), "7_*" (the rest of a
// cancelled array).
type stateEntry struct {
	record int64
	task   int // -1 = none
	state  string
}

func readJobState(r *reader) stateEntry {
	var e stateEntry
	var id string
	r.object(func(name string) {
		switch name {
		case "job_id":
			id = string(bytes.Trim(r.raw(), `"`)) // each is different: not worth caching
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
	if e.task, err = strconv.Atoi(task); err != nil || e.task > mostTask {
		e.task = -1
	}
	if r.junk == "" && r.err == nil && (e.record <= 0 || e.state == "") {
		r.junk = "a state without job_id: " + id
	}
	return e
}

// spellOut reads the tasks of a waiting array whose list Slurm truncated.
func (c queue) spellOut(ctx context.Context, rec *record) error {
	if !rec.cut || len(rec.jobs) == 0 {
		return nil
	}
	states, _, err := c.states(ctx, fmt.Sprintf("?job_id=%d", rec.id), 0)
	if tasks := states[rec.id].tasks; len(tasks) > 0 {
		slices.Sort(tasks)
		rec.standFor(tasks[:min(len(tasks), c.cfg.ArrayCap)], len(tasks))
	}
	return err
}

// patch reads the given records singly.
func (c queue) patch(ctx context.Context, now cluster.Instant, ids []int64) error {
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
			before, rec := s.records[w.id], c.translate(&t, w, &c.notes)
			if rec == nil {
				continue
			}
			if err := c.spellOut(ctx, rec); err != nil {
				return err
			}
			if reflect.DeepEqual(before, rec) {
				continue // the record that is known tells that it has not changed
			}
			s.changed, s.records[w.id] = true, rec
		}
	}
	s.calm(ids, now)
	return nil
}

// calm drops touched records that were just read and are stable, or have been watched long
// enough.
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
func (c *link) readRecord(ctx context.Context, id int64) ([]wireJob, error) {
	var all []wireJob
	rep, err := c.rest.get(ctx, c.cfg.Timeout, c.jobsPath("job/%d", id), func(r *reader, name string) bool {
		if name != "jobs" || r.kind() != '[' {
			return false
		}
		all = []wireJob{}
		r.array(func() {
			r.junk = ""
			all = append(all, readJob(r))
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
