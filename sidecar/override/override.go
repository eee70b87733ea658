// Package override finds the target and the author of an administrator's order (exempt, boost,
// freeze).
package override

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/failure"
)

// Target tells whether a word names a job, a user or a tenant. last reads the newest round; it is
// called only if the word is ambiguous.
func Target(word string, last func() (cluster.Snapshot, error)) (scope, name string, err error) {
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

// By names the author of an order: the user of this process and, beside it, the value of
// SUDO_USER. Anyone can set that variable, so it never stands alone.
func By(sudoUser string) string {
	who := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if sudoUser != "" {
		who += fmt.Sprintf(" (SUDO_USER %.64q)", sudoUser)
	}
	return who
}
