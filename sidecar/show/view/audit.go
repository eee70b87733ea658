package view

import (
	"strconv"

	"github.com/fairlease/fairlease/sidecar/store"
)

// ActTable lists the record of administration, for a page.
func ActTable(p *Page, list []store.Act) *Table {
	t := &Table{Head: []string{"WHEN", ">ROUND", "KIND", "KEY", "BEFORE", "NOW", "BY", "WHY"}, None: "Nothing is recorded of that time, key and author."}
	for i := range list {
		a := &list[i]
		round := "-"
		if a.Round > 0 {
			round = strconv.FormatInt(a.Round, 10)
		}
		t.Add(p.moment(a.At), round, a.Kind, a.Key, ValueOf(a.Before), ValueOf(a.After), a.By, a.Why)
	}
	return t
}

// ValueOf gives a value of the record; - = there is none.
func ValueOf(value *string) string {
	if value == nil || *value == "" {
		return "-"
	}
	return *value
}
