package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// memory is a source that has the expositions of nodes in memory.
type memory struct{ *gputest.Fleet }

func (m *memory) Read(_ context.Context, nodes []Node) ([]Reading, error) {
	out := make([]Reading, len(nodes))
	for i := range nodes {
		out[i] = m.one(nodes[i].Name)
	}
	return out, nil
}

func (m *memory) one(name string) Reading {
	text, err := m.Text(name)
	if err != nil {
		return Reading{Err: err}
	}
	rows, _, err := NewParser(DefaultTable()).Parse(text)
	return Reading{Rows: rows, Err: err}
}

const began = cluster.Instant(1_800_000_000_000)

// looks shows a GPU's states: each call of look moves the clock by 30 s.
type looks struct {
	t       *testing.T
	now     cluster.Instant
	tracker Tracker
	device  gputest.Device
	node    gputest.Node
}

func newLooks(t *testing.T) *looks {
	return &looks{t: t, now: began, tracker: Tracker{MaxAge: 2 * cluster.Minute}, node: gputest.Node{Version: gputest.V49}}
}

// look gives the GPU after one more look. Energy moves with the power unless still is true.
func (l *looks) look(still bool, change func(*gputest.Device)) GPU {
	l.t.Helper()
	if change != nil {
		change(&l.device)
	}
	if !still {
		l.device.Energy += l.device.Power * 30
	}
	l.node.Devices = []gputest.Device{l.device}
	rows, _, err := NewParser(DefaultTable()).Parse(l.node.Text())
	l.read(Reading{Rows: rows, Err: err})
	return l.tracker.GPUs()[0]
}

func (l *looks) read(r Reading) {
	l.now = l.now.Add(30 * cluster.Second)
	l.tracker.Look(l.now, []Node{{Name: "a"}}, []Reading{r})
}

func (l *looks) want(g GPU, state State, idle bool) {
	l.t.Helper()
	if g.State != state || g.Idle != idle {
		l.t.Errorf("after %d s it is %s (%s), idle %v; want %s, idle %v", l.now.Sub(began)/cluster.Second, g.State, g.Why, g.Idle, state, idle)
	}
}

func busy(d *gputest.Device) { d.Util, d.Engine, d.Tensor, d.DRAM, d.Power = 0.97, 0.9, 0.4, 0.5, 600 }
func rest(d *gputest.Device) { d.Util, d.Engine, d.Tensor, d.DRAM, d.Power = 0, 0, 0, 0, 70 }

func TestIdleNeedsTwoWitnesses(t *testing.T) {
	l := newLooks(t)
	l.want(l.look(false, rest), Unknown, false) // nothing has moved yet
	l.want(l.look(false, nil), Fresh, true)
	since := l.tracker.GPUs()[0].IdleSince
	l.want(l.look(false, func(d *gputest.Device) { d.Power = 115 }), Fresh, true) // a context that does nothing
	if g := l.tracker.GPUs()[0]; g.IdleSince != since || since != l.now.Add(-30*cluster.Second) {
		t.Errorf("idle since %d, want %d", g.IdleSince, since)
	}
	l.want(l.look(false, busy), Fresh, false)
	l.want(l.look(false, func(d *gputest.Device) { rest(d); d.Power = 580 }), Fresh, false) // no kernel, but the power of one
	l.want(l.look(false, func(d *gputest.Device) { rest(d); d.Engine = 0.2 }), Fresh, false)
	l.want(l.look(false, rest), Fresh, true)
	if g := l.tracker.GPUs()[0]; g.IdleSince != l.now {
		t.Errorf("idle since %d, want now", g.IdleSince)
	}
}

