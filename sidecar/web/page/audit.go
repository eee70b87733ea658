package page

import (
	"strconv"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// acts is the content of the record of administration.
type acts struct {
	Key, By string // of the selection
	Rows    []act
	Older   string // address of older ones; "" = none
}

// act is a row, with values in words.
type act struct {
	store.Act
	Was, Is string
}

const mostActs = 100

// auditPage is for operators: for others there is no such page.
func auditPage(v *visit) (string, any, error) {
	if !v.Who.Operator {
		return "", nil, errLost
	}
	v.Title = "Changes"
	before, _ := strconv.ParseInt(v.query("before"), 10, 64) // 0 if it is no number: the newest
	x := &acts{Key: v.query("key"), By: v.query("by")}
	list, err := v.past().Acts(v.req.Context(), v.Who.Scope(), store.Acts{Before: before, Key: x.Key, By: x.By, Limit: mostActs})
	if err := v.history(err); err != nil {
		return "", nil, err
	}
	for _, a := range list {
		x.Rows = append(x.Rows, act{a, view.ValueOf(a.Before), view.ValueOf(a.After)})
	}
	if n := len(list); n == mostActs {
		x.Older = v.With("before", strconv.FormatInt(list[n-1].ID, 10))
	}
	return "audit", x, nil
}
