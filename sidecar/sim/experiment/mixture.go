package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Manner is how a job saves.
type Manner struct {
	Saves sim.Saves
	Every cluster.Span // between two saves, of sim.Periodic
	Takes cluster.Span // duration of a save; 0 = Setup.Costs.Save
}

// manners are the names without an interval; of several, String uses the first.
var manners = []struct {
	name string
	how  sim.Saves
}{
	{"at-end", sim.AtEnd}, {"notice", sim.AtNotice}, {"at-notice", sim.AtNotice}, {"term", sim.OnTerm},
	{"each-term", sim.EachTerm}, {"never", sim.Never}, {"ideal", sim.Always},
}

// String gives a manner in parseManner's form, without the duration of a save.
func (m Manner) String() string {
	if m.Saves == sim.Periodic {
		return "periodic=" + config.Duration(m.Every).String()
	}
	for _, x := range manners {
		if x.how == m.Saves {
			return x.name
		}
	}
	return ""
}

// parseManner reads how a job saves: at-end, notice (at-notice), term, each-term, never, ideal, an interval (1h or
// periodic=1h), or periodic, whose interval is every.
func parseManner(text string, every cluster.Span) (Manner, error) {
	for _, x := range manners {
		if x.name == text {
			return Manner{Saves: x.how}, nil
		}
	}
	if text == "periodic" {
		if every <= 0 {
			return Manner{}, fmt.Errorf("periodic needs a time between two saves: write periodic=1h")
		}
		return Manner{Saves: sim.Periodic, Every: every}, nil
	}
	length, periodic := strings.CutPrefix(text, "periodic=")
	d, err := config.ParseDuration(length)
	switch {
	case err != nil && periodic:
		return Manner{}, fmt.Errorf("%q: %w", text, err)
	case err != nil:
		return Manner{}, fmt.Errorf("%q is no manner of saving: write %s", text, mannerNames)
	case d.Span() < cluster.Second:
		return Manner{}, fmt.Errorf("%q: the time between two saves is too short: write 1s or more", text)
	}
	return Manner{Saves: sim.Periodic, Every: d.Span()}, nil
}

const mannerNames = "never, notice, term, at-end, each-term, ideal or an interval like periodic=1h"

// Part is a manner with its relative weight.
type Part struct {
	Manner
	Weight int64
}

// maxWeight is the largest weight of a part.
const maxWeight = 1_000_000

// Mixture says how the jobs of a load save. Each job has one manner under every scheduler and on
// every fleet: that of the first matching habit, else a random one by the parts. Without parts
// jobs lose nothing, as with sim.Always.
type Mixture struct {
	Habits []Habit
	File   string // source of the habits
	Parts  []Part
	// ByJob draws for each job. Otherwise jobs of one user with equal GPUs and one kind of name
	// (equal except for numbers) share a manner, like jobs of one script.
	ByJob bool
}

// Only gives the mixture of one manner without an interval.
func Only(how sim.Saves) Mixture { return Mixture{Parts: []Part{{Manner{Saves: how}, 1}}} }

// ParseMixture reads comma-separated parts: manners with their weights, as in
// never:60,periodic=1h:30,notice:10, and at most one name of a habits file, which the caller
// reads into Habits. A single manner needs no weight; without any, jobs without a habit never
// save.
func ParseMixture(text string, every cluster.Span) (Mixture, error) {
	var m Mixture
	bare, sum := "", int64(0)
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		word, weight, weighed := strings.Cut(part, ":")
		where := fmt.Sprintf("part %d", i+1)
		manner, err := parseManner(word, every)
		switch {
		case part == "":
			return Mixture{}, fmt.Errorf("%s is empty: write a manner, as in never:60,periodic=1h:30,notice:10", where)
		case err != nil && isFile(word) && weighed:
			return Mixture{}, fmt.Errorf("%s, %q: a file of habits has no weight: its lines say for which jobs they hold", where, part)
		case err != nil && isFile(word) && m.File != "":
			return Mixture{}, fmt.Errorf("%s, %q: %s is a file already: put the lines of both into one", where, part, m.File)
		case err != nil && isFile(word):
			m.File = word
			continue
		case err != nil:
			return Mixture{}, fmt.Errorf("%s, %w", where, err)
		}
		p := Part{Manner: manner, Weight: 1}
		if weighed {
			if p.Weight, err = strconv.ParseInt(weight, 10, 64); err != nil || p.Weight < 0 || p.Weight > maxWeight {
				return Mixture{}, fmt.Errorf("%s, %q: the weight is no whole number from 0 to %d: write it as in never:60", where, part, maxWeight)
			}
		} else {
			bare = part
		}
		if slices.ContainsFunc(m.Parts, func(o Part) bool { return o.Manner == p.Manner }) {
			return Mixture{}, fmt.Errorf("%s, %q: this manner has a part already: add the weights up", where, part)
		}
		m.Parts, sum = append(m.Parts, p), sum+p.Weight
	}
	switch {
	case len(m.Parts) == 0:
		m.Parts = Only(sim.Never).Parts
	case len(m.Parts) > 1 && bare != "":
		return Mixture{}, fmt.Errorf("%q has no weight: where there are several manners, write one for each, as in never:60,notice:40", bare)
	case sum == 0:
		return Mixture{}, fmt.Errorf("all weights are 0: write one above it, as in never:60,notice:40")
	}
	return m, nil
}

