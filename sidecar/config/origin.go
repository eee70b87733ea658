package config

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Origin is the source of a value.
type Origin struct {
	Place string // "file:line", "environment FAIRLEASE_DATABASE_URL"; "" = default
	line  int
}

func (o Origin) String() string {
	if o.Place == "" {
		return "default"
	}
	return o.Place
}

// InFile tells whether the value was read from the file.
func (o Origin) InFile() bool { return o.line > 0 }

// Origin tells where the value of a dotted key came from.
func (c *Config) Origin(key string) Origin { return c.from.origins[key] }

// Value is one key with its effective value, for display and for programs.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

// Values lists all keys in the order of the file. Passwords are masked.
func (c *Config) Values() []Value {
	var out []Value
	walk(reflect.ValueOf(c).Elem(), "", func(key string, v reflect.Value) {
		value := v.Interface()
		switch x := value.(type) {
		case Duration, Percent, Factor, JobBound, LatencyBound:
			value = fmt.Sprint(x)
		case loop.Mode:
			value = string(x)
		case []Duration:
			words := []string{}
			for _, d := range x {
				words = append(words, d.String())
			}
			value = words
		case []Schedule:
			words := []string{}
			for _, s := range x {
				words = append(words, s.String())
			}
			value = words
		case map[string]Budget:
			words := map[string]string{}
			for tenant, b := range x {
				words[tenant] = b.String()
			}
			value = words
		case map[string]Factor:
			words := map[string]string{}
			for name, f := range x {
				words[name] = f.String()
			}
			value = words
		}
		if v.Kind() == reflect.Slice && v.IsNil() {
			value = []string{}
		}
		if v.Kind() == reflect.Map && v.IsNil() {
			value = map[string]int64{}
		}
		if key == "models.chooser" && c.Models.Chooser == preset.Paper {
			value = fmt.Sprintf("%s (%s)", preset.Paper, preset.Mechanism(c.Preset, preset.Paper))
		}
		if text, ok := value.(string); ok {
			value = hide(text)
		}
		if key == "database.url" {
			value = Mask(c.Database.URL)
		}
		out = append(out, Value{Key: key, Value: value, Origin: c.from.origins[key].String()})
	})
	return out
}

// Keys lists all dotted keys in the order of the file.
func Keys() []string {
	var out []string
	walk(reflect.ValueOf(Default()).Elem(), "", func(key string, _ reflect.Value) { out = append(out, key) })
	return out
}

func walk(s reflect.Value, path string, each func(string, reflect.Value)) {
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag.Get("yaml")
		switch {
		case tag == "":
		case tag == inline:
			walk(s.Field(i), path, each)
		case s.Field(i).Kind() == reflect.Struct:
			walk(s.Field(i), join(path, tag), each)
		default:
			each(join(path, tag), s.Field(i))
		}
	}
}

// Restart lists the keys that differ between two configurations and that a running daemon cannot
// change: its connections.
func (c *Config) Restart(now *Config) []string {
	var out []string
	was := map[string]string{}
	for _, v := range c.Values() {
		was[v.Key] = fmt.Sprint(v.Value)
	}
	for _, v := range now.Values() {
		if fixed(v.Key) && was[v.Key] != fmt.Sprint(v.Value) {
			out = append(out, v.Key)
		}
	}
	if c.Database.URL != now.Database.URL && !slices.Contains(out, "database.url") {
		out = append(out, "database.url") // only the masked part differs
	}
	return out
}

func fixed(key string) bool {
	return strings.HasPrefix(key, "slurm.") || key == "database.url" || key == "database.schema" || strings.HasPrefix(key, "files.") || strings.HasPrefix(key, "models.progress.") || strings.HasPrefix(key, "log.") || strings.HasPrefix(key, "metrics.") || strings.HasPrefix(key, "web.")
}

// Keep gives now, but with c's values for all keys that need a restart, and with c's pointers for
// equal content.
func (c *Config) Keep(now *Config) *Config {
	out := *now
	out.Slurm, out.Files, out.Output.Log, out.Output.Metrics = c.Slurm, c.Files, c.Output.Log, c.Output.Metrics
	out.Web = c.Web
	out.Database.URL, out.Database.Schema = c.Database.URL, c.Database.Schema
	out.Models.Progress = c.Models.Progress
	if out.from.start = c.from.start; out.from.start == nil && len(c.Restart(now)) > 0 {
		out.from.start = c
	}
	if out.from.vcs != nil && c.from.vcs != nil && reflect.DeepEqual(out.from.vcs.Cells, c.from.vcs.Cells) {
		f := *out.from.vcs
		f.Cells, out.from.vcs = c.from.vcs.Cells, &f // comparing equal pointers is faster
	}
	return &out
}

var passwordWord = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)`)

// Mask hides the password in a database address of either form.
func Mask(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		if q := u.Query(); q.Has("password") {
			q.Set("password", "xxxxx")
			u.RawQuery = q.Encode()
		}
		return u.Redacted()
	}
	return passwordWord.ReplaceAllString(dsn, "${1}xxxxx")
}

// lookup gives a variable of an environment; of two the last counts, as in a process.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// pgWords are the standard PG* environment variables, as words of a connection string.
var pgWords = []struct{ variable, word string }{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
	{"PGPASSFILE", "passfile"}, {"PGSERVICE", "service"}, {"PGSERVICEFILE", "servicefile"}, {"PGSSLMODE", "sslmode"},
	{"PGSSLCERT", "sslcert"}, {"PGSSLKEY", "sslkey"}, {"PGSSLROOTCERT", "sslrootcert"},
	{"PGCONNECT_TIMEOUT", "connect_timeout"}, {"PGTARGETSESSIONATTRS", "target_session_attrs"},
}

// overlay applies the environment. FAIRLEASE_DATABASE_URL has precedence over the file; the
// standard PG* variables are used if neither gives an address.
func (c *Config) overlay(env []string) {
	if dsn := lookup(env, "FAIRLEASE_DATABASE_URL"); dsn != "" {
		c.Database.URL = dsn
		c.from.origins["database.url"] = Origin{Place: "environment FAIRLEASE_DATABASE_URL"}
		return
	}
	if c.Database.URL != "" {
		return
	}
	var words, from []string
	for _, w := range pgWords {
		if v := lookup(env, w.variable); v != "" {
			words = append(words, w.word+"="+quote(v))
			from = append(from, w.variable)
		}
	}
	if len(words) > 0 {
		c.Database.URL = strings.Join(words, " ")
		c.from.origins["database.url"] = Origin{Place: "environment " + strings.Join(from, " ")}
	}
}

// quote writes a value of a connection string.
func quote(v string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
}
