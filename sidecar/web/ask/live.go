package ask

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Live tells what changes often, to commands that ask again and again.
type Live interface {
	// Pulse gives the number of the newest round, 0 = none, and the daemon that leads; nil = none. It costs little.
	Pulse(ctx context.Context) (round int64, lead *store.Leader, err error)
	// Waiting lists at most limit waiting jobs of the tenants that the person may see.
	Waiting(ctx context.Context, limit int) ([]store.Waiting, error)
}

func (j journal) Pulse(ctx context.Context) (int64, *store.Leader, error) {
	round, _, err := j.store.Rounds.Newest(ctx)
	if err != nil {
		return 0, nil, err
	}
	lead, err := j.store.Leader(ctx)
	return round, lead, err
}

func (j journal) Waiting(ctx context.Context, limit int) ([]store.Waiting, error) {
	return j.store.Jobs.Waiting(ctx, limit)
}

// Pulse gives the newest round and the daemon that leads. A server that shows an old state, since the journal does not answer it, is an error.
func (c *Client) Pulse(ctx context.Context) (int64, *store.Leader, error) {
	var st api.Status
	if _, err := c.get(ctx, api.Root+"/status", &st); err != nil {
		return 0, nil, err
	}
	switch {
	case st.Status == nil:
		return 0, nil, c.unreadable(errors.New("it is empty"))
	case st.Silent != nil:
		return 0, nil, &failure.Error{Code: failure.Absent, What: "the journal does not answer the web server at " + c.name, Next: "check that PostgreSQL runs"}
	}
	return st.Round, st.Leader, nil
}

// Waiting lists waiting jobs of the tenants that the person may see.
func (c *Client) Waiting(ctx context.Context, limit int) ([]store.Waiting, error) {
	query := url.Values{"state": {string(cluster.Waiting)}, "limit": {strconv.Itoa(max(min(limit, scene.MaxRows), 1))}}
	jobs, err := list[scene.Job](ctx, c, api.Root+"/jobs?"+query.Encode(), limit)
	out := make([]store.Waiting, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		out[i] = store.Waiting{Job: j.Key, SlurmID: j.SlurmID, Name: j.Name, Tenant: j.Tenant, User: j.User, GPUs: j.GPUs, Model: j.Model,
			Eligible: j.Eligible, Terms: j.Terms, Code: string(j.Code), Reason: j.Reason, Until: j.Until, AsOf: c.at}
	}
	return out, err
}