// isFile tells whether a word that is no manner must be the name of a file.
func isFile(word string) bool {
	return strings.ContainsAny(word, "./") && !strings.HasPrefix(word, "periodic=")
}

// String describes a mixture: the assumption of the scores.
func (m Mixture) String() string {
	var words []string
	sum := int64(0)
	for _, p := range m.Parts {
		sum += p.Weight
	}
	if len(m.Parts) == 0 {
		words = []string{Manner{Saves: sim.Always}.String()}
	}
	for _, p := range m.Parts {
		if len(m.Parts) == 1 {
			words = append(words, p.String())
		} else {
			words = append(words, fmt.Sprintf("%.3g %% %s", 100*float64(p.Weight)/float64(max(sum, 1)), p))
		}
	}
	rest := strings.Join(words, ", ")
	if len(m.Parts) > 1 {
		rest += map[bool]string{true: " (drawn by job)", false: " (drawn by kind)"}[m.ByJob]
	}
	if m.File != "" {
		return fmt.Sprintf("as %s says (%d kinds), else %s", m.File, len(m.Habits), rest)
	}
	return rest
}

func (m *Mixture) check() error {
	sum := int64(0)
	for _, p := range m.Parts {
		if p.Saves == sim.Periodic && p.Every <= 0 {
			return fmt.Errorf("jobs that save periodically need a time between two saves")
		}
		sum += p.Weight
	}
	if sum <= 0 && len(m.Parts) > 0 {
		return fmt.Errorf("of a mixture of manners all have the weight 0")
	}
	return nil
}

// Kind is jobs that are assumed to save alike.
type Kind struct {
	User string `json:"user"`
	Name string `json:"name"` // its command, or its name with # for every number
	GPUs int    `json:"gpus"`
}

// KindOf gives the kind of a job; without a user, the tenant replaces it.
func KindOf(j *trace.Job) Kind {
	name := j.Command
	if name == "" {
		name = nameKind(j.Name)
	}
	return Kind{User: userOf(j), Name: name, GPUs: j.GPUs}
}

func userOf(j *trace.Job) string {
	if j.User == "" {
		return j.Tenant
	}
	return j.User
}

// nameKind gives a name with # for every number; "" of none.
func nameKind(name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimPrefix(profile.KindOf(nil, "", "", name, "", "").Name(), ".")
}

// Habit gives the first habit that matches a job; nil = none.
func (m *Mixture) Habit(j *trace.Job) *Habit {
	for i := range m.Habits {
		if m.Habits[i].fits(j) {
			return &m.Habits[i]
		}
	}
	return nil
}

// Of gives how a job saves. Equal seeds give equal manners.
func (m *Mixture) Of(j *trace.Job, seed uint64) Manner {
	if h := m.Habit(j); h != nil {
		return h.Manner
	}
	switch len(m.Parts) {
	case 0:
		return Manner{Saves: sim.Always}
	case 1:
		return m.Parts[0].Manner
	}
	h := newHash(seed)
	if m.ByJob {
		h.text(j.Tenant)
		h.text(j.ID)
	} else {
		k := KindOf(j)
		h.text(k.User)
		h.text(k.Name)
		h.text(strconv.Itoa(k.GPUs))
	}
	sum := int64(0)
	for _, p := range m.Parts {
		sum += p.Weight
	}
	at := int64(h.mixed() % uint64(max(sum, 1)))
	for _, p := range m.Parts {
		if at -= p.Weight; at < 0 {
			return p.Manner
		}
	}
	return m.Parts[len(m.Parts)-1].Manner
}

// hash is FNV-1a followed by splitmix64, so that similar keys are drawn independently.
type hash uint64

func newHash(seed uint64) hash {
	h := hash(14695981039346656037)
	for i := range 8 {
		h.add(byte(seed >> (8 * i)))
	}
	return h
}

func (h *hash) add(b byte) { *h = (*h ^ hash(b)) * 1099511628211 }

func (h *hash) text(s string) {
	for i := range len(s) {
		h.add(s[i])
	}
	h.add(0)
}

func (h hash) mixed() uint64 {
	x := uint64(h) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
