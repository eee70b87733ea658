package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

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
	// Text and Cells are the lines of the file and of cells.file, without what is in comments and without passwords.
	Text  []string `json:"text,omitempty"`
	Cells []string `json:"cells,omitempty"`
	// Waiting is a file that the daemon does not take over unasked; nil = none. Answer is what an administrator says to one.
	Waiting *Waiting `json:"waiting,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`
}

// Waiting is a configuration that waits to be accepted.
type Waiting struct {
	Digest string    `json:"digest"` // as of Digest
	Since  time.Time `json:"since,omitzero"`
	Says   string    `json:"says"` // effect in words
	Keys   []Change  `json:"keys"` // other values than in force
}

// Answer accepts or rejects a configuration that waits.
type Answer struct {
	Digest string `json:"digest"`
	Accept bool   `json:"accept"`
	By     string `json:"by"`
}

// Setting is a dotted key with its value in words.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// weighty are the keys, and the sections with all of their keys, that say where fairlease acts and what it promises.
var weighty = []string{"mode", "partitions", "canary_jobs", "qos", "exclude", "opt_out", "preemption", "tenants", "budgets", "preset", "cells.file", "saves", "preemptible"}

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
	a := Accepted{Mode: string(c.Mode), Acting: rules.Acting(), Digest: c.digest(), Keys: []Setting{}, Text: outline(c.from.text)}
	for _, v := range c.Values() {
		if c.from.origins[v.Key].InFile() {
			a.Keys = append(a.Keys, Setting{v.Key, fmt.Sprint(v.Value)})
		}
	}
	slices.SortStableFunc(a.Keys, func(x, y Setting) int { return c.from.origins[x.Key].line - c.from.origins[y.Key].line })
	if c.from.vcs != nil {
		for _, vc := range c.from.vcs.Assignment {
			a.VCs = append(a.VCs, vc.VC)
		}
		a.Cells = outline(c.from.vcs.text)
	}
	return a
}

// digest gives the digest of the texts that c was read from, in hexadecimal.
func (c *Config) digest() string {
	h := sha256.New()
	h.Write(c.from.text)
	if c.from.vcs != nil {
		h.Write(c.from.vcs.text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Drops lists what now leaves out without a word although it was in force: each in words, with what to do. An explicit value,
// such as `mode: observe` or `exclude: {users: []}`, is a word, but not in a text that is the beginning of what was accepted: such a
// text was cut. It is empty if now is what was accepted, or lacks only remarks.
func (a *Accepted) Drops(now *Config) Problems {
	if now.digest() == a.Digest {
		return nil
	}
	values := map[string]string{}
	for _, v := range now.Values() {
		values[v.Key] = fmt.Sprint(v.Value)
	}
	var out Problems
	place := now.from.name
	if place == "" {
		place = DefaultPath + " (missing)"
	}
	for _, was := range a.Keys {
		value, known := values[was.Key]
		if !known || value == was.Value || now.from.origins[was.Key].InFile() {
			continue
		}
		if slices.ContainsFunc(weighty, func(section string) bool { return under(was.Key, section) }) {
			out = append(out, Problem{Place: place, Key: was.Key,
				Text: fmt.Sprintf("is not set any more: %s was in force, and the default is %s; write the value that you want", was.Value, value)})
		}
	}
	if len(out) == 0 {
		out = wasCut(place, a.Text, now.from.text)
	}
	if now.from.vcs == nil {
		return out
	}
	var gone Problems
	for _, vc := range a.VCs {
		if !slices.ContainsFunc(now.from.vcs.Assignment, func(v assigned) bool { return v.VC == vc }) {
			gone = append(gone, Problem{Place: now.from.vcs.Name, Key: "vcAssignment", Text: fmt.Sprintf("virtual cluster %s is gone, and with it what it guarantees; write it again", vc)})
		}
	}
	if len(gone) == 0 {
		gone = wasCut(now.from.vcs.Name, a.Cells, now.from.vcs.text)
	}
	return append(out, gone...)
}

// wasCut gives the problem that a text is the beginning of one that was accepted, and lacks settings that followed.
func wasCut(place string, accepted []string, text []byte) Problems {
	lines := outline(text)
	same := len(lines)
	if same > len(accepted) {
		return nil
	}
	if same > 0 && lines[same-1] != accepted[same-1] {
		same--
		if bytes.HasSuffix(text, []byte("\n")) || !strings.HasPrefix(accepted[same], lines[same]) { // nobody cut inside that line
			return nil
		}
	}
	if !slices.Equal(lines[:same], accepted[:same]) {
		return nil
	}
	for _, line := range accepted[same:] {
		if line != "" && line != "#" {
			return Problems{{Place: place, Text: fmt.Sprintf("is as before up to line %d, and lacks what followed, from %q on: was it cut? Restore it", same, strings.TrimSpace(line))}}
		}
	}
	return nil
}

var (
	remark = regexp.MustCompile(`\s#.*`)
	secret = regexp.MustCompile(`(?i)(://[^\s/@]*:|password\s*=).*`)
)

// outline gives the lines of a text by which its beginning is known again, without blank ones at the end. Remarks are not kept,
// only that a line is one, nor what follows where a password may begin: all users can read what was accepted.
func outline(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			line = "#"
		}
		out = append(out, secret.ReplaceAllString(strings.TrimRight(remark.ReplaceAllString(line, ""), " \t"), "$1"))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// unset tells whether a file's text sets no key, and is no text with errors.
func unset(text []byte) bool {
	r := &reader{}
	root := r.parse(text)
	return len(r.problems) == 0 && (root == nil || isNull(root) || root.Kind == yaml.MappingNode && len(root.Content) == 0)
}
