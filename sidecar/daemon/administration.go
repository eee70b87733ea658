package daemon

import (
	"context"
	"sync/atomic"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Records is the record of administration in the journal.
type Records interface {
	// Propose has the next commit record which settings in force differ from those recorded last.
	Propose(settings []store.Setting)
	// Record does so at once, as of a round that was committed before.
	Record(ctx context.Context, round int64) error
	// Resumed gives the operator's word after the trip of a round; the zero value = there is none.
	Resumed(ctx context.Context, trip int64) (cluster.GoAhead, error)
}

// standing is how the configuration stands: which file is in force, and since when another one waits or was refused.
type standing struct {
	says  string // for the record
	by    string // author of that
	owner string // author of the settings in force
	how   string // the way by which they came
}

// administration has each change of a setting recorded with the first round in which it is in force.
type administration struct {
	standing atomic.Pointer[standing]
	seen     atomic.Pointer[seen] // of the newest round; nil = none was decided yet

	config   *config.Config // its settings are recorded; nil = unknown
	of       *standing
	proposed func() // to be called when they are
	resumed  cluster.GoAhead
}

// listen reads whether an operator has resumed since the breaker tripped.
func (r *administration) listen(ctx context.Context, last *cluster.Snapshot, from Records) (err error) {
	if last.Breaker.Trip != nil && last.Breaker.Trip.Round != r.resumed.Round {
		r.resumed, err = from.Resumed(ctx, last.Breaker.Trip.Round)
	}
	return err
}

// propose hands the settings of a round to the journal, if they may differ from those recorded last.
func (r *administration) propose(c *config.Config, to Records) {
	s := r.standing.Load()
	if r.proposed = nil; c == r.config && s == r.of {
		return
	}
	to.Propose(wordsOf(c, s))
	r.proposed = func() { r.config, r.of, r.proposed = c, s, nil }
}

// written notes that a round was committed, with what was proposed.
func (r *administration) written() {
	if r.proposed != nil {
		r.proposed()
	}
}

// quiet records what was proposed in a turn that commits no round.
func (r *administration) quiet(ctx context.Context, to Records, round int64) error {
	if r.proposed == nil {
		return nil
	}
	err := to.Record(ctx, round)
	if err == nil {
		r.written()
	}
	return err
}

// wordsOf words a configuration for the record.
func wordsOf(c *config.Config, s *standing) []store.Setting {
	out := []store.Setting{{Kind: store.OfConfiguration, Key: "configuration", Value: s.says, By: s.by, Why: s.how}}
	for i, w := range config.Words(c) {
		out = append(out, store.Setting{Ordinal: i + 1, Kind: store.OfSetting, Key: w.Key, Value: w.Value, Default: w.Default, By: s.owner, Why: s.how})
	}
	return out
}

// takenOver says that a configuration is in force that was read just now.
func takenOver(c *config.Config, how string) *standing {
	owner := config.Author(c)
	return &standing{says: "in force: " + config.Digest(c)[:12], by: owner, owner: owner, how: how}
}
