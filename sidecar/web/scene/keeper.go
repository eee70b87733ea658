package scene

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Keeper reads the journal again and again, and has the newest Scene. If the journal does not answer, that is the last good one, and
// says since when.
type Keeper struct {
	// Open opens the journal; it is called again after it failed.
	Open func(context.Context) (*store.Store, error)
	// Every is the time between two looks for a new round; 0 = a second.
	Every time.Duration
	// Stance gives the mode and the partitions that are acted on, as the daemon of this host has them in force, or as configured here, and what
	// a configuration would do that waits to be accepted.
	Stance func() (mode string, acting []string, waits string)
	// Failed is told of an error once, until it is another; nil = nobody is.
	Failed func(error)
	// Looked is called once, after the first look at the journal, whether it answered or not; nil = nobody is told.
	Looked func()

	scene   atomic.Pointer[Scene]
	store   atomic.Pointer[store.Store]
	last    string // error
	lock    sync.Mutex
	waiting map[chan struct{}]bool
	history *past
}

// refresh is the maximum age of what changes without a round, such as the GPUs' counters.
const refresh = 30 * time.Second

// Hold gives a Keeper that has a Scene and reads nothing, for tests. Put changes it.
func Hold(s *Scene) *Keeper {
	k := new(Keeper)
	k.Put(s)
	return k
}

// Scene gives the newest Scene; never nil. Before the first one it is empty, and silent.
func (k *Keeper) Scene() *Scene {
	if s := k.scene.Load(); s != nil {
		return s
	}
	return k.empty()
}

func (k *Keeper) empty() *Scene {
	none := Facts{Read: time.Now()}
	none.Mode, none.Acting, none.Waits = k.stance()
	s := Of(none)
	return s.silent(s.Read)
}

// Past gives the history of the journal that the Keeper reads.
func (k *Keeper) Past() Past {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.history == nil {
		k.history = newPast(k.store.Load)
	}
	return Past{k.history, k.history}
}

