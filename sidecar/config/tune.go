package config

import (
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// Tune says when the term of leases is chosen anew by the journal's last days, and within which bounds.
type Tune struct {
	At      string     `yaml:"at"`    // a cron line; "" = never
	Zone    string     `yaml:"zone"`  // of At; "" = that of the host
	Last    Duration   `yaml:"last"`  // length of the replayed window
	Terms   []Duration `yaml:"terms"` // the candidates, ascending; the first and the last are the bounds
	Apply   bool       `yaml:"apply"`
	WorseBy Percent    `yaml:"worse_by"`
	Watch   Duration   `yaml:"watch"`
	Rest    Duration   `yaml:"rest"`

	begins *localtime.Line // nil = never
}

// Due tells whether the tuning of a night begins in the minute that t begins.
func (t *Tune) Due(at time.Time) bool {
	if t.begins == nil {
		return false
	}
	_, ok := t.begins.Last(at, time.Second)
	return ok
}

// Rule gives the limits of tuning.
func (t *Tune) Rule() tune.Rule {
	r := tune.Rule{Off: t.At == "", Apply: t.Apply, WorseBy: float64(t.WorseBy) / 100, Watch: t.Watch.Span(), Rest: t.Rest.Span()}
	for _, term := range t.Terms {
		r.Terms = append(r.Terms, term.Span())
	}
	return r
}

// At gives the configuration and the engine's settings at a time: those of the schedule in force, if any, and with the
// term that the newest decisive change of tuning puts in place of the file's; nil = there was none. A schedule's own
// term has precedence. The settings also have what has changed about the term if no round has said so.
func (c *Config) At(t time.Time, newest *tune.Change) (*Config, cluster.Settings) {
	with, schedule := c.InForce(t)
	s := with.Settings()
	s.Schedule = schedule
	rule := c.Tune.Rule()
	holds, _ := rule.Holds(c.Lease.Term.Span(), newest)
	if newest == nil || !holds && newest.Round > 0 {
		return with, s
	}
	s.Tuned = &cluster.Tuned{Term: newest.File, File: newest.File, Since: newest.At, By: newest.By, Why: newest.Why}
	if newest.Round == 0 {
		s.Tuned.News = newest.Words()
	}
	if holds {
		s.Tuned.Term = newest.Term
		if !c.setsTerm(with) {
			s.Term = newest.Term
		}
	}
	return with, s
}

// setsTerm tells whether with, the configuration in force, has a term of a schedule's own in place of the file's.
func (c *Config) setsTerm(with *Config) bool {
	return with.from.origins["lease.term"] != c.from.origins["lease.term"]
}

// prepareTune checks the section tune, and that every candidate goes with the settings of the file and of every
// schedule, unless those have problems of their own.
func (c *Config) prepareTune(others bool) Problems {
	t, k := &c.Tune, &checker{c: c}
	k.must(len(t.Terms) > 0, "tune.terms", "is empty; list the terms that may be chosen, such as [10m, 15m, 20m, 30m]")
	for i := 1; i < len(t.Terms); i++ {
		k.must(t.Terms[i] > t.Terms[i-1], "tune.terms", "%v stands after %v; write each term once, the shortest first", t.Terms[i], t.Terms[i-1])
	}
	const day = Duration(cluster.Day)
	k.must(t.Last >= day, "tune.last", "%v is too short to judge a term by; write at least 1d", t.Last)
	k.must(t.Watch >= day, "tune.watch", "%v is too short to judge a takeover by; write at least 1d", t.Watch)
	k.must(t.Rest >= t.Watch, "tune.rest", "%v is shorter than %s: a term would be tried again at once; lengthen it", t.Rest, k.where("tune.watch", t.Watch))
	k.must(t.WorseBy <= 100, "tune.worse_by", "must be 0 to 100 percent points, got %v", t.WorseBy)
	if t.At == "" {
		return k.problems
	}
	k.must(t.Last <= c.Database.KeepRounds, "tune.last", "%v is longer than %s, and older rounds cannot be replayed; shorten it", t.Last, k.where("database.keep_rounds", c.Database.KeepRounds))
	t.begins = k.cron("tune", t.At, t.Zone)
	if len(k.problems) > 0 || others {
		return k.problems
	}
	k.candidates(c, "")
	for i := range c.Schedules {
		if s := &c.Schedules[i]; !c.setsTerm(s.config) {
			k.candidates(s.config, " and schedule "+s.Name+" is in force")
		}
	}
	return k.problems
}

// candidates notes each setting of a configuration that does not go with a candidate in place of its term.
func (k *checker) candidates(of *Config, when string) {
	for _, term := range k.c.Tune.Terms {
		with := *of
		with.Lease.Term = term
		for _, p := range with.check() {
			k.must(false, "tune.terms", "%s: %s", p.Key, p.Text+fmt.Sprintf(" (while tune has taken over a term of %v%s)", term, when))
		}
	}
}
