package view

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fairlease/fairlease/sidecar/store"
)

// BudgetTable lists budgets, and what is used of them.
func (p *Page) BudgetTable(list []store.Budget) *Table {
	t := &Table{Head: []string{"TENANT", "PER", "SINCE", "UNTIL", ">BUDGET", ">USED", ">PERCENT", ">PER_DAY", "USED_UP", ">AT_UNTIL", "AT_END"},
		None: "No tenant has a budget (setting budgets, docs/budgets.md)."}
	for i := range list {
		b := &list[i]
		usedUp := "-"
		if b.UsedUp != nil && (b.Spent != nil || b.UsedUp.Before(b.End)) {
			usedUp = p.moment(*b.UsedUp)
		}
		atEnd := b.AtEnd
		if b.IdleOnly {
			atEnd += " (now)"
		}
		t.Add(b.Tenant, b.Per, p.moment(b.Start), p.moment(b.End), Hours(b.Hours), Hours(b.Used), fmt.Sprintf("%.1f%%", b.Percent),
			Hours(b.PerDay), usedUp, fmt.Sprintf("%.0f%%", b.EndPercent), atEnd)
	}
	t.Tint = func(row, column int) string {
		if t.Head[column] != ">PERCENT" {
			return ""
		}
		return map[string]string{"warn": "yellow", "bad": "red"}[BudgetLevel(&list[row])]
	}
	return t
}

// BudgetLevel says how urgent a budget is: bad = used up, warn = 80 % are used, else good.
func BudgetLevel(b *store.Budget) string {
	switch {
	case b.Spent != nil:
		return "bad"
	case b.Warned != nil:
		return "warn"
	}
	return "good"
}

// BudgetNotes words the budgets that are used to 80 % or more, the most first.
func (p *Page) BudgetNotes(list []store.Budget) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(b store.Budget) bool { return BudgetLevel(&b) == "good" })
	slices.SortStableFunc(list, func(a, b store.Budget) int { return int(b.Percent) - int(a.Percent) })
	out := make([]string, len(list))
	for i := range list {
		b := &list[i]
		out[i] = fmt.Sprintf("%s has used %.0f %% of its %s GPU-hours for the %s", b.Tenant, b.Percent, Hours(b.Hours), b.Per)
		if b.IdleOnly {
			out[i] += "; it gets idle GPUs only"
		}
		if !b.End.IsZero() {
			out[i] += ", until " + p.moment(b.End)
		}
	}
	return out
}

// moment gives a day and time, for programs as RFC 3339, UTC; "-" if it is not known.
func (p *Page) moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if !p.ForPeople() || p.Zone == nil {
		return t.UTC().Format(time.RFC3339)
	}
	return t.In(p.Zone).Format("2006-01-02 15:04")
}

// Hours gives GPU hours, rounded, with commas.
func Hours(h float64) string {
	text := strconv.FormatFloat(h, 'f', 0, 64)
	if h == 0 {
		return "0"
	}
	if h < 100 && h > -100 {
		return strconv.FormatFloat(h, 'f', 2, 64)
	}
	first := 0
	if h < 0 {
		first = 1
	}
	for at := len(text) - 3; at > first; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
