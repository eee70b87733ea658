package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reach is Load for commands that need some sections only, as to find the database: a mistake elsewhere in the file must not keep an operator from
// looking. wrong is the error of Load. Beside it c is the file where its mistakes concern none of the sections, else what the daemon of this host
// has in force, without passwords; nil = neither helps.
func Reach(path string, env []string, sections ...string) (c *Config, wrong error) {
	c, problems, err := load(path, env)
	if err != nil {
		return nil, err
	}
	if len(problems) == 0 {
		return c, nil
	}
	concerned := func(p Problem) bool {
		whole := p.Key == "" && strings.HasPrefix(p.Place, c.from.name) // else of a file that this one names
		return whole || slices.ContainsFunc(sections, func(s string) bool { return concerns(p.Key, s) || concerns(p.meant, s) })
	}
	if c == nil || slices.ContainsFunc(problems, concerned) {
		c = inForceHere(c, env)
	}
	if c != nil {
		c.from.faulty = true
	}
	return c, problems
}

// concerns tells whether a key is in a section, or has it in itself.
func concerns(key, section string) bool {
	return key != "" && (under(key, section) || under(section, key))
}

// inForceHere gives the configuration that the daemon of this host has in force, without passwords; nil = it is not known, or has one for the database.
// of is what could be read of the file; nil = nothing.
func inForceHere(of *Config, env []string) *Config {
	if of == nil {
		of = Default()
	}
	was := ReadAccepted(of.AcceptedPath())
	if was == nil {
		return nil
	}
	c, err := Parse(of.from.name, []byte(strings.Join(was.Text, "\n")), env)
	masked := slices.ContainsFunc(was.Keys, func(s Setting) bool { return s.Key == "database.url" && strings.Contains(s.Value, "xxxxx") })
	if err != nil || masked && c.Origin("database.url").InFile() {
		return nil
	}
	return c
}

// Fault words the first mistake of an error of Load on one line, and counts the others.
func Fault(err error) string {
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return strings.ReplaceAll(problems[0].String(), "\n", "; ") + more
}
