package truth

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/tests/seeds"
)

// choice is some keys with other values than the defaults.
type choice map[string]string

// choices are values of all keys that a schedule may set, but for the preset.
var choices = []choice{
	{"lease.term": "30m"}, {"lease.min": "10m"}, {"lease.min_terms": "0"}, {"lease.notice": "3m"}, {"lease.notice_min": "1m", "lease.notice_max": "4m"},
	{"lease.notice_concurrent": "1"}, {"lease.grant_timeout": "3m"}, {"lease.signal": "USR2"}, {"lease.signal": "none"}, {"lease.signal_to": "batch"},
	{"lease.signals": "[{qos: high, signal: TERM, to: all}]"},
	{"stop.allowance": "0s"}, {"stop.allowance": "2m"}, {"stop.allowance": "0s", "stop.overhead": "0"}, {"stop.overhead": "9"}, {"stop.total": "0"}, {"stop.total": "1"},
	{"stop.per_hour": "5"}, {"stop.per_hour_tenant": "10"}, {"stop.per_hour_user": "10"},
	{"bind.quiet": "0s"}, {"bind.quiet": "1h"}, {"bind.horizon": "0"}, {"bind.max": "35"}, {"bind.max": "60"},
	{"start.cost": "8m"}, {"saves": "[{partition: gpu, saves: notice}]"}, {"saves": "[{qos: high, saves: 30m}]"},
	{"reclaim.threshold": "0s"}, {"reclaim.threshold": "2h"}, {"reclaim.max": "1"}, {"recall.first_lease": "false"}, {"recall.notice": "1m"},
	{"compact.max_cost": "0"}, {"compact.max_cost": "100"}, {"compact.max_wait": "0s"}, {"compact.max_wait": "1h"}, {"credit.cap": "10m"}, {"burst.max": "1"}, {"burst.max": "0"}, {"repay.floor": "0"}, {"repay.floor": "20"}, {"users": "equal"},
	{"jobs.order": "rho"}, {"jobs.order": "attained"}, {"jobs.patience": "0s"}, {"jobs.patience": "30m"}, {"jobs.new_first": "false"}, {"jobs.new_share": "0"}, {"jobs.new_share": "100"},
	{"jobs.long_terms": "1"}, {"jobs.urgent_qos": "[high]"}, {"jobs.weights": "{high: 20}"}, {"tenants.weights": "{a: 1, b: 3}"},
	{"cells.chooser": "fifo"}, {"cells.chooser": "tiresias-l"}, {"cells.chooser": "gandiva-fair"}, {"cells.affinity_wait": "0s"}, {"cells.strict_qos": "[high]"}, {"cells.levels": "{high: 3}"},
	{"models.chooser": "debt"}, {"models.chooser": "stride"}, {"models.chooser": "gavel"}, {"models.chooser": "oef"}, {"models.chooser": "paper"}, {"models.estimate": "false"},
	{"models.divide_every": "30m"}, {"models.most_kinds": "1"}, {"models.prices": "{v100: 9}"}, {"models.prices": "{k80: 9}"},
}

// kinds are a preset of each kind. Presets of a kind take the same path: between what they divide, whether tenants' weights, prices and most_kinds count, and
// whether tenants have cells. They differ in their divisions, by which others of the kind leave the worlds idle.
var kinds = []choice{{"preset": "astraea"}, {"preset": "hived", "cells.file": "cells.yaml"}, {"preset": "drf"}, {"preset": "gavel:fifo"}, {"preset": "gavel:las"}, {"preset": "oef:noncoop"},
	{"preset": "gavel:cost-sum", "models.prices": "{v100: 4}"}, {"preset": "drf", "cells.file": "cells.yaml"}, {"preset": "gavel:las", "cells.file": "cells.yaml"}}

func with(all ...choice) choice {
	out := choice{}
	for _, c := range all {
		maps.Copy(out, c)
	}
	return out
}

// The choices have all keys that a schedule may set, and only those.
func TestChoicesHaveAllKeys(t *testing.T) {
	values := map[string]string{"preset": "drf"}
	for _, c := range choices {
		maps.Copy(values, c)
	}
	for _, key := range config.Keys() {
		value, chosen := values[key]
		may := true
		for _, value := range []string{value, "1", "true", "[]", "{}"} { // a value of the wrong kind is another error
			section, name, _ := strings.Cut(key, ".")
			for _, part := range slices.Backward(strings.Split(name, ".")) {
				if part != "" {
					value = fmt.Sprintf("{%s: %s}", part, value)
				}
			}
			_, err := config.Parse("f.yaml", []byte(fmt.Sprintf("schedules: [{name: s, at: 0 1 * * *, for: 1h, set: {%s: %s}}]\n", section, value)), nil)
			may = may && (err == nil || !strings.Contains(err.Error(), "cannot change by a schedule"))
		}
		if may != chosen {
			t.Errorf("%s: a schedule may set it: %v, and it is among the choices: %v", key, may, chosen)
		}
	}
}

// variant is a configuration with one more choice than a base.
type variant struct {
	*settled
	of    choice
	shown bool // it decides something otherwise
}

