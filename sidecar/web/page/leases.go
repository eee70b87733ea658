package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// leases is the content of the page of leases: nodes, with the leases on each over time.
type leases struct {
	Windows []window
	Find    string // part of the names of nodes
	Pager   Pager
	Ticks   []tick
	Lanes   []lane
	From    time.Time
	To      time.Time
	NowAt   string // in percent
	Keys    []legendKey
	Rows    []store.Lease // of the table; those that are held now by jobs that the person may not see have no id
	More    int           // leases that the table lacks
	Partly  bool          // leases of other tenants are shown only where they are in force
}

// tick is a time on the axis, at so many percent.
type tick struct {
	At   string
	Text string
}

// lane is a node, with a height in GPUs and the leases on it.
type lane struct {
	Node  *scene.Node
	GPUs  int
	Spans []span
}

// Height is that of the lane, in pixels.
func (l *lane) Height() int { return max(l.GPUs*slotHeight, 16) }

const slotHeight = 7

// span is a lease in a lane.
type span struct {
	X, Width  string // in percent
	Y, Height int    // in pixels
	Class     string
	Job       string         // "" = of a tenant whose jobs the person may not see
	Key       cluster.JobKey // of a past lease; 0 = the job that has the id now
	Tip       string

	from, to   time.Time
	slot, gpus int
}

const (
	mostLanes  = 20  // nodes on a page
	mostLeases = 100 // past and present ones in the table
)

func leasesPage(v *visit) (string, any, error) {
	v.Title = "Leases"
	l := &leases{Find: v.query("find"), Partly: !v.Scope().All, Keys: v.tenantKeys()}
	var long time.Duration
	l.Windows, long = v.window("6h")
	var nodes []*scene.Node
	for i := range v.Nodes {
		if strings.Contains(v.Nodes[i].Name, l.Find) {
			nodes = append(nodes, &v.Nodes[i])
		}
	}
	var from, to int
	l.Pager, from, to = v.pager(len(nodes), mostLanes)
	// The present leases end in the future: a tenth of the window shows that.
	now := v.latest()
	l.From, l.To = now.Add(-long), now.Add(long/10)
	l.NowAt = l.at(now)
	l.Ticks = l.ticks(v.zone())
	names := []string{} // of no nodes, not of all
	for _, n := range nodes[from:to] {
		names = append(names, n.Name)
	}
	rows, err := v.past().Leases(v.req.Context(), v.Scope(), store.LeaseWindow{Nodes: names, Since: l.From, Until: now, Limit: scene.MaxLeases})
	if err := v.history(err); err != nil {
		return "", nil, err
	}
	on := map[string][]*store.Lease{}
	for i := range rows {
		for _, name := range rows[i].Nodes {
			on[name] = append(on[name], &rows[i])
		}
	}
	l.Rows = slices.Clip(rows[:min(len(rows), mostLeases)])
	l.More = len(rows) - len(l.Rows)
	for _, n := range nodes[from:to] {
		l.Lanes = append(l.Lanes, l.lane(v, n, on[n.Name]))
	}
	return "leases", l, nil
}

// at gives the place of a moment on the axis, in percent.
func (l *leases) at(t time.Time) string {
	part := float64(t.Sub(l.From)) / float64(l.To.Sub(l.From))
	return fmt.Sprintf("%.2f", 100*min(max(part, 0), 1))
}

// ticks gives at most nine round times.
func (l *leases) ticks(zone *time.Location) (out []tick) {
	step := l.To.Sub(l.From) / 8
	for _, s := range []time.Duration{10 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 120 * time.Hour} {
		if step <= s {
			step = s
			break
		}
	}
	at := l.From.In(zone)
	for reading, last := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC), at.Add(-1); ; reading = reading.Add(step) {
		t := localtime.First(reading, zone)
		if !t.Before(l.To) {
			break
		}
		if t.Before(l.From) || !t.After(last) {
			continue
		}
		last = t
		text := t.Format("15:04")
		if step >= 12*time.Hour || text == "00:00" {
			text = t.Format("01-02 15:04")
		}
		out = append(out, tick{l.at(t), text})
	}
	return out
}

