package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Client is the Site of a web server.
type Client struct {
	base string
	name string // of the server, for people
	http http.Client
	// proof tells a server who asks; nil = it needs none.
	proof func(context.Context, http.Header) error
	// Warn gets a line if there is no proof: the server is asked then as a browser asks, without one.
	Warn   io.Writer
	warned bool

	round int64
	at    time.Time
}

// problem is an answer that says what is wrong.
type problem struct {
	What string `json:"error"`
	Next string `json:"next"`
}

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 64 << 20

// NewClient gives a client of a server: http://HOST:PORT, https://HOST:PORT or unix:/PATH. At a unix socket the kernel says who asks;
// elsewhere each question has a MUNGE credential, or a token of auth/jwt.
func NewClient(server string, by Proofs) (*Client, error) {
	c := &Client{name: server, Warn: os.Stderr, http: http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if path, ok := strings.CutPrefix(server, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%q is no absolute path", path)
		}
		c.base = "http://local"
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}
		return c, nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is no address of a server", server)
	}
	c.base = strings.TrimSuffix(server, "/")
	c.proof = by.find(u)
	return c, nil
}

// get asks a question, and gives the path of the rest of a list; "" = there is none.
func (c *Client) get(ctx context.Context, path string, out any) (next string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return "", err
	}
	var nobody error
	if c.proof != nil {
		if nobody = c.proof(ctx, r.Header); nobody != nil && ctx.Err() != nil {
			return "", nobody
		}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return "", &failure.Error{Code: failure.Absent, What: "the web server cannot be reached at " + c.name, Err: errors.Unwrap(err), Next: "check that fairlease web runs there"}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return "", &failure.Error{Code: failure.Absent, What: "the web server's answer ended early", Err: err}
	}
	if nobody != nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return "", &failure.Error{Code: failure.Absent, What: "nothing proves to the web server who you are", Err: nobody, Next: "check that munged runs on this host; without MUNGE, set SLURM_JWT by scontrol token, and ask at https://"}
	}
	if nobody != nil && !c.warned {
		c.warned = true
		fmt.Fprintf(c.Warn, "fairlease: asked without a credential: %v\n", nobody)
	}
	if answer.StatusCode != http.StatusOK {
		var p problem
		if json.Unmarshal(text, &p) != nil {
			p.What = cluster.CutWrong(strings.TrimSpace(string(text)))
		}
		return "", refused(answer, p)
	}
	if err := json.Unmarshal(view.Restate(text), out); err != nil {
		return "", c.unreadable(err)
	}
	c.round, _ = strconv.ParseInt(answer.Header.Get("Fairlease-Round"), 10, 64)
	c.at, _ = time.Parse(time.RFC3339, answer.Header.Get("Fairlease-At"))
	if next, _, _ = strings.Cut(strings.TrimPrefix(answer.Header.Get("Link"), "<"), ">"); !strings.HasPrefix(next, "/") {
		next = "" // it stays on this server
	}
	return next, nil
}

// unreadable says that an answer is no answer to the question.
func (c *Client) unreadable(err error) error {
	return &failure.Error{Code: failure.No, What: "the answer of " + c.name + " cannot be read", Err: err, Next: "check that it is a fairlease web of this version"}
}

// list gets a list to its end, at most limit rows.
func list[T any](ctx context.Context, c *Client, path string, limit int) ([]T, error) {
	out := []T{}
	for path != "" && len(out) < limit {
		var part []T
		next, err := c.get(ctx, path, &part)
		if err != nil {
			return nil, err
		}
		out, path = append(out, part...), next
	}
	return out[:min(len(out), limit)], nil
}

// unbounded is the limit of lists that are not cut.
const unbounded = 1 << 30

// Status gives the state of the daemon, the GPUs and the jobs.
func (c *Client) Status(ctx context.Context) (*view.Status, error) {
	var st api.Status
	_, err := c.get(ctx, api.Root+"/status", &st)
	if err == nil && st.Status == nil {
		err = c.unreadable(errors.New("it is empty"))
	}
	return st.Status, err
}

// Tenants lists all tenants.
func (c *Client) Tenants(ctx context.Context) ([]store.Tenant, bool, error) {
	all, err := list[store.Tenant](ctx, c, api.Root+"/tenants", unbounded)
	return all, true, err
}

