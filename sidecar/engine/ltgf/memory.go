package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Memory is what Charge keeps for the next look: what it found out about nodes and jobs, and lists to reuse.
type Memory struct {
	Accounts
	last   Accounts // of the last look
	books  books
	nodes  Nodes
	worths worths
}

// worths are those of the settings at the last look.
type worths []cluster.Worth

// same takes those of a look, and tells whether they are as before.
func (w *worths) same(now []cluster.Worth) bool {
	same := slices.Equal(*w, now)
	*w = now
	return same
}

// Accounts are where cases are in the ledger. They are valid until the next look.
type Accounts struct {
	Rows  []int            // by case: the first row of its tenant; -1 = none
	Users []int            // by case: its user's account; -1 = none
	Keys  []cluster.JobKey // by case

	courses []course // by case
}

// lists hands out lists of zeros, which are valid until the next look.
type lists struct {
	all  []cluster.GPUTime
	used int
}

func (l *lists) zeros(n int) []cluster.GPUTime {
	if l.used+n > len(l.all) {
		l.all, l.used = make([]cluster.GPUTime, 2*(len(l.all)+n)), 0
	}
	out := l.all[l.used : l.used+n : l.used+n]
	clear(out)
	l.used += n
	return out
}

func (l *lists) usage(rows int) usage {
	return usage{l.zeros(rows), l.zeros(rows), l.zeros(rows), l.zeros(rows)}
}

// GPUs returns the number of GPUs of all nodes at the last look.
func (m *Memory) GPUs() int { return m.nodes.gpus }

// open copies the ledger into the buffers of an unused one, and finds the accounts of cases.
func (m *Memory) open(s *cluster.Snapshot, room cluster.Ledger) *books {
	b := &m.books
	b.last, b.from, b.now, b.boot, b.settings, b.badNode, b.lists.used = s.Ledger.At, s.Ledger.At, s.Now, s.Boot, &s.Settings, nil, 0
	if b.from == 0 || b.from > b.now {
		b.from = b.now
	}
	if m.nodes.bad {
		b.badNode = map[string]bool{}
		for i := range s.Nodes {
			if s.Nodes[i].Bad != "" {
				b.badNode[s.Nodes[i].Name] = true
			}
		}
	}
	b.ledger = cluster.Ledger{At: s.Now, Tenants: slices.Grow(room.Tenants[:0], len(s.Ledger.Tenants)), Pools: append(room.Pools[:0], s.Ledger.Pools...),
		Conversions: s.Ledger.Conversions}
	for i := range s.Ledger.Tenants {
		var buckets []cluster.Bucket
		var lots, lacks []cluster.Lot
		if i < len(room.Tenants) {
			buckets, lots, lacks = room.Tenants[i].Buckets[:0], room.Tenants[i].Lots[:0], room.Tenants[i].Lacks[:0]
		}
		b.ledger.Tenants = append(b.ledger.Tenants, s.Ledger.Tenants[i])
		b.ledger.Tenants[i].Buckets = append(buckets, s.Ledger.Tenants[i].Buckets...)
		b.ledger.Tenants[i].Lots = append(lots, s.Ledger.Tenants[i].Lots...)
		b.ledger.Tenants[i].Lacks = append(lacks, s.Ledger.Tenants[i].Lacks...)
	}
	if !complete(&b.ledger, s, m.nodes.models) {
		addMissing(&b.ledger, s)
	}
	b.usage = b.lists.usage(len(b.ledger.Tenants))
	b.pools = slices.Grow(b.pools[:0], len(b.ledger.Pools))[:len(b.ledger.Pools)]
	clear(b.pools)
	b.openUsers(s, room.Users)
	m.openAccounts(s)
	return b
}

// openAccounts finds the accounts of cases: those of the last look, for jobs that are as they were or still of the same tenant and user. It
// opens accounts of new users.
func (m *Memory) openAccounts(s *cluster.Snapshot) {
	m.Accounts, m.last = m.last, m.Accounts
	b, now, last := &m.books, &m.Accounts, &m.last
	n := len(s.Cases)
	now.Rows, now.Users, now.Keys = slices.Grow(now.Rows[:0], n)[:n], slices.Grow(now.Users[:0], n)[:n], slices.Grow(now.Keys[:0], n)[:n]
	now.courses = slices.Grow(now.courses[:0], n)[:n]
	keeps, known, slice := s.Settings.Users != cluster.UsersByJob, len(b.ledger.Users), sliceOf(b.now, b.settings.Window)
	sameRows := len(b.ledger.Tenants) == len(s.Ledger.Tenants) && len(b.ledger.Pools) == len(s.Ledger.Pools) // since that of the last look
	sameUsers := known == len(s.Ledger.Users)
	k := 0
	for i := range s.Cases {
		r := &s.Cases[i].Record
		for k < len(last.Keys) && last.Keys[k] < r.Key {
			k++
		}
		row, user, same := -1, -1, s.Before(i) >= 0
		if k < len(last.Keys) && last.Keys[k] == r.Key {
			row, user = last.Rows[k], last.Users[k]
		}
		if !same || !sameRows || row < 0 {
			if tenant := r.Payer(); !isRow(&b.ledger, row, tenant) {
				row = b.row(tenant)
			}
		}
		if !keeps {
			user = -1
		} else if !same || !sameUsers || user < 0 {
			if tenant := r.Payer(); user < 0 || user >= known || b.ledger.Users[user].User != r.User || b.ledger.Users[user].Tenant != tenant {
				user = userRow(b, known, tenant, r.User)
			}
		}
		if user >= 0 && !s.Cases[i].Gone {
			b.ledger.Users[user].Seen = slice
		}
		now.Rows[i], now.Users[i], now.Keys[i] = row, user, r.Key
	}
	if len(b.ledger.Users) > known {
		b.ledger.Users = sortUsers(b.ledger.Users, now.Users)
	}
	b.users.at = now.Users
	if keeps {
		n := len(b.ledger.Users) * len(b.ledger.Pools)
		b.users.used, b.users.kept = b.lists.zeros(n), b.lists.zeros(n)
	}
}