// lane places the leases of a node on its GPUs: past ones of the rows, and those that jobs hold now, whose tenants everybody sees.
func (l *leases) lane(v *visit, n *scene.Node, rows []*store.Lease) lane {
	out := lane{Node: n, GPUs: len(n.Drained)}
	for _, g := range n.GPUs {
		out.GPUs += g.Count
	}
	known := map[cluster.JobKey]bool{}
	for _, r := range rows {
		from, to, until, past := r.Granted, r.Ends, "until", cluster.JobKey(0)
		if r.Started != nil {
			from = *r.Started
		}
		if r.Ended != nil {
			to, until, past = *r.Ended, "ended", r.Job
		} else {
			known[r.Job] = true
		}
		if !to.After(l.From) || !from.Before(l.To) {
			continue
		}
		s := span{from: from, to: to, gpus: max((r.GPUs / cluster.GPUCount(max(len(r.Nodes), 1))).Ceil(), 1), Job: r.SlurmID, Key: past, Class: v.Colour(r.Tenant) + " " + r.Class}
		s.Tip = fmt.Sprintf("job %s of %s, %s, %s GPUs, term %d, %s, %s %s", r.SlurmID, r.Tenant, r.User, r.GPUs, r.Term, r.Class, until, to.In(v.zone()).Format("01-02 15:04"))
		if r.Why != "" {
			s.Tip += ": " + r.Why
		}
		out.Spans = append(out.Spans, s)
	}
	for i := range n.Jobs {
		h := &n.Jobs[i]
		if h.ID != "" && known[h.Job] {
			continue
		}
		s := span{from: v.At, to: h.Until.Time(), gpus: h.GPUs.Ceil(), Job: h.ID, Class: v.Colour(h.Tenant) + " " + string(cmp.Or(h.Right, "unleased"))}
		if h.Until == 0 {
			s.to = v.latest()
		}
		s.Tip = fmt.Sprintf("a job of %s, %s GPUs here", cmp.Or(h.Tenant, "no tenant"), h.GPUs)
		if h.Right == "" {
			s.Tip += ", without a lease"
		}
		out.Spans = append(out.Spans, s)
		l.Rows = append(l.Rows, store.Lease{SlurmID: h.ID, Tenant: cmp.Or(h.Tenant, "no tenant"), GPUs: h.GPUs, Nodes: []string{n.Name}, Class: string(cmp.Or(h.Right, "none")), Ends: s.to, State: "held now"})
	}
	slices.SortStableFunc(out.Spans, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), b.to.Compare(a.to)) })
	out.place()
	for i := range out.Spans {
		s := &out.Spans[i]
		s.X = l.at(s.from)
		part := float64(s.to.Sub(maxTime(s.from, l.From))) / float64(l.To.Sub(l.From))
		s.Width = fmt.Sprintf("%.2f", 100*max(part, 0.15/100))
		s.Y, s.Height = s.slot*slotHeight, s.gpus*slotHeight-1
	}
	return out
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// place gives every span, in order of their beginnings, the GPUs of the job's last lease if these are free, else the first ones that
// are. Where more is held than there is, the last GPUs are drawn twice.
func (l *lane) place() {
	free := make([]time.Time, max(l.GPUs, 1)) // from when on
	last := map[string]int{}                  // slots by job
	for i := range l.Spans {
		s := &l.Spans[i]
		s.gpus = min(s.gpus, len(free))
		fits := func(slot int) bool {
			return slot+s.gpus <= len(free) && !slices.ContainsFunc(free[slot:slot+s.gpus], func(t time.Time) bool { return t.After(s.from.Add(time.Second)) })
		}
		slot, known := last[s.Job]
		if !known || s.Job == "" || !fits(slot) {
			for slot = 0; slot < len(free)-s.gpus && !fits(slot); slot++ {
			}
		}
		s.slot, last[s.Job] = slot, slot
		for k := s.slot; k < s.slot+s.gpus; k++ {
			free[k] = s.to
		}
	}
}
