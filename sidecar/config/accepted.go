package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Accepted is what a later configuration is compared with: the one that a host's daemon last took over. An
// empty or cut file is nobody's wish: what it leaves out would be decided by the defaults.
type Accepted struct {
	// Mode and Acting, the partitions that are acted on, are those of the whole day.
	Mode   string   `json:"mode,omitempty"`
	Acting []string `json:"acting,omitempty"`
	// Digest is that of the texts of the file and of cells.file.
	Digest string `json:"digest"`
	// Keys are those that the file sets, in its order. Passwords are masked.
	Keys []Setting `json:"keys"`
	// VCs are the virtual clusters of cells.file, in its order.
	VCs []string `json:"vcs,omitempty"`
}

// Setting is a dotted key with its value in words.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// weighty are the keys, and the sections with all of their keys, that say where fairlease acts and what it promises.
var weighty = []string{"mode", "partitions", "qos", "exclude", "opt_out", "preemption", "tenants", "budgets", "preset", "cells.file", "saves", "preemptible"}

// AcceptedPath returns the path of the file, beside files.state, that keeps what the daemon with that file last took over.
func (c *Config) AcceptedPath() string {
	return strings.TrimSuffix(c.Files.State, ".json") + ".accepted.json"
}

// ReadAccepted reads what the daemon of this host last took over; nil = nothing, or nothing that can be read.
func ReadAccepted(path string) *Accepted {
	text, err := os.ReadFile(path)
	var a Accepted
	if err != nil || json.Unmarshal(text, &a) != nil {
		return nil
	}
	return &a
}

// Accept returns what a later configuration is compared with once c has been taken over.
func (c *Config) Accept() Accepted {
	rules := c.Rules()
	a := Accepted{Mode: string(c.Mode), Acting: rules.Acting(), Digest: c.digest(), Keys: []Setting{}}
	for _, v := range c.Values() {
		if c.origins[v.Key].InFile() {
			a.Keys = append(a.Keys, Setting{v.Key, fmt.Sprint(v.Value)})
		}
	}
	slices.SortStableFunc(a.Keys, func(x, y Setting) int { return c.origins[x.Key].line - c.origins[y.Key].line })
	if c.vcs != nil {
		for _, vc := range c.vcs.Assignment {
			a.VCs = append(a.VCs, vc.VC)
		}
	}
	return a
}

// digest gives the digest of the texts that c was read from, in hexadecimal.
func (c *Config) digest() string {
	h := sha256.New()
	h.Write(c.text)
	if c.vcs != nil {
		h.Write(c.vcs.text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Drops lists what now leaves out without a word although it was in force: each in words, with what to do. An explicit value,
// such as `mode: observe` or `exclude: {users: []}`, is a word. It is empty if now is what was accepted.
func (a *Accepted) Drops(now *Config) Problems {
	if now.digest() == a.Digest {
		return nil
	}
	values := map[string]string{}
	for _, v := range now.Values() {
		values[v.Key] = fmt.Sprint(v.Value)
	}
	var out Problems
	place, lost := now.name, 0
	if place == "" {
		place = DefaultPath + " (missing)"
	}
	for _, was := range a.Keys {
		value, known := values[was.Key]
		if !known || value == was.Value || now.origins[was.Key].InFile() {
			continue
		}
		lost++
		if slices.ContainsFunc(weighty, func(section string) bool { return under(was.Key, section) }) {
			out = append(out, Problem{Place: place, Key: was.Key,
				Text: fmt.Sprintf("is not set any more: %s was in force, and the default is %s; write the value that you want", was.Value, value)})
		}
	}
	if end := a.ends(now); len(out) == 0 && end != "" && lost > 1 {
		out = append(out, Problem{Place: place, Text: fmt.Sprintf("ends after %s, where %d other keys followed, and is the same before: was it cut? Restore it", end, lost)})
	}
	for _, vc := range a.VCs {
		if now.vcs != nil && !slices.ContainsFunc(now.vcs.Assignment, func(v assigned) bool { return v.VC == vc }) {
			out = append(out, Problem{Place: now.vcs.Name, Key: "vcAssignment", Text: fmt.Sprintf("virtual cluster %s is gone, and with it what it guarantees; write it again", vc)})
		}
	}
	return out
}

// ends gives the last key of a file that sets the first keys that were accepted, and none beyond them; "" = it is another file.
func (a *Accepted) ends(now *Config) string {
	is := now.Accept().Keys
	if len(is) == 0 || len(is) >= len(a.Keys) {
		return ""
	}
	for i, s := range is {
		if whole := i+1 < len(is); s.Key != a.Keys[i].Key || whole && s.Value != a.Keys[i].Value {
			return ""
		}
	}
	return is[len(is)-1].Key
}

// unset tells whether a file's text sets no key, and is no text with errors.
func unset(text []byte) bool {
	r := &reader{}
	root := r.parse(text)
	return len(r.problems) == 0 && (root == nil || isNull(root) || root.Kind == yaml.MappingNode && len(root.Content) == 0)
}
