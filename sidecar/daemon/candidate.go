package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// candidate has the lead, or waits for it. It knows whether this Slurm and the journal belong together.
type candidate struct {
	connect  func(context.Context) (Store, error)
	identify func(context.Context) (cluster.Identity, error)    // nil = the first look does
	look     func(context.Context) (cluster.Observation, error) // without a lead; nil = never
	file     string                                             // of the state

	store  Store
	lead   *Leadership
	beside atomic.Pointer[Leadership] // lead, for work that may not hold up a turn
	unkeep context.CancelFunc         // ends the lead's keeper
	signed time.Time                  // when this daemon last told the journal that it runs; zero = never
	mine   cluster.Identity           // the cluster that last matched the journal
	heard  heard
	apart  apart
	kin    kin
	top    top
}

// acquire makes sure that this daemon has the lead for now. It tells whether it has got it just now.
func (c *candidate) acquire(ctx context.Context) (news bool, err error) {
	if c.store == nil {
		store, err := c.connect(ctx)
		if err != nil {
			return false, err
		}
		c.store = store
	}
	if c.lead != nil {
		return false, c.keep(ctx)
	}
	if c.identify != nil && c.mine == (cluster.Identity{}) {
		// A standby is refused, too. While Slurm is away, the first look with the lead decides.
		if is, err := c.identify(ctx); err == nil {
			if err := c.claim(ctx, is); err != nil {
				return false, err
			}
		}
	}
	if c.kin.not != nil {
		if err := c.probe(ctx); err != nil {
			return false, err
		}
	}
	if !c.top.filed {
		c.top.filed = true
		if file, err := ReadState(c.file); err == nil { // else the turn says why not
			c.top.see(file.Term, file.Round)
		}
	}
	lead, err := c.store.Acquire(ctx, c.top.term)
	if err != nil {
		return false, err
	}
	c.lead, c.mine, c.heard, c.apart = lead, cluster.Identity{}, heard{}, apart{}
	c.top.see(lead.Term, 0)
	c.beside.Store(lead)
	keep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.unkeep = cancel
	go keeper(keep, lead, keepEvery)
	return true, nil
}

// keep makes sure that the lead is still this daemon's.
func (c *candidate) keep(ctx context.Context) error {
	if lost(c.lead) {
		return errDeposed
	}
	if !time.Now().After(c.lead.Sure()) {
		return nil
	}
	err := c.lead.Keep(ctx)
	if lost(c.lead) {
		return errDeposed
	}
	return err
}

// claim makes sure that the journal belongs to this cluster.
func (c *candidate) claim(ctx context.Context, is cluster.Identity) error {
	if is == c.mine {
		return nil
	}
	if err := c.store.Claim(ctx, is); err != nil {
		return err
	}
	c.mine = is
	return nil
}

// follow asks for the turns of the leading daemon, and tells whether one came lately.
func (c *candidate) follow(ctx context.Context, lately time.Duration) (bool, error) {
	term, turns, round, err := c.store.Turns(ctx)
	c.top.see(term, round)
	return err == nil && c.heard.hear(term, turns, lately), err
}

// attendEvery is the least time between two words to the journal that a daemon runs: a little less than the usual interval.
const attendEvery = 9 * time.Second

// attend tells the journal that this daemon runs, with or without the lead. Rounds are at most two intervals and a pause apart.
func (c *candidate) attend(ctx context.Context, interval time.Duration) error {
	if time.Since(c.signed) < attendEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keepEvery)
	defer cancel()
	if c.signed.IsZero() { // a process before may have had the same name
		if err := c.store.Attend(ctx, 0); err != nil {
			return err
		}
	}
	c.signed = time.Now()
	return c.store.Attend(ctx, 2*max(interval, attendEvery)+longestPause)
}

// depart tells the journal that this daemon ends.
func (c *candidate) depart() error {
	if c.signed.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepEvery)
	defer cancel()
	return c.store.Attend(ctx, 0)
}

// leave discards the lead.
func (c *candidate) leave() {
	if c.unkeep != nil {
		c.unkeep()
	}
	c.lead, c.unkeep = nil, nil
	c.beside.Store(nil)
}

// meets makes sure that a look, which started at began, is at the journal's cluster, by clocks that agree.
func (c *candidate) meets(ctx context.Context, seen *cluster.Observation, began time.Time) error {
	if err := c.claim(ctx, seen.Identity()); err != nil {
		return err
	}
	if err := c.recognise(ctx, seen); err != nil {
		return err
	}
	return c.agree(ctx, seen, began)
}

// resign gives up a lead; nil = there is none.
func resign(lead *Leadership) error {
	if lead == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepEvery)
	defer cancel()
	return lead.Resign(ctx)
}
