package config

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the zones, for hosts without them

	"go.yaml.in/yaml/v3"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
)

// Schedule is settings that replace those of the file for a while, again and again.
type Schedule struct {
	Name string   `yaml:"name"`
	At   string   `yaml:"at"`   // when it begins: a cron line
	For  Duration `yaml:"for"`  // how long it lasts
	Zone string   `yaml:"zone"` // of At; "" = that of the host
	Set  changes  `yaml:"set"`

	begins *localtime.Line
	config *Config // with its settings; nil = not valid
	sets   string  // its settings, in words
}

// changes is a mapping of keys of the file, whose values depend on all others.
type changes struct{ node *yaml.Node }

// scheduled are the keys that a schedule may set, and the sections all of whose keys it may set.
var scheduled = []string{"preset", "lease", "stop", "bind", "start", "saves", "reclaim", "recall", "compact", "credit", "burst", "repay", "users", "jobs", "tenants.weights",
	"cells.chooser", "cells.affinity_wait", "cells.strict_qos", "cells.levels", "models.chooser", "models.estimate", "models.divide_every", "models.most_kinds", "models.prices"}

// mayChange reports whether a schedule may set a key.
func mayChange(key string) bool {
	return slices.ContainsFunc(scheduled, func(section string) bool { return under(key, section) })
}

// under reports whether a key is a section, or in it.
func under(key, section string) bool {
	return key == section || strings.HasPrefix(key, section+".") || strings.HasPrefix(key, section+"[")
}

// String words a schedule, for display.
func (s Schedule) String() string {
	at := s.At
	if s.Zone != "" {
		at += " " + s.Zone
	}
	return fmt.Sprintf("%s: at %s for %v: %s", s.Name, at, s.For, s.sets)
}

// prepare checks the schedules, each with its settings in place of the file's, and the section tune. The file's own problems
// are not found again.
func (c *Config) prepare(own Problems) Problems {
	var out Problems
	names := map[string]bool{}
	for i := range c.Schedules {
		s := &c.Schedules[i]
		at := fmt.Sprintf("schedules[%d]", i)
		k := &checker{c: c}
		k.must(s.Name != "" && !names[s.Name], at+".name", "%q is no name, or is there twice; give each schedule a name of its own", s.Name)
		names[s.Name] = true
		k.must(s.For >= Duration(cluster.Minute) && s.For <= Duration(31*cluster.Day), at+".for", "must be 1m to 31d, got %v", s.For)
		s.begins = k.cron(at, s.At, s.Zone)
		k.must(s.Set.node != nil && len(s.Set.node.Content) > 0, at+".set", "changes nothing; write the keys that hold for the time, such as {lease: {term: 1h}}")
		if len(k.problems) == 0 {
			k.problems = c.apply(s, at, own)
		}
		out = append(out, k.problems...)
	}
	return append(out, c.prepareTune(len(own)+len(out) > 0)...)
}

// cron reads the keys at and zone of a section: a cron line and its time zone, "" = that of the host.
func (k *checker) cron(section, line, zone string) *localtime.Line {
	where, err := time.LoadLocation(zone)
	if zone == "" {
		where, err = time.Local, nil
	}
	k.must(err == nil, section+".zone", "%q is no time zone; write one like Europe/Berlin, or UTC", zone)
	begins, err := localtime.ParseLine(line, where)
	k.must(err == nil, section+".at",
		"%q is no time; write minute, hour, day of the month, month and day of the week, such as \"0 20 * * 1-5\" for 20:00 from Monday to Friday", line)
	if err != nil || where == nil {
		return nil
	}
	k.must(begins.Comes(time.Now()), section+".at", "%q never comes; correct the day or the month", line)
	return begins
}

// apply makes the configuration that is in force with a schedule.
func (c *Config) apply(s *Schedule, at string, own Problems) Problems {
	with := *c
	with.Schedules = nil
	r := &reader{file: c.from.name, keys: Keys(), origins: map[string]Origin{}}
	r.section(reflect.ValueOf(&with).Elem(), s.Set.node, "")
	keys := slices.Sorted(maps.Keys(r.origins))
	for _, key := range keys {
		if !mayChange(key) {
			r.wrong(r.origins[key].line, key, "cannot change by a schedule; these can: %s", strings.Join(scheduled, ", "))
		}
	}
	with.from.origins = maps.Clone(c.from.origins)
	maps.Copy(with.from.origins, r.origins)
	with.settle()
	if len(r.problems) == 0 {
		r.problems = slices.DeleteFunc(with.check(), func(p Problem) bool {
			return slices.ContainsFunc(own, func(q Problem) bool { return q.Key == p.Key && (q.line == p.line || q.Text == p.Text) })
		})
	}
	for i := range r.problems {
		p := &r.problems[i]
		p.Key, p.Text = join(at+".set", p.Key), p.Text+fmt.Sprintf(" (while schedule %s is in force)", s.Name)
		if o := c.from.origins[at+".set"]; p.line == 0 {
			p.Place, p.line = o.Place, o.line
		}
	}
	var words []string
	for _, v := range with.Values() {
		if slices.ContainsFunc(keys, func(key string) bool { return under(key, v.Key) }) {
			words = append(words, fmt.Sprintf("%s %v", v.Key, v.Value))
		}
	}
	s.config, s.sets = &with, strings.Join(words, ", ")
	return r.problems
}

// Scheduled gives the configuration that is in force with each valid schedule, by the schedule's name, in the order of the file.
func (c *Config) Scheduled() iter.Seq2[string, *Config] {
	return func(yield func(string, *Config) bool) {
		for i := range c.Schedules {
			if s := &c.Schedules[i]; s.config != nil && !yield(s.Name, s.config) {
				return
			}
		}
	}
}

// InForce returns the configuration at a time: with the settings of the first schedule of the file that is in force
// then, and that schedule; nil = none is.
func (c *Config) InForce(t time.Time) (*Config, *cluster.Schedule) {
	for i := range c.Schedules {
		s := &c.Schedules[i]
		if s.config == nil {
			continue
		}
		length := s.For.Span().Duration()
		if begun, ok := s.begins.Last(t, length); ok {
			with := *s.config
			with.from.vcs, with.from.profiles = c.from.vcs, c.from.profiles
			until := begun.Add(length)
			return &with, &cluster.Schedule{Name: s.Name, Until: cluster.InstantOf(until), Sets: s.sets}
		}
	}
	return c, nil
}
