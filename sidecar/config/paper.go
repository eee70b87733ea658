package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// settle gives the keys that the file does not name the defaults of the preset, which differ if it is that of a paper.
func (c *Config) settle() {
	base, from := Default(), Origin{}
	if text := preset.PaperDefaults(c.Preset); text != "" {
		paperOver(base, text)
		from.Place = "preset " + c.Preset
	}
	keys, defaults := paperKeys(), fields(base)
	walk(reflect.ValueOf(c).Elem(), "", func(key string, v reflect.Value) {
		if slices.Contains(keys, key) && !c.from.origins[key].InFile() {
			v.Set(defaults[key])
			c.from.origins[key] = from
		}
	})
}

// differs lists what a preset with the defaults of its paper sets otherwise than without them, each as a key, its value, and the usual default.
func (c *Config) differs() (out []string) {
	if preset.Base(c.Preset) == c.Preset {
		return nil
	}
	keys, usual := paperKeys(), fields(Default())
	walk(reflect.ValueOf(c).Elem(), "", func(key string, v reflect.Value) {
		if u := usual[key]; slices.Contains(keys, key) && !reflect.DeepEqual(u.Interface(), v.Interface()) {
			out = append(out, fmt.Sprintf("%s: %v (not %v)", key, v.Interface(), u.Interface()))
		}
	})
	return out
}

// paperKeys lists the keys whose defaults depend on the preset.
func paperKeys() (out []string) {
	for _, name := range preset.Papers() {
		out = append(out, paperOver(Default(), preset.PaperDefaults(name))...)
	}
	return out
}

// paperOver sets a configuration to the defaults of a paper, and lists their keys.
func paperOver(c *Config, text string) (keys []string) {
	r := &reader{keys: Keys(), origins: map[string]Origin{}}
	r.section(reflect.ValueOf(c).Elem(), r.parse([]byte(text)), "")
	for key := range r.origins {
		keys = append(keys, key)
	}
	return keys
}

// fields gives the values of a configuration by key.
func fields(c *Config) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	walk(reflect.ValueOf(c).Elem(), "", func(key string, v reflect.Value) { out[key] = v })
	return out
}