// variants gives the configurations beside a base that set one more choice, and one that sets all at once that the check refuses for they have no
// effect. Choices that are no configuration, or what the base has, are left out. In name, the mechanism of a preset's own paper is another one than the default.
func variants(base *settled, of choice) (accepted []*variant, refused *variant) {
	none := choice{}
	for _, c := range choices {
		v, err := parsed(with(of, c))
		if err != nil || !slices.ContainsFunc(keysOf(c), func(key string) bool { return base.value(key) != v.value(key) }) ||
			c["models.chooser"] == preset.Paper && v.settings.Mechanism == base.settings.Mechanism {
			continue
		}
		if v.refuses(c) {
			none = with(none, c)
		} else {
			accepted = append(accepted, &variant{settled: v, of: c})
		}
	}
	if v, err := parsed(with(of, none)); err == nil {
		refused = &variant{settled: v, of: none}
	}
	return accepted, refused
}

func keysOf(c choice) []string { return slices.Sorted(maps.Keys(c)) }

// refuses reports whether the check of the configuration says of a choice that it has no effect.
func (c *settled) refuses(x choice) bool {
	return slices.ContainsFunc(c.config.NoEffect(), func(p config.Problem) bool { return x[p.Key] != "" })
}

// value gives the value of a key in words.
func (c *settled) value(key string) string {
	for _, v := range c.config.Values() {
		if v.Key == key {
			return fmt.Sprint(v.Value)
		}
	}
	return ""
}

// check fails unless every key that is accepted beside the base changes something that is decided in some world, and no key that is refused does.
//
// It decides rounds of worlds under the base anew with other settings. A run of its own shows what that does not, such as a bound of what a tenant
// saves up.
func check(t *testing.T, of choice) {
	base, err := parsed(of)
	if err != nil || base.refuses(of) {
		return
	}
	accepted, refused := variants(base, of)
	for n := range keyWorlds {
		k, round := &keyWorlds[n], 0
		k.run(t, base, func(s *cluster.Snapshot, d *decided) bool {
			round++
			more := false
			for i, v := range accepted {
				if !v.shown && (len(d.actions) > 0 || (round+i)%8 == 0) {
					e := decides(v.in(*s))
					v.shown = !e.same(d)
				}
				more = more || !v.shown
			}
			// Until there is a division of them, jobs share by weight.
			if divided := !s.Settings.Divides() || s.Allocation != nil && !d.anew; refused != nil && divided && round%8 == 0 {
				if e := decides(refused.in(*s)); !e.same(d) {
					t.Fatalf("%v: world %s, round %d: one of %v changes what is decided, and the check says that none does", of, k.name, round, refused.of)
				}
			}
			return more || round < 100
		})
	}
	for _, v := range accepted {
		if v.shown || slices.ContainsFunc(accepted, func(o *variant) bool { return o.shown && slices.Equal(keysOf(o.of), keysOf(v.of)) }) {
			continue // another value of the key shows that it is looked at
		}
		v.shown = slices.ContainsFunc(keysOf(v.of), func(key string) bool { return shownBeside(t, of, v.of, key) }) || other(t, base, v.settled)
		if !v.shown {
			t.Errorf("%v: %v changes nothing, and the check does not say so", of, v.of)
		}
	}
}

// besides are settings that are part of the world in which a key shows, where the worlds do not show it by themselves: an order in which jobs take
// turns, a mechanism by which debts of jobs add up, no other way to bind GPUs,
// little patience, and no limit of the hour, which holds before that of all stops.
var besides = map[string]choice{"jobs.long_terms": {"jobs.order": "rho"}, "burst.max": {"models.chooser": "stride"}, "bind.max": {"bind.horizon": "0"},
	"jobs.new_share": {"jobs.patience": "30m"}, "stop.total": {"stop.per_hour": "0"}}

// shownBeside reports whether a choice changes what is decided beside the settings that its key needs.
func shownBeside(t *testing.T, of, x choice, key string) bool {
	for k := range besides[key] {
		if of[k] != "" {
			return false
		}
	}
	a, err := parsed(with(of, besides[key]))
	if err != nil || besides[key] == nil {
		return false
	}
	b, err := parsed(with(of, besides[key], x))
	return err == nil && !b.refuses(x) && other(t, a, b)
}

// other reports whether something is decided otherwise under other settings, in a round of a world or in a run of its own.
func other(t *testing.T, a, b *settled) bool {
	for n := range keyWorlds {
		was, differs := []decided(nil), false
		keyWorlds[n].run(t, a, func(s *cluster.Snapshot, d *decided) bool {
			was = append(was, *d)
			if len(d.actions) > 0 {
				e := decides(b.in(*s))
				differs = !e.same(d)
			}
			return !differs
		})
		if differs {
			return true
		}
		round := 0
		keyWorlds[n].run(t, b, func(_ *cluster.Snapshot, d *decided) bool {
			differs = round < len(was) && (!reflect.DeepEqual(d.leases, was[round].leases) || !reflect.DeepEqual(d.actions, was[round].actions))
			round++
			return !differs
		})
		if differs {
			return true
		}
	}
	return false
}

// Each key that a schedule may set changes what is decided beside a preset of each kind, or the check of the configuration says that it does not.
func TestEveryKeyDecidesSomething(t *testing.T) {
	for _, of := range kinds[:seeds.Some(1, 4)] {
		t.Run(fmt.Sprint(of), func(t *testing.T) { check(t, of) })
	}
}

// So does it beside another value of any other key.
func TestEveryKeyDecidesSomethingBesideOthers(t *testing.T) {
	for seed := range seeds.Of(t, 2) {
		r, few := rand.New(rand.NewPCG(seed, 0)), kinds
		if seed < 2 {
			few = kinds[:1+seed] // the quickest
		}
		of := with(few[r.IntN(len(few))], choices[r.IntN(len(choices))])
		t.Run(fmt.Sprint(seed, of), func(t *testing.T) { check(t, of) })
	}
}
