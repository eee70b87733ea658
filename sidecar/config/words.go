package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// Word is a setting in words, without secrets. Each entry of a mapping has a word of its own, and so have each virtual cluster of
// cells.file and the text of models.profiles: its key is that of the mapping or the file, and its name.
type Word struct {
	Key     string
	Value   string
	Default *string // the value without a file; nil = none
}

// Words gives all settings of a configuration that have a value, in the order of the file.
func Words(c *Config) []Word {
	defaults := map[string]string{}
	for _, w := range words(Default()) {
		defaults[w.Key] = w.Value
	}
	out := words(c)
	for i := range out {
		if value, ok := defaults[out[i].Key]; ok {
			out[i].Default = &value
		}
	}
	return out
}

func words(c *Config) []Word {
	var out []Word
	for _, v := range c.Values() {
		m := reflect.ValueOf(v.Value)
		if m.Kind() != reflect.Map {
			out = append(out, Word{Key: v.Key, Value: inWords(v.Value)})
			continue
		}
		for _, name := range slices.Sorted(names(m)) {
			out = append(out, Word{Key: v.Key + "." + name, Value: inWords(m.MapIndex(reflect.ValueOf(name)).Interface())})
		}
	}
	if c.from.vcs != nil {
		for _, vc := range c.from.vcs.Assignment {
			out = append(out, Word{Key: "cells.file: " + vc.VC, Value: inWords(vc)})
		}
		out = append(out, Word{Key: "cells.file: text", Value: sum(c.from.vcs.text)})
	}
	if c.from.profiles != nil {
		out = append(out, Word{Key: "models.profiles: text", Value: sum(c.from.profiles.text)})
	}
	return out
}

func names(m reflect.Value) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, k := range m.MapKeys() {
			if !yield(k.String()) {
				return
			}
		}
	}
}

// sum gives a short digest of a file's text.
func sum(text []byte) string {
	h := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(h[:6])
}

var inAddress = regexp.MustCompile(`(://[^\s/@:]*):[^\s/@]+@`)

// hide masks what may be a password in a value.
func hide(text string) string {
	return passwordWord.ReplaceAllString(inAddress.ReplaceAllString(text, "${1}:xxxxx@"), "${1}xxxxx")
}

// inWords gives a value as the file would have it, on one line.
func inWords(v any) string {
	text, ok := v.(string)
	if !ok {
		var n yaml.Node
		err := n.Encode(v)
		n.Style = yaml.FlowStyle
		b, bad := yaml.Marshal(&n)
		if text = strings.TrimSpace(string(b)); err != nil || bad != nil {
			text = fmt.Sprint(v)
		}
	}
	return hide(text)
}

// Digest gives the digest of the texts of the file, of cells.file and of models.profiles, in hexadecimal.
func Digest(c *Config) string {
	h := sha256.New()
	h.Write([]byte(c.digest()))
	if c.from.profiles != nil {
		h.Write(c.from.profiles.text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Author names the owner of a configuration's file, as of now.
func Author(c *Config) string {
	if c.from.name == "" {
		return "nobody: there is no file"
	}
	return fmt.Sprintf("%s, owner of %s", ownerOf(c.from.name), c.from.name)
}

// ownerOf gives the user that a file belongs to.
func ownerOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "an unknown user"
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "an unknown user"
	}
	uid := strconv.FormatUint(uint64(stat.Uid), 10)
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return "uid " + uid
}

// Change is a setting that two configurations have with different values, in words; nil = no value.
type Change struct {
	Key     string  `json:"key"`
	Before  *string `json:"before,omitempty"`
	After   *string `json:"after,omitempty"`
	Restart bool    `json:"needs_restart,omitempty"` // a running daemon does not take it over
}

// Changes lists the settings that differ between two configurations, in the order of the file. A changed password has equal words.
func Changes(was, now *Config) []Change {
	out := []Change{}
	old, seen := map[string]string{}, map[string]bool{}
	for _, w := range words(was) {
		old[w.Key] = w.Value
	}
	restart := was.Restart(now)
	add := func(key string, before, after *string) {
		out = append(out, Change{key, before, after, slices.Contains(restart, key)})
	}
	for _, w := range words(now) {
		seen[w.Key] = true
		before, ok := old[w.Key]
		switch {
		case !ok:
			add(w.Key, nil, &w.Value)
		case before != w.Value || w.Key == "database.url" && slices.Contains(restart, w.Key):
			add(w.Key, &before, &w.Value)
		}
	}
	for _, w := range words(was) {
		if !seen[w.Key] {
			add(w.Key, &w.Value, nil)
		}
	}
	return out
}
