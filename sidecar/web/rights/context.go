package rights

import (
	"context"
	"net"
	"net/http"
)

type key struct{}

// With gives a context of a request with the person who asks.
func With(ctx context.Context, p Person) context.Context { return context.WithValue(ctx, key{}, p) }

// Asker names the person who asks, or else the address, to count their questions.
func Asker(user string, r *http.Request) string {
	if user != "" {
		return "user " + user
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// From gives the person who asks; anonymous if nobody said.
func From(ctx context.Context) Person {
	p, _ := ctx.Value(key{}).(Person)
	return p
}
