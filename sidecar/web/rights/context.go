package rights

import "context"

type key struct{}

// With gives a context of a request with the person who asks.
func With(ctx context.Context, p Person) context.Context { return context.WithValue(ctx, key{}, p) }

// From gives the person who asks; anonymous if nobody said.
func From(ctx context.Context) Person {
	p, _ := ctx.Value(key{}).(Person)
	return p
}
