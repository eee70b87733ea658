package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// ProfileFile is a profiles file, usually profiles.yaml: the kinds of jobs, and their throughput
// on each GPU model.
type ProfileFile struct {
	Name     string
	Rules    []profile.Rule
	Profiles []cluster.Profile // sorted; declared by the administrator

	profileText
	text    []byte
	origins map[string]Origin
}

// profileText is the file's text. etc/profiles.yaml explains each key.
type profileText struct {
	Kinds []kindRule `yaml:"kinds"`
	Rates []kindRate `yaml:"profiles"`
}

type kindRule struct {
	Kind   string `yaml:"kind"`
	Tenant string `yaml:"tenant"`
	User   string `yaml:"user"`
	Name   string `yaml:"name"`
}

type kindRate struct {
	Kind   string             `yaml:"kind"`
	Tenant string             `yaml:"tenant"`
	Beside string             `yaml:"beside"`
	Gang   int                `yaml:"gang"`
	Rates  map[string]float64 `yaml:"rates"`
	// Scattered is the part of its rate that a gang keeps on more nodes than it needs.
	Scattered map[string]float64 `yaml:"scattered"`
	// Across is the part that it keeps on its fewest nodes, under more switches than these need.
	Across map[string]float64 `yaml:"across"`
}

// mostProfiles is more rules, or entries, than anyone writes by hand.
const mostProfiles = 100_000

// LoadProfiles reads the profiles file at path. Its error lists Problems.
func LoadProfiles(path string) (*ProfileFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of profiles: %w", err)
	}
	return ParseProfiles(path, text)
}

// ParseProfiles is LoadProfiles for a text; name is the file's name in problems.
func ParseProfiles(name string, text []byte) (*ProfileFile, error) {
	f := &ProfileFile{Name: name, text: text, origins: map[string]Origin{}}
	r := &reader{file: name, origins: f.origins, keys: []string{"kinds.kind", "kinds.tenant", "kinds.user", "kinds.name",
		"profiles.kind", "profiles.tenant", "profiles.beside", "profiles.gang", "profiles.rates", "profiles.scattered", "profiles.across"}}
	if root := r.parse(text); root != nil {
		r.section(reflect.ValueOf(&f.profileText).Elem(), root, "")
	}
	if n := len(f.Kinds) + len(f.Rates); n > mostProfiles {
		r.wrong(0, "", "has %d rules and profiles; %d are the most", n, mostProfiles)
		return nil, r.problems
	}
	for i, k := range f.Kinds {
		f.rule(r, fmt.Sprintf("kinds[%d]", i), k)
	}
	said := map[cluster.Profile]int{} // line of each profile
	for i := range f.Rates {
		f.rates(r, fmt.Sprintf("profiles[%d]", i), &f.Rates[i], said)
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	slices.SortFunc(f.Profiles, func(a, b cluster.Profile) int { return a.Compare(&b) })
	return f, nil
}

// rule reads one entry of kinds.
func (f *ProfileFile) rule(r *reader, key string, k kindRule) {
	if r.broken(key) {
		return
	}
	if err := profile.CheckName(k.Kind); err != nil {
		r.wrong(f.line(key+".kind", key), key+".kind", "%v%s", err, tenantApart(k.Kind))
	}
	if k.Tenant == "" && k.User == "" && k.Name == "" {
		r.wrong(f.line(key), key, "fits every job; write a tenant, a user or a name, with * for any letters")
	}
	f.Rules = append(f.Rules, profile.Rule{Tenant: k.Tenant, User: k.User, Name: k.Name, Kind: k.Kind})
}

// tenantApart hints how to write the tenant, if a kind was written as it is displayed.
func tenantApart(kind string) string {
	if tenant, _, ok := strings.Cut(kind, "/"); ok {
		return fmt.Sprintf(", and tenant: %s beside it", tenant)
	}
	return ""
}

// rates reads one entry of profiles.
func (f *ProfileFile) rates(r *reader, key string, k *kindRate, said map[cluster.Profile]int) {
	if r.broken(key) {
		return
	}
	if _, there := f.origins[key+".gang"]; !there {
		k.Gang = 1
	}
	for _, x := range []struct{ key, name string }{{key + ".kind", k.Kind}, {key + ".beside", k.Beside}} {
		if err := profile.CheckName(x.name); err != nil && (x.name != "" || x.key == key+".kind") {
			r.wrong(f.line(x.key, key), x.key, "%v%s", err, tenantApart(x.name))
		}
	}
	if len(k.Rates)+len(k.Scattered)+len(k.Across) == 0 {
		r.wrong(f.line(key+".rates", key), key+".rates", "names no GPU model; write rates: {v100: 12.5, k80: 2.1}, in steps a second of the whole gang")
	}
	of := cluster.Profile{Kind: cluster.KindOf(k.Tenant, k.Kind), Gang: k.Gang, Source: cluster.Declared, Basis: profile.File}
	with := cluster.Kind("")
	if k.Beside != "" {
		with = cluster.KindOf(k.Tenant, k.Beside)
	}
	for _, model := range sortedKeys(k.Rates) {
		p := of
		p.With, p.Model, p.Rate = with, model, k.Rates[model]
		f.rate(r, key, join(key+".rates", model), p, said)
	}
	f.parts(r, key, k, of, said)
}

// parts reads what gangs of one entry of profiles keep of their rates on other nodes.
func (f *ProfileFile) parts(r *reader, key string, k *kindRate, p cluster.Profile, said map[cluster.Profile]int) {
	for _, x := range []struct {
		name, where string
		with        cluster.Kind
		parts       map[string]float64
	}{
		{"scattered", "on more nodes than it needs", cluster.Scattered, k.Scattered},
		{"across", "under more switches than its nodes need", cluster.AcrossSwitches, k.Across},
	} {
		for _, model := range sortedKeys(x.parts) {
			at := join(key+"."+x.name, model)
			p.With, p.Model, p.Rate, p.Relative = x.with, model, x.parts[model], true
			switch {
			case k.Beside != "":
				r.wrong(f.line(at, key), at, "stands in an entry with beside; write it in one without: it is of jobs that have their GPUs to themselves")
			case k.Gang < 2:
				r.wrong(f.line(at, key), at, "is for a job of one GPU, which is on one node; write gang: 8, or as many GPUs as its jobs have")
			case !(p.Rate > 0 && p.Rate <= 1):
				r.wrong(f.line(at, key), at, "must be above 0 and at most 1, the part of its rate that a gang keeps %s, got %v", x.where, p.Rate)
			default:
				f.rate(r, key, at, p, said)
			}
		}
	}
}

// rate reads a rate of the entry with a key.
func (f *ProfileFile) rate(r *reader, key, at string, p cluster.Profile, said map[cluster.Profile]int) {
	line, id := f.line(at, key), p
	id.Rate = 0
	before, twice := said[id]
	switch err := profile.Check(p); {
	case r.broken(key + ".kind"), r.broken(key + ".beside"):
	case err != nil:
		r.wrong(line, at, "%v", err)
	case twice:
		r.wrong(line, at, "stands here for the second time, first in line %d; keep one", before)
	default:
		said[id] = line
		f.Profiles = append(f.Profiles, p)
	}
}

// line gives the line of the first of the keys that is in the file.
func (f *ProfileFile) line(keys ...string) int {
	for _, k := range keys {
		if o := f.origins[k]; o.line > 0 {
			return o.line
		}
	}
	return 0
}
