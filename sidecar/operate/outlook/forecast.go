package outlook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Ask reads what a forecast is made from, with the settings of a configuration. history gives the ended attempts of the accounting
// history between two moments, for the time before the journal.
func Ask(ctx context.Context, s *store.Store, c *config.Config, workers int, history func(ctx context.Context, since, until cluster.Instant) []cluster.Attempt) (*forecast.Question, error) {
	q, err := s.Forecasts.Question(ctx, c.Forecast.Last.Span())
	if errors.Is(err, store.ErrNone) {
		return nil, &failure.Error{Code: failure.No, What: "no round has been recorded yet", Next: "see fairlease status, whether the daemon runs"}
	}
	if err != nil {
		return nil, err
	}
	if since := q.Snapshot.Now.Add(-c.Forecast.Last.Span()); q.Past.From > since {
		q.Past.Remember(history(ctx, since, q.Past.From))
	}
	q.Runs, q.Horizon, q.Workers = c.Forecast.Runs, c.Forecast.Horizon.Span(), workers
	return q, nil
}

// Make makes a forecast.
func Make(ctx context.Context, q *forecast.Question) (*forecast.Forecast, error) {
	f, err := forecast.Make(ctx, q)
	if err != nil {
		return nil, &failure.Error{Code: failure.No, What: "there is no forecast", Err: err}
	}
	return f, nil
}

// Rows words a forecast as the journal does.
func Rows(q *forecast.Question, f *forecast.Forecast) []store.JobForecast {
	of := map[cluster.JobKey]*cluster.Case{}
	for i := range q.Snapshot.Cases {
		of[q.Snapshot.Cases[i].Record.Key] = &q.Snapshot.Cases[i]
	}
	var out []store.JobForecast
	for _, j := range f.Jobs {
		c := of[j.Key]
		r := &c.Record
		out = append(out, store.JobForecast{Key: j.Key, SlurmID: r.ID.String(), Name: r.Name, Tenant: r.Tenant, User: r.User, GPUs: c.Job.Request.Size.Count(), State: string(r.State), Forecast: store.Forecast{Waits: j.Waits, Why: j.Why,
			StartP10: timeOf(j.Start.P10), StartP50: timeOf(j.Start.P50), StartP90: timeOf(j.Start.P90), EndP10: timeOf(j.End.P10), EndP50: timeOf(j.End.P50), EndP90: timeOf(j.End.P90),
			AsOf: f.At.Time(), Runs: f.Runs, Horizon: f.Horizon.Duration()}})
	}
	return out
}

func timeOf(t cluster.Instant) *time.Time {
	if t == 0 {
		return nil
	}
	at := t.Time()
	return &at
}

// Show writes the forecasts of the jobs with an id, or all if it is zero: one in words, several as a table.
func Show(p *view.Page, list []store.JobForecast, id cluster.JobID) error {
	if id != (cluster.JobID{}) {
		list = store.ForecastsOf(list, id)
		if len(list) == 0 {
			return &failure.Error{Code: failure.No, What: fmt.Sprintf("job %s has no forecast", id), Next: "fairlease explain " + id.String() + " says what is known of it; fairlease forecast " + id.String() + " --now makes one, as the daemon's user"}
		}
		if len(list) == 1 && p.ForPeople() {
			p.Printf("job %s %s\n", id, p.Ahead(&list[0].Forecast, id.String()))
			return asOf(p, list)
		}
	}
	if err := p.List(p.ForecastTable(list), list); err != nil {
		return err
	}
	return asOf(p, list)
}

// OfCells says what forecasts are worth at a site with virtual clusters.
const OfCells = "Forecasts with virtual clusters know how many GPUs each has, and not which cells: jobs that wait for cells of their own may start later."

// asOf says from when the forecasts look ahead.
func asOf(p *view.Page, list []store.JobForecast) error {
	if p.ForPeople() && len(list) > 0 {
		p.Printf("%s\n", p.Paint(fmt.Sprintf("as of %s, %d runs", p.Time(cluster.InstantOf(list[0].AsOf)), list[0].Runs), "dim"))
	}
	return nil
}
