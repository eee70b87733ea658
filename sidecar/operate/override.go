package operate

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// OverrideTarget tells whether a word names a job, a user or a tenant. last reads the newest round; it is
// called only if the word is ambiguous.
func OverrideTarget(word string, last func() (cluster.Snapshot, error)) (scope, name string, err error) {
	if scope, name, ok := strings.Cut(word, ":"); ok {
		if !slices.Contains([]string{"job", "user", "tenant"}, scope) || name == "" {
			return "", "", &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q names nobody", word), Next: "write job:ID, user:NAME or tenant:NAME"}
		}
		return scope, name, nil
	}
	if id, err := cluster.ParseJobID(word); err == nil {
		return "job", id.String(), nil
	}
	snap, err := last()
	if err != nil {
		return "", "", err
	}
	tenant := slices.ContainsFunc(snap.Tenants, func(t cluster.Tenant) bool { return t.Name == word })
	person := slices.ContainsFunc(snap.Cases, func(c cluster.Case) bool { return c.Record.User == word })
	switch {
	case tenant && person:
		return "", "", &failure.Error{Code: failure.Misuse, What: word + " is a tenant and a user", Next: fmt.Sprintf("write tenant:%s or user:%s", word, word)}
	case tenant:
		return "tenant", word, nil
	case person:
		return "user", word, nil
	}
	return "", "", &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%s is no job id, and the newest round knows no tenant and no job's user of that name", word),
		Next: fmt.Sprintf("if you mean it all the same: user:%s or tenant:%s", word, word)}
}

// OverrideEffect says what an override does and does not do, in a line for each state. waiting and running are the numbers of jobs, or of an array's
// tasks, that an override for a job is for. Overrides for users and tenants are also for jobs to come.
func OverrideEffect(kind cluster.OverrideKind, scope, name string, waiting, running int) (lines []string) {
	if scope != "job" {
		return []string{overrideEffects[kind][scope]}
	}
	for _, x := range []struct {
		n          int
		verb, what string
	}{{waiting, "wait", "waits"}, {running, "run", "runs"}} {
		what := strings.ReplaceAll(overrideEffects[kind][x.what], "JOB", name)
		switch {
		case x.n == 1 && waiting+running == 1:
			lines = append(lines, fmt.Sprintf("job %s %ss: %s", name, x.verb, what))
		case x.n == 1:
			lines = append(lines, fmt.Sprintf("1 task of array %s %ss: %s", name, x.verb, what))
		case x.n > 1:
			lines = append(lines, fmt.Sprintf("%d tasks of array %s %s: %s", x.n, name, x.verb, what))
		}
	}
	return lines
}

var overrideEffects = map[cluster.OverrideKind]map[string]string{
	cluster.Exempt: {
		"waits":  "an exemption does not start it sooner; `fairlease boost JOB` does, and both may be in force together",
		"runs":   "it is not requeued while the override is in force",
		"user":   "jobs that run are not requeued; an exemption does not start waiting jobs sooner, `fairlease boost` does",
		"tenant": "jobs that run are not requeued; an exemption does not start waiting jobs sooner, `fairlease boost` does",
	},
	cluster.Boost: {
		"waits":  "it goes before the other jobs of its tenant; the tenant's turn does not come sooner",
		"runs":   "its lease is renewed before those of its tenant's other jobs",
		"user":   "the user's jobs go before the other jobs of their tenant; its turn does not come sooner",
		"tenant": "the tenant goes before other tenants; running leases go on to their ends",
	},
	cluster.Freeze: {
		"waits":  "it gets no lease while the override is in force; a start that is under way goes on",
		"runs":   "it is requeued when its lease ends, after its notice",
		"user":   "waiting jobs get no lease; jobs that run are requeued when their leases end",
		"tenant": "waiting jobs get no lease; jobs that run are requeued when their leases end",
	},
}

// Override is an override in force.
type Override struct {
	ID                int64
	Kind, Scope, Name string
}

func (g Override) String() string {
	return fmt.Sprintf("override %d (%s %s %s)", g.ID, g.Kind, g.Scope, g.Name)
}

// FindOverride gives the override in force that a word means: its number, or the job, user or tenant that it is for. A number may be that of an override and the
// id of a job: id:NUMBER and job:NUMBER tell them apart.
func FindOverride(word string, inForce []Override) (Override, error) {
	scope, name, scoped := strings.Cut(word, ":")
	if !scoped {
		scope, name = "", word
	}
	if scoped && !slices.Contains([]string{"id", "job", "user", "tenant"}, scope) || name == "" {
		return Override{}, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q names no override", word), Next: "write its number, or job:ID, user:NAME or tenant:NAME; fairlease override list shows those in force"}
	}
	var found, array []Override
	for _, g := range inForce {
		numbered := (scope == "" || scope == "id") && strconv.FormatInt(g.ID, 10) == name
		if numbered || g.Name == name && (scope == "" || scope == g.Scope) {
			found = append(found, g)
		}
		if whole, _, task := strings.Cut(name, "_"); task && g.Scope == "job" && g.Name == whole {
			array = append(array, g)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Override{}, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%s may be any of %s", word, listOverrides(found)), Next: "end each by its number, as in fairlease override end id:" + strconv.FormatInt(found[0].ID, 10)}
	case len(array) > 0:
		return Override{}, &failure.Error{Code: failure.No, What: fmt.Sprintf("no override in force is for %s alone: %s is for the whole array", word, listOverrides(array)), Next: "end that, or freeze, exempt or boost the one task: the narrowest override counts"}
	}
	return Override{}, &failure.Error{Code: failure.No, What: fmt.Sprintf("no override in force has the number %s, or is for a job, user or tenant of that name", name), Next: "fairlease override list -a shows all, with those that have ended"}
}

func listOverrides(all []Override) string {
	words := make([]string, len(all))
	for i, g := range all {
		words[i] = g.String()
	}
	return strings.Join(words, ", ")
}

// Author names the author of an override: the user of this process and, beside it, the value of
// SUDO_USER. Anyone can set that variable, so it never stands alone.
func Author(sudoUser string) string {
	who := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if sudoUser != "" {
		who += fmt.Sprintf(" (SUDO_USER %.64q)", sudoUser)
	}
	return who
}
