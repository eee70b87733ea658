package config

import (
	"slices"
)

// Texts is a configuration as the texts that it was read from, which the files may not have any more.
type Texts struct {
	Name     string `json:"name"` // of the file
	Text     []byte `json:"text"`
	Cells    []byte `json:"cells,omitempty"`    // of cells.file
	Profiles []byte `json:"profiles,omitempty"` // of models.profiles
	// Start is the configuration of the daemon's start, if keys that need a restart have other values in Text.
	Start *Texts `json:"start,omitempty"`
}

// Texts returns the texts of a configuration that Load, or Keep, gave.
func (c *Config) Texts() Texts {
	t := Texts{Name: c.from.name, Text: c.from.text}
	if c.from.vcs != nil {
		t.Cells = c.from.vcs.text
	}
	if c.from.profiles != nil {
		t.Profiles = c.from.profiles.text
	}
	if c.from.start != nil {
		s := c.from.start.Texts()
		t.Start = &s
	}
	return t
}

// Load is the function Load for texts.
func (t *Texts) Load(env []string) (*Config, error) {
	c, err := Parse(t.Name, t.Text, env)
	if err == nil && c.Cells.File != "" {
		c.from.vcs, err = ParseCells(c.CellFile(), t.Cells)
	}
	if err == nil && c.Models.Profiles != "" {
		c.from.profiles, err = ParseProfiles(beside(c.from.name, c.Models.Profiles), t.Profiles)
	}
	if err != nil || t.Start == nil {
		return c, err
	}
	start, err := t.Start.Load(env)
	if err != nil {
		return nil, err
	}
	return start.Keep(c), nil
}

// Differs lists the keys with another value than the daemon of this host has in force, in the order of the file. It is empty if
// there are none, or if no daemon has taken over a configuration on this host.
func (c *Config) Differs() []string {
	was := ReadAccepted(c.AcceptedPath())
	if was == nil || was.Digest == c.digest() {
		return nil
	}
	now := c.Accept()
	var keys []string
	for _, key := range Keys() {
		of := func(s Setting) bool { return s.Key == key }
		i, j := slices.IndexFunc(was.Keys, of), slices.IndexFunc(now.Keys, of)
		if (i < 0) != (j < 0) || i >= 0 && was.Keys[i].Value != now.Keys[j].Value {
			keys = append(keys, key)
		}
	}
	if !slices.Equal(was.VCs, now.VCs) {
		keys = append(keys, "cells.file (its virtual clusters)")
	}
	return keys
}

// Stance gives the mode and the partitions that are acted on: as the daemon of this host took them over last, else as c has them; "" = its file has
// mistakes (Reach). waits is what
// a configuration would do that waits there to be accepted; "" = none does.
func (c *Config) Stance() (mode string, acting []string, waits string) {
	was := ReadAccepted(c.AcceptedPath())
	if was != nil && was.Waiting != nil {
		waits = was.Waiting.Says
	}
	if was != nil && was.Mode != "" {
		return was.Mode, was.Acting, waits
	}
	if c.from.faulty {
		return "", nil, waits
	}
	rules := c.Rules()
	return string(c.Mode), rules.Acting(), waits
}
