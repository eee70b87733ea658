package slurm

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Client observes one Slurm and acts on it. It is safe for concurrent use; looks and actions run
// one at a time.
type Client struct{ *link }

// link is what all parts of a client share: requests, and the newest look.
type link struct {
	cfg  Config
	rest *rest

	mu     sync.Mutex
	speech *speech // nil = must be negotiated (again)
	seen   seen
	notes  notes
	split  map[cluster.JobID]bool // tasks that the current Apply has split off
}

// The parts of a client, by what they do.
type (
	site         struct{ *link } // looks at nodes, partitions and the controller
	queue        struct{ *link } // looks at jobs
	accounting   struct{ *link } // looks at accounts, QOS and limits
	history      struct{ *link } // reads attempts of slurmdbd
	setup        struct{ *link } // tells what the client's user may do
	gates        struct{ *link } // keep jobs from starting
	grants       struct{ *link } // let jobs start
	arrays       struct{ *link } // split tasks off arrays
	stops        struct{ *link } // notify and requeue jobs
	reservations struct{ *link } // reservations
)

// New checks cfg and gives a client. It does not connect: the first Observe does.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	r, err := newREST(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{&link{cfg: cfg, rest: r}}, nil
}

// Close drops the connections.
func (c *Client) Close() { c.rest.http.CloseIdleConnections() }

// notes collects what a look omitted or could not find out, without failing for it.
type notes struct {
	lines   []string
	dropped int
}

const mostNotes = 20

func (n *notes) add(format string, args ...any) {
	if len(n.lines) == mostNotes {
		n.dropped++
		return
	}
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// join adds other notes.
func (n *notes) join(other notes) {
	for _, line := range other.lines {
		n.add("%s", line)
	}
	n.dropped += other.dropped
}

// Notes says in words what the last Observe omitted or worked around: invalid records, an account
// tree that could not be renewed. Usually it is empty.
func (c *Client) Notes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := append([]string(nil), c.notes.lines...)
	if c.notes.dropped > 0 {
		out = append(out, fmt.Sprintf("and %d more like these", c.notes.dropped))
	}
	return out
}

func (c *link) now() cluster.Instant { return cluster.InstantOf(c.cfg.Now()) }

// talk negotiates the version if that has not happened yet or no longer holds.
func (c *link) talk(ctx context.Context) error {
	if c.speech != nil {
		return nil
	}
	s, err := c.rest.negotiate(ctx)
	if err != nil {
		return err
	}
	c.speech = &s
	c.seen.forget()
	return nil
}

// path is a path of slurmctld's API in the negotiated version.
func (c *link) path(format string, args ...any) string {
	return fmt.Sprintf("/slurm/%v/", c.speech.version) + fmt.Sprintf(format, args...)
}

// jobsPath is path in the version in which jobs are read.
func (c *link) jobsPath(format string, args ...any) string {
	return fmt.Sprintf("/slurm/%v/", c.speech.jobs) + fmt.Sprintf(format, args...)
}

// dbPath is a path of slurmdbd's API.
func (c *link) dbPath(format string, args ...any) string {
	return fmt.Sprintf("/slurmdb/%v/", c.speech.version) + fmt.Sprintf(format, args...)
}

// list reads one list of records. With update > 0 it reads it only if it is newer than that
// second. each must read exactly one value; an error from it, or an entry in r.junk, costs only
// that record.
func (c *link) list(ctx context.Context, path, member string, update int64, each func(*reader) error, reset func()) (reply, error) {
	return c.listUnless(ctx, path, member, update, nil, each, reset)
}

// misread tells whether so many records of a list make no sense that its format must be another than the known one: then nothing may be
// concluded from it. Jobs and accounts that are left out would be taken for gone: a tenth of them is too much. A node, a partition, a
// reservation or a licence that is left out costs only itself, until all of several are.
func misread(member string, all, bad int) bool {
	switch member {
	case "reservations":
		return bad > 1 && bad == all
	case "nodes", "partitions", "licenses":
		return bad > 0 && bad == all
	}
	return bad > 1 && bad*10 > all || bad > 0 && bad == all
}

// listUnless is list, but skips a list with a known text. known receives the text; nil = none is
// known.
func (c *link) listUnless(ctx context.Context, path, member string, update int64, known func([]byte) bool, each func(*reader) error, reset func()) (reply, error) {
	if update > 0 {
		path += fmt.Sprintf("?update_time=%d", update)
	}
	var found bool
	var notes notes
	var all, bad int
	rep, err := c.rest.get(ctx, c.cfg.ListTimeout, path, func(r *reader, name string) bool {
		if name != member || r.kind() != '[' {
			return false
		}
		found, notes, all, bad = true, c.notes, 0, 0
		reset()
		if known != nil {
			text := r.raw()
			if r.err != nil || known(text) {
				return true
			}
			whole := r
			r = newReader(bytes.NewReader(text))
			defer func() { whole.fail(r.err) }()
		}
		r.array(func() {
			r.junk, r.odd = "", ""
			err := each(r)
			all++
			if r.odd != "" && r.err == nil {
				notes.add("left out a value of %s: %s", path, r.odd)
			}
			switch {
			case r.err != nil:
			case r.junk != "":
				bad++
				notes.add("left out a record of %s: %s", path, r.junk)
			case err != nil:
				bad++
				notes.add("left out a record of %s: %v", path, err)
			}
		})
		return true
	})
	switch {
	case err != nil:
		return rep, fmt.Errorf("reading Slurm's %s: %w", member, err)
	case rep.same:
		return rep, nil
	case !found:
		return rep, fmt.Errorf("reading Slurm's %s: the reply to %s has no list of them", member, path)
	case misread(member, all, bad):
		return rep, fmt.Errorf("reading Slurm's %s: %d of %d records make no sense, the first: %s", member, bad, all, notes.lines[len(c.notes.lines):][0])
	}
	c.notes = notes
	return rep, nil
}