func TestMissingIsUnknown(t *testing.T) {
	l := newLooks(t)
	l.look(false, rest)
	l.look(false, nil)
	row := l.tracker.GPUs()[0].Row
	for _, m := range []Meaning{Util, Power} {
		x := row
		x.Values[m] = missing[m]
		x.Values[Energy] += float64(l.now)
		l.read(Reading{Rows: []Row{x}})
		if g := l.tracker.GPUs()[0]; g.Idle {
			t.Errorf("idle without %s", meaningNames[m])
		}
	}
	l.read(Reading{Rows: []Row{}})
	l.want(l.tracker.GPUs()[0], Unknown, false)
	for range 5 {
		l.read(Reading{Rows: []Row{}})
	}
	if n := len(l.tracker.GPUs()); n != 0 {
		t.Errorf("%d GPUs are remembered", n)
	}
}

// An exporter that repeats its values shows no idle GPU, however long it does.
func TestRepeatedValuesAreStale(t *testing.T) {
	l := newLooks(t)
	l.look(false, rest)
	l.want(l.look(false, nil), Fresh, true)
	for range 3 {
		l.want(l.look(true, nil), Fresh, true) // an exporter may read seldom
	}
	for range 3 {
		l.want(l.look(true, nil), Stale, false)
	}
	if n := l.tracker.Nodes()[0]; n.State != Stale || !strings.Contains(n.Why, "no value has changed") {
		t.Errorf("the node is %+v", n)
	}
	g := l.look(false, nil)
	l.want(g, Fresh, true)
	if g.IdleSince != l.now {
		t.Errorf("idle since %d, before it was fresh again", g.IdleSince)
	}
	never := newLooks(t) // stuck from the start
	for range 10 {
		g = never.look(true, rest)
	}
	never.want(g, Stale, false)
}

// Profiling counters that are 0 while kernels run are broken until one of them moves.
func TestContradictionIsBroken(t *testing.T) {
	l := newLooks(t)
	l.look(false, busy)
	l.want(l.look(false, nil), Fresh, false)
	stuck := func(d *gputest.Device) { busy(d); d.Engine, d.Tensor, d.DRAM = 0, 0, 0 }
	l.want(l.look(false, stuck), Unknown, false)
	l.want(l.look(false, busy), Fresh, false)
	l.want(l.look(false, stuck), Unknown, false)
	l.want(l.look(false, nil), Broken, false)
	l.want(l.look(false, rest), Broken, false) // never idle
	l.want(l.look(false, busy), Fresh, false)
	l.device.NoProf = true // without those counters there is nothing to contradict
	l.want(l.look(false, nil), Fresh, false)
	l.want(l.look(false, rest), Fresh, true)
}

// A node that is not read is silent. A short silence does not end idleness, a long one does.
func TestSilence(t *testing.T) {
	for silent, keeps := range map[int]bool{2: true, 6: false} {
		l := newLooks(t)
		l.look(false, rest)
		since := l.look(false, nil).IdleSince
		for range silent {
			l.read(Reading{Err: errors.New("connection refused")})
		}
		g := l.tracker.GPUs()[0]
		l.want(g, Unknown, false)
		if n := l.tracker.Nodes()[0]; n.State != Silent || n.Why != "connection refused" || g.Values[Power] != 70 {
			t.Errorf("the node is %+v, the GPU %+v", n, g)
		}
		g = l.look(false, nil)
		l.want(g, Fresh, true)
		if (g.IdleSince == since) != keeps {
			t.Errorf("after %d silent looks it is idle since %d, before since %d", silent, g.IdleSince, since)
		}
	}
}

func TestMIGInstancesAreKept(t *testing.T) {
	l := newLooks(t)
	for i := range 3 {
		rows := []Row{{Index: 0, Values: missing}, {Index: 0, Instance: "7", Values: missing}, {Index: 1, Values: missing}}
		for k := range rows {
			rows[k].Values[Engine], rows[k].Values[Power], rows[k].Values[Energy] = 0, 70, float64(i)
		}
		l.read(Reading{Rows: rows})
	}
	var states []string
	for _, g := range l.tracker.GPUs() {
		states = append(states, fmt.Sprintf("%s %s", g.Name(), g.State))
	}
	if got := strings.Join(states, ", "); got != "0 unknown, 0.7 fresh, 1 fresh" {
		t.Error(got)
	}
}
