package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// large is the picture of a site with more of everything than a screen has lines, and with control sequences in names.
func large() *Picture {
	st := &view.Status{Round: 7, Alive: true, Leader: &store.Leader{Holder: "a\x1b[2Jb"}, Jobs: map[cluster.JobState]int{cluster.Waiting: 9}}
	p := &Picture{Status: st, Cut: true}
	for i := range 60 {
		name := fmt.Sprintf("tenant%02d", i)
		st.Pools = append(st.Pools, view.PoolStatus{Pool: name, GPUs: cluster.CountOf(8)})
		p.Tenants = append(p.Tenants, store.Tenant{Tenant: name, Pool: "v100"})
		p.Jobs = append(p.Jobs, view.Live{Key: cluster.JobKey(i), ID: fmt.Sprint(i), Tenant: name, User: "\x1b]0;x\a" + strings.Repeat("ü", 40), State: string(cluster.Waiting), Why: strings.Repeat("long ", 40) + "\n"})
	}
	return p
}

// A frame has exactly the lines of its terminal, none wider than that, whatever the size; it says what it leaves out, and no name moves the cursor.
func TestFramesFit(t *testing.T) {
	for width := 1; width <= 120; width += 7 {
		for height := 1; height <= 60; height += 5 {
			for name, s := range map[string]*Screen{
				"lists": {picture: large()}, "away": {picture: large(), away: &away{why: errors.New(strings.Repeat("no\n", 50))}}, "start": {}, "filter": {picture: large(), filter: "nobody", typing: true},
				"help": {picture: large(), reading: &text{words: help, top: 99}}, "last": {picture: large(), row: 59, chosen: "gone"},
			} {
				s.Page = func() *view.Page { return &view.Page{Now: cluster.Instant(cluster.Day)} }
				s.size = tea.WindowSizeMsg{Width: width, Height: height}
				lines := strings.Split(s.View().Content, "\n")
				if fits := width >= minWidth && height >= minHeight; fits && len(lines) != height || len(lines) > height {
					t.Fatalf("%s, %d x %d: %d lines", name, width, height, len(lines))
				}
				for _, line := range lines {
					if ansi.StringWidth(line) > width || strings.ContainsAny(line, "\x1b\a\r") {
						t.Fatalf("%s, %d x %d: %q", name, width, height, line)
					}
				}
			}
		}
	}
	s := &Screen{picture: large(), Page: func() *view.Page { return &view.Page{Now: cluster.Instant(cluster.Day)} }, size: tea.WindowSizeMsg{Width: 80, Height: 24}}
	s.picture.Status.Tripped = &cluster.Trip{Kind: cluster.LostWork, Bound: int64(cluster.Hour), Count: int64(2 * cluster.Hour)}
	for _, want := range []string{"the breaker has tripped", "more lines: fairlease status", "more tenants", "of 60 jobs, the first 2000 of each kind"} {
		if got := s.View().Content; !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
