// Package ask gives commands the state of a site: from the journal, or from a web server for users who may not read the journal.
package ask

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Site tells the state of a site. Lists are as in package store.
type Site struct {
	People
	Work
	Live
	Close func()
}

// People tells how tenants and users stand.
type People interface {
	Status(ctx context.Context) (*view.Status, error)
	// Tenants lists tenants; whole = these are all.
	Tenants(ctx context.Context) (list []store.Tenant, whole bool, err error)
	Debts(ctx context.Context) ([]store.Debt, error)
	Users(ctx context.Context) ([]cluster.UserAccount, error)
	// Budgets lists the budgets of all tenants, or of those that the person may see.
	Budgets(ctx context.Context) ([]store.Budget, error)
	// Trading tells which policy divides GPU models, "" = none, and whether virtual clusters may trade cells.
	Trading(ctx context.Context) (policy string, tradable bool, err error)
	// Newest gives the number and time of the newest round; 0 = none.
	Newest(ctx context.Context) (int64, time.Time, error)
}

// Work tells of jobs and GPUs.
type Work interface {
	// BoundGPUs lists the running jobs whose GPUs cannot be taken back soon, of the tenants that the person may see.
	BoundGPUs(ctx context.Context) ([]store.Bound, error)
	Leases(ctx context.Context, all bool, limit int) ([]store.Lease, error)
	// GPUs lists GPUs: those of a node, of a user or of a job; "" = all.
	GPUs(ctx context.Context, of string) ([]store.GPU, error)
	// Cells gives the cells of virtual clusters; nil = there are none in the newest round.
	Cells(ctx context.Context) (*view.Cells, error)
	Trades(ctx context.Context, all bool, limit int) ([]store.Trade, error)
	// Forecasts lists the newest forecasts by job: of a job, or of all if it is zero.
	Forecasts(ctx context.Context, id cluster.JobID) ([]store.JobForecast, error)
	// Explain explains a job; store.ErrNone if it is not known.
	Explain(ctx context.Context, id cluster.JobID) (*view.Explanation, error)
}

// Open gives the site of a configuration: that of a server if one is named (a URL, or unix:/path; "" = none), else that of the journal.
// Without a database, or if the journal cannot be reached, it is that of web.server or web.socket, if there is one.
func Open(ctx context.Context, cfg *config.Config, server string) (*Site, error) {
	open := func(server string) (*Site, error) {
		return open(server, Proofs{Munge: cfg.Web.Munge, Tokens: cfg.Slurm.JWT != config.JWTNone})
	}
	if server != "" {
		return open(server)
	}
	s, err := connect.Journal(ctx, cfg)
	if err == nil {
		j := journal{s, cfg}
		return &Site{j, j, j, s.Close}, nil
	}
	if cfg.Web.Server != "" {
		return open(cfg.Web.Server)
	}
	if info, e := os.Stat(cfg.Web.Socket); e == nil && info.Mode()&os.ModeSocket != 0 {
		return open("unix:" + cfg.Web.Socket)
	}
	return nil, err
}

func open(server string, by Proofs) (*Site, error) {
	c, err := NewClient(server, by)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "there is no such server", Err: err, Next: "write https://HOST:PORT, http://HOST:PORT or unix:/PATH"}
	}
	return &Site{c, c, c, c.Close}, nil
}

// journal tells the state of a site from its journal.
type journal struct {
	store  *store.Store
	config *config.Config
}

func (j journal) Status(ctx context.Context) (*view.Status, error) {
	st, err := readStatus(ctx, j.store)
	if err == nil {
		st.Mode, st.Acting, st.Waits = j.config.Stance()
	}
	return st, err
}

func (j journal) Tenants(ctx context.Context) (list []store.Tenant, whole bool, err error) {
	if list, err = j.store.Tenants.List(ctx); err == nil {
		whole, err = j.store.Tenants.ReadsAll(ctx)
	}
	return list, whole, err
}

func (j journal) Debts(ctx context.Context) ([]store.Debt, error) { return j.store.Tenants.Debts(ctx) }

func (j journal) Newest(ctx context.Context) (int64, time.Time, error) {
	return j.store.Rounds.Newest(ctx)
}

func (j journal) BoundGPUs(ctx context.Context) ([]store.Bound, error) {
	return j.store.Jobs.Bound(ctx)
}

func (j journal) Trades(ctx context.Context, all bool, limit int) ([]store.Trade, error) {
	return j.store.Jobs.Trades(ctx, all, limit)
}

func (j journal) Users(ctx context.Context) ([]cluster.UserAccount, error) {
	_, plan, err := j.store.Rounds.Last(ctx)
	return plan.State.Ledger.Users, err
}

func (j journal) Budgets(ctx context.Context) ([]store.Budget, error) {
	return j.store.Tenants.Budgets(ctx, "")
}

// mostGPUs is the maximum number of GPUs in a list.
const mostGPUs = 1_000_000

func (j journal) GPUs(ctx context.Context, of string) ([]store.GPU, error) {
	return j.store.GPUs.List(ctx, of, mostGPUs)
}

func (j journal) Cells(ctx context.Context) (*view.Cells, error) {
	snap, plan, err := j.store.Rounds.Last(ctx)
	if err != nil || snap.Cells == nil || plan.Cells == nil {
		return nil, err
	}
	return view.CellsOf(&snap, &plan), nil
}

func (j journal) Trading(ctx context.Context) (string, bool, error) {
	snap, _, err := j.store.Rounds.Last(ctx)
	return snap.Settings.Divide, snap.Cells.Tradable(), err
}

func (j journal) Forecasts(ctx context.Context, id cluster.JobID) ([]store.JobForecast, error) {
	list, err := j.store.Forecasts.List(ctx, 0)
	return store.ForecastsOf(list, id), err
}

func (j journal) Leases(ctx context.Context, all bool, limit int) ([]store.Lease, error) {
	list, err := j.store.Jobs.Leases(ctx, all, limit)
	if err != nil {
		return nil, err
	}
	ahead, err := j.store.Forecasts.List(ctx, 0)
	store.LookAhead(list, ahead)
	return list, err
}

func (j journal) Explain(ctx context.Context, id cluster.JobID) (*view.Explanation, error) {
	x, err := j.store.Jobs.Explain(ctx, id)
	if err != nil {
		return nil, err
	}
	return view.Explain(x), nil
}

// refused words an answer of a server other than 200.
func refused(answer *http.Response, p problem) error {
	f := &failure.Error{Code: failure.No, What: p.What, Next: p.Next}
	if f.What == "" {
		f.What = fmt.Sprintf("the server answers with status %d", answer.StatusCode)
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		f.Err = store.ErrNone
	case http.StatusUnauthorized:
		f.Next = "run the command on a host where the server has its socket, or where munge runs; without MUNGE, set SLURM_JWT by scontrol token"
	case http.StatusServiceUnavailable:
		f.Code = failure.Absent
	}
	return f
}
