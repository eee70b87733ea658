// Package rights says who asks a web server, and what part of the site they may see.
//
// A person is known by one of four ways: the user at the other end of a local socket (SO_PEERCRED), a MUNGE credential or a token of
// auth/jwt in the header Authorization, or the header of a proxy at a trusted address. All others are anonymous.
package rights

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Person is who asks.
type Person struct {
	User     string   // in Slurm; "" = anonymous
	Operator bool     // sees everything
	Tenants  []string // of the person: it sees their jobs; sorted
}

// Scope gives the part of a site that the person may see: an operator everything, others their tenants' jobs and the sums of all.
func (p Person) Scope() scene.Scope {
	return scene.Scope{All: p.Operator, Tenants: p.Tenants}
}

// See gives the part of a Scene for the person.
func (p Person) See(s *scene.Scene) *scene.Scene { return s.For(p.Scope()) }

// Policy says who is an operator.
type Policy struct {
	Operators []string // users
	Groups    []string // of the host: their members are operators
	// Owners are operators, too, unless only a proxy says who they are: root, and the user of this process.
	Owners []string
	// GroupsOf gives the groups of a user of this host; nil = none.
	GroupsOf func(user string) []string
}

// Person gives the rights of a user; "" = anonymous.
func (p *Policy) Person(user string, byProxy bool, s *scene.Scene) Person {
	if user == "" {
		return Person{}
	}
	operates := slices.Contains(p.Operators, user) || !byProxy && slices.Contains(p.Owners, user)
	if !operates && p.GroupsOf != nil && len(p.Groups) > 0 {
		operates = slices.ContainsFunc(p.GroupsOf(user), func(g string) bool { return slices.Contains(p.Groups, g) })
	}
	return Person{User: user, Tenants: s.TenantsOf(user), Operator: operates}
}
