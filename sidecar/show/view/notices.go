package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// NoticeTable lists notices to a user.
func NoticeTable(p *Page, list []store.Notice) *Table {
	t := &Table{Head: []string{"CAUSED", "KIND", "JOB", "BY", "STATE", "SENT", "WHY"}, None: "There were no notices in the last 30 days."}
	w := p.words(nil)
	for i := range list {
		n := &list[i]
		state, sent := "waits", "-"
		switch {
		case n.Sent != nil:
			state, sent = "sent", clock(w, cluster.InstantOf(*n.Sent))
		case n.Dead != nil:
			state = "given up"
		}
		t.Add(clock(w, cluster.InstantOf(n.Created)), n.Kind, cmp.Or(n.Facts.ID, "-"), n.Channel, state, sent, cmp.Or(strings.Join(strings.Fields(n.Error), " "), "-"))
	}
	return t
}

// NoticeWish words which notices a user gets: what it chose, within what the site sends.
func NoticeWish(c *store.NoticeChoice, site []string, quiet string) string {
	var kinds []string
	for _, k := range site {
		if c.Kinds == nil || slices.Contains(c.Kinds, k) {
			kinds = append(kinds, k)
		}
	}
	if c.Quiet != nil {
		quiet = *c.Quiet
	}
	return fmt.Sprintf("%s gets notices of: %s; quiet hours: %s", c.User, cmp.Or(strings.Join(kinds, ", "), "nothing"), cmp.Or(quiet, "none"))
}