// Debts lists the debts between tenants.
func (c *Client) Debts(ctx context.Context) ([]store.Debt, error) {
	return list[store.Debt](ctx, c, api.Root+"/debts", unbounded)
}

// Users lists the accounts of users.
func (c *Client) Users(ctx context.Context) ([]cluster.UserAccount, error) {
	return list[cluster.UserAccount](ctx, c, api.Root+"/users", unbounded)
}

// BoundGPUs lists the running jobs whose GPUs cannot be taken back soon, of the tenants that the person may see.
func (c *Client) BoundGPUs(ctx context.Context) ([]store.Bound, error) {
	return list[store.Bound](ctx, c, api.Root+"/bound", unbounded)
}

// Budgets lists the budgets of the tenants that the person may see.
func (c *Client) Budgets(ctx context.Context) ([]store.Budget, error) {
	return list[store.Budget](ctx, c, api.Root+"/budgets", unbounded)
}

// Leases lists leases: those in force, or all of the longest window that the server gives.
func (c *Client) Leases(ctx context.Context, all bool, limit int) ([]store.Lease, error) {
	query := url.Values{"limit": {strconv.Itoa(max(min(limit, scene.MaxRows), 1))}}
	if all {
		query.Set("all", "true")
		query.Set("since", time.Unix(0, 0).UTC().Format(time.RFC3339))
	}
	return list[store.Lease](ctx, c, api.Root+"/leases?"+query.Encode(), limit)
}

// GPUs lists GPUs: those of a node, of a user or of a job; "" = all.
func (c *Client) GPUs(ctx context.Context, of string) ([]store.GPU, error) {
	query := url.Values{"limit": {strconv.Itoa(scene.MaxRows)}}
	if of != "" {
		query.Set("of", of)
	}
	return list[store.GPU](ctx, c, api.Root+"/gpus?"+query.Encode(), unbounded)
}

// Cells gives the cells of virtual clusters; nil = there are none in the newest round.
func (c *Client) Cells(ctx context.Context) (*view.Cells, error) {
	var cells view.Cells
	if _, err := c.get(ctx, api.Root+"/cells", &cells); errors.Is(err, store.ErrNone) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &cells, nil
}

// Trades lists trades: those in force, or all.
func (c *Client) Trades(ctx context.Context, all bool, limit int) ([]store.Trade, error) {
	if !all {
		m, err := c.market(ctx)
		return m.Trades[:min(len(m.Trades), limit)], err
	}
	return list[store.Trade](ctx, c, api.Root+"/trades?limit="+strconv.Itoa(max(min(limit, scene.MaxRows), 1)), limit)
}

// Trading tells which policy divides GPU models, "" = none, and whether virtual clusters may trade cells.
func (c *Client) Trading(ctx context.Context) (policy string, tradable bool, err error) {
	m, err := c.market(ctx)
	return m.Policy, m.Tradable, err
}

func (c *Client) market(ctx context.Context) (m scene.Market, err error) {
	_, err = c.get(ctx, api.Root+"/market", &m)
	return m, err
}

// Forecasts lists the newest forecasts by job: of a job, or of all if it is zero.
func (c *Client) Forecasts(ctx context.Context, id cluster.JobID) ([]store.JobForecast, error) {
	query := url.Values{"limit": {strconv.Itoa(scene.MaxRows)}}
	if id != (cluster.JobID{}) {
		query.Set("job", id.String())
	}
	return list[store.JobForecast](ctx, c, api.Root+"/forecasts?"+query.Encode(), unbounded)
}

// Explain explains a job.
func (c *Client) Explain(ctx context.Context, id cluster.JobID) (*view.Explanation, error) {
	var x api.Explained
	if _, err := c.get(ctx, api.Root+"/jobs/"+id.String(), &x); err != nil {
		return nil, err
	}
	if x.Explanation == nil {
		return nil, c.unreadable(errors.New("it is empty"))
	}
	x.Context.Restore(x.Explanation)
	return x.Explanation, nil
}

// Newest gives the round of the last answer.
func (c *Client) Newest(context.Context) (int64, time.Time, error) { return c.round, c.at, nil }

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