// Put makes a Scene the newest, and tells those who wait for one.
func (k *Keeper) Put(s *Scene) {
	if old := k.scene.Load(); old != nil {
		s.Serial = old.Serial + 1
	} else {
		s.Serial = max(s.Serial, 1)
	}
	k.scene.Store(s)
	k.lock.Lock()
	defer k.lock.Unlock()
	for c := range k.waiting {
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}

// Subscribe gives a channel that receives whenever there is a new Scene, until done is called. A subscriber who is slow misses Scenes,
// never the newest. False = there are already most subscribers.
func (k *Keeper) Subscribe(most int) (news <-chan struct{}, done func(), ok bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if len(k.waiting) >= most {
		return nil, nil, false
	}
	if k.waiting == nil {
		k.waiting = map[chan struct{}]bool{}
	}
	c := make(chan struct{}, 1)
	k.waiting[c] = true
	return c, func() {
		k.lock.Lock()
		defer k.lock.Unlock()
		delete(k.waiting, c)
	}, true
}

// Run reads the journal until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.scene.CompareAndSwap(nil, k.empty())
	every := k.Every
	if every <= 0 {
		every = time.Second
	}
	looked := sync.OnceFunc(func() {
		if k.Looked != nil {
			k.Looked()
		}
	})
	tick := time.NewTicker(every)
	defer tick.Stop()
	var rounds *store.Follower
	defer func() {
		if s := k.store.Load(); s != nil {
			s.Close()
		}
	}()
	for {
		err := k.look(ctx, &rounds)
		if ctx.Err() != nil {
			return
		}
		k.answered(err)
		looked()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// answered notes that the journal answers, or does not.
func (k *Keeper) answered(err error) {
	s := k.Scene()
	switch {
	case err == nil && s.Silent != nil:
		k.Put(s.silent(time.Time{}))
	case err != nil && s.Silent == nil:
		k.Put(s.silent(time.Now()))
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != k.last && err != nil && k.Failed != nil {
		k.Failed(err)
	}
	k.last = text
}

// look makes a Scene if there is a new round, if the leader has changed, or if the last one is old.
func (k *Keeper) look(ctx context.Context, rounds **store.Follower) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s := k.store.Load()
	if s == nil {
		opened, err := k.Open(ctx)
		if err != nil {
			return err
		}
		s = opened
		k.store.Store(s)
		*rounds = s.Rounds.Follow()
	}
	number, lead, err := glance(ctx, s)
	if err != nil {
		return err
	}
	now := k.Scene()
	read := now.Round > 0 || now.Silent == nil // at least once
	if read && now.Round == number && time.Since(now.Read) < refresh && now.leads(lead) {
		return nil
	}
	f := Facts{Read: time.Now(), Leader: lead}
	f.Mode, f.Acting, f.Waits = k.stance()
	if now.Round == number && number > 0 {
		f.Snapshot, f.Plan = now.facts.Snapshot, now.facts.Plan
	} else if f.Snapshot, f.Plan, err = (*rounds).Last(ctx); err != nil {
		return err
	}
	if f.Forecasts, err = forecasts(ctx, s, now.facts.Forecasts); err != nil {
		return err
	}
	if err := f.read(ctx, s); err != nil {
		return err
	}
	k.Put(Of(f))
	return nil
}

// glance gives the newest round and the leader, or fails soon: a journal that hangs is silent, too.
func glance(ctx context.Context, s *store.Store) (number int64, lead *store.Leader, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxQuery)
	defer cancel()
	if number, _, err = s.Rounds.Newest(ctx); err == nil {
		lead, err = s.Leader(ctx)
	}
	return number, lead, err
}

// leads tells whether the Scene is right about the leader.
func (s *Scene) leads(lead *store.Leader) bool {
	had := s.Status.Leader
	if lead == nil || had == nil {
		return lead == had
	}
	alive := lead.Renewed.Add(lead.Silent).Before(lead.Takeover)
	return lead.Term == had.Term && lead.Holder == had.Holder && alive == s.Status.Alive
}

// forecasts reads the newest forecasts unless they are known: there are new ones only every some minutes.
func forecasts(ctx context.Context, s *store.Store, known []store.JobForecast) ([]store.JobForecast, error) {
	if at, err := s.Forecasts.At(ctx); err != nil || len(known) > 0 && known[0].AsOf.Equal(at) {
		return known, err
	}
	return s.Forecasts.List(ctx, 0)
}

// read reads what is not in the round.
func (f *Facts) read(ctx context.Context, s *store.Store) (err error) {
	const mostLeases, mostGPUs = 100_000, 200_000
	get := func(what string, read func() error) {
		if err == nil {
			if err = read(); err != nil {
				err = fmt.Errorf("reading %s: %w", what, err)
			}
		}
	}
	get("the daemons", func() (e error) { f.Standbys, e = s.Daemons.Standbys(ctx); return e })
	get("the tenants", func() (e error) { f.Tenants, e = s.Tenants.List(ctx); return e })
	get("the debts", func() (e error) { f.Debts, e = s.Tenants.Debts(ctx); return e })
	get("the budgets", func() (e error) { f.Budgets, e = s.Tenants.Budgets(ctx, ""); return e })
	get("the objectives", func() (e error) { f.Objectives, e = s.Tenants.Objectives(ctx); return e })
	get("the GPUs that cannot be taken back", func() (e error) { f.Bound, e = s.Jobs.Bound(ctx); return e })
	get("the leases", func() (e error) { f.Leases, e = s.Jobs.Leases(ctx, false, mostLeases); return e })
	get("the trades", func() (e error) { f.Trades, e = s.Jobs.Trades(ctx, false, MaxRows); return e })
	get("the throughput", func() (e error) { f.Effective, e = s.Tenants.Effective(ctx, ""); return e })
	get("the events", func() (e error) { f.Events, e = s.Rounds.EventsBefore(ctx, nil, 0, 0, MaxRows); return e })
	get("how often forecasts kept their word", func() (e error) { f.Kept, e = s.Forecasts.Coverage(ctx); return e })
	get("the GPUs", func() (e error) { f.GPUs, e = s.GPUs.List(ctx, "", mostGPUs); return e })
	get("the GPUs", func() (e error) { f.GPULooks, f.Unseen, e = s.GPUs.Looks(ctx); return e })
	get("the remarks on jobs", func() (e error) { f.Remarks, e = s.GPUs.Remarks(ctx, 0, MaxRows); return e })
	get("the users", func() (e error) { f.Members, e = s.Tenants.Members(ctx); return e })
	get("the overrides", func() (e error) { f.Overrides, e = s.Overrides.List(ctx, MaxRows); return e })
	f.Overrides = slices.DeleteFunc(f.Overrides, func(o store.Override) bool { return o.Ended != nil || o.Until.Before(f.Read) })
	slices.SortFunc(f.Members, func(a, b cluster.Member) int { return strings.Compare(a.User+"\x00"+a.Tenant, b.User+"\x00"+b.Tenant) })
	return err
}

func (k *Keeper) stance() (mode string, acting []string, waits string) {
	if k.Stance == nil {
		return "", nil, ""
	}
	return k.Stance()
}
