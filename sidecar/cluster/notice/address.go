package notice

import (
	"fmt"
	"regexp"
	"strings"
)

// account matches the names of users that may be a part of an address: no sign in them has a meaning in an address.
var account = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

// user stands for a user's name in the template of an address.
const user = "{user}"

// Address gives the address of a user by a template such as {user}@example.org. It refuses names that could name the mailbox of
// somebody else.
func Address(template, name string) (string, error) {
	if len(name) > 64 || !account.MatchString(name) {
		return "", fmt.Errorf("user %q has a name that cannot be a part of an address", Clean(name))
	}
	return strings.Replace(template, user, name, 1), nil
}

// template matches templates of addresses: the name stands before the @, once.
var template = regexp.MustCompile(`^[A-Za-z0-9_.+-]*\{user\}[A-Za-z0-9_.+-]*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$`)

// CheckAddress tells what is wrong with the template of an address.
func CheckAddress(text string) error {
	if !template.MatchString(text) {
		return fmt.Errorf("%q is no template of an address; write one like {user}@example.org", text)
	}
	return nil
}
