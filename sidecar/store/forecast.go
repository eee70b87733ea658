package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sql"
)

var (
	forecastPut      = sql.Query("forecast_put")
	classesClear     = sql.Query("forecast_classes_clear")
	classesPut       = sql.Query("forecast_classes_put")
	forecastClasses  = query[forecast.Coverage]("forecast_classes")
	forecastReplace  = sql.Query("forecast_replace")
	forecastOf       = query[JobForecast]("forecast_of")
	forecastAt       = sql.Query("forecast_at")
	forecastOutcomes = sql.Query("forecast_outcomes")
	forecastPast     = query[pastRow]("forecast_past")
)

// JobForecast is the newest forecast of a job.
type JobForecast struct {
	Key     cluster.JobKey   `json:"job" db:"job_key"`
	SlurmID string           `json:"slurm_id" db:"slurm_id"`
	Name    string           `json:"name"`
	Tenant  string           `json:"tenant"`
	User    string           `json:"user" db:"user_name"`
	GPUs    cluster.GPUCount `json:"gpus"`
	State   string           `json:"state"` // of the job, now
	Forecast
}

// Forecast says when a job starts and ends. A moment that is nil is beyond the horizon.
type Forecast struct {
	Waits    bool          `json:"waits"`         // when it was made
	Why      string        `json:"why,omitempty"` // why there is none
	StartP10 *time.Time    `json:"start_p10" db:"start_p10"`
	StartP50 *time.Time    `json:"start_p50" db:"start_p50"`
	StartP90 *time.Time    `json:"start_p90" db:"start_p90"`
	EndP10   *time.Time    `json:"end_p10" db:"end_p10"`
	EndP50   *time.Time    `json:"end_p50" db:"end_p50"`
	EndP90   *time.Time    `json:"end_p90" db:"end_p90"`
	AsOf     time.Time     `json:"as_of,omitzero" db:"as_of"`
	Runs     int           `json:"runs"`
	Horizon  time.Duration `json:"horizon_ns" db:"horizon"`
}

// Why there is no forecast of a job whose state has changed since the newest one.
const (
	WaitsSince = "it has begun to wait again since the newest forecasts were made"
	RunsSince  = "it has started since the newest forecasts were made"
)

// Outdated tells whether there is none because the job's state has changed since it was made: the next one knows the new state.
func (f *Forecast) Outdated() bool { return f.Why == WaitsSince || f.Why == RunsSince }

// As gives the forecast of a job that is in a state now. A forecast of a job that ran says nothing of one that waits, and the
// other way round.
func (f Forecast) As(state string) Forecast {
	none := Forecast{Waits: f.Waits, AsOf: f.AsOf, Runs: f.Runs, Horizon: f.Horizon}
	switch waits := state == string(cluster.Waiting); {
	case f.Why != "" && !f.Outdated():
	case waits && !f.Waits:
		none.Why = WaitsSince
		return none
	case state == string(cluster.Running) && f.Waits:
		none.Why = RunsSince
		return none
	}
	return f
}

// of tells whether the forecast is of a job, or of a task of an array.
func (f *JobForecast) of(id cluster.JobID) bool {
	return f.SlurmID == id.String() || id.Task == 0 && strings.HasPrefix(f.SlurmID, id.String()+"_")
}

// ForecastsOf gives the forecasts of a job, or all if it is zero.
func ForecastsOf(list []JobForecast, id cluster.JobID) []JobForecast {
	if id == (cluster.JobID{}) {
		return list
	}
	var out []JobForecast
	for i := range list {
		if list[i].of(id) {
			out = append(out, list[i])
		}
	}
	return out
}

// LookAhead gives leases in force the forecasts of their jobs. The forecasts are sorted by key.
func LookAhead(leases []Lease, list []JobForecast) {
	for i := range leases {
		l := &leases[i]
		k, ok := slices.BinarySearchFunc(list, l.Job, func(f JobForecast, key cluster.JobKey) int { return cmp.Compare(f.Key, key) })
		if ok && l.Ended == nil {
			l.Ahead = &list[k].Forecast
		}
	}
}

// At gives the moment of the newest forecast; zero = there is none.
func (s Forecasts) At(ctx context.Context) (at time.Time, err error) {
	if err = s.pool.QueryRow(ctx, forecastAt).Scan(&at); err != nil {
		err = fmt.Errorf("reading when the newest forecast was made: %w", denied(err))
	}
	return at, err
}

// List gives the newest forecast of all jobs, by key, or of one, as their present states leave it; key 0 = all.
func (s Forecasts) List(ctx context.Context, key cluster.JobKey) ([]JobForecast, error) {
	all, err := collect[JobForecast](ctx, s.base, "reading forecasts", forecastOf, key)
	for i := range all {
		all[i].Forecast = all[i].As(all[i].State)
	}
	return all, err
}

// Of gives the newest forecast of a job; nil = there is none.
func (s Forecasts) Of(ctx context.Context, key cluster.JobKey) (*JobForecast, error) {
	all, err := s.List(ctx, key)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// forecastRow is a row of a forecast.
type forecastRow struct {
	Job      cluster.JobKey     `json:"job"`
	Waits    bool               `json:"waits"`
	Why      string             `json:"why"`
	StartP10 cluster.Instant    `json:"start_p10"`
	StartP50 cluster.Instant    `json:"start_p50"`
	StartP90 cluster.Instant    `json:"start_p90"`
	EndP10   cluster.Instant    `json:"end_p10"`
	EndP50   cluster.Instant    `json:"end_p50"`
	EndP90   cluster.Instant    `json:"end_p90"`
	Raw      [6]cluster.Instant `json:"raw"`
}

// Forecast writes a forecast down in place of the one before. It fails with ErrDeposed when the lead is lost.
func (s *Leadership) Forecast(ctx context.Context, f *forecast.Forecast) error {
	rows := make([]forecastRow, len(f.Jobs))
	for i, j := range f.Jobs {
		rows[i] = forecastRow{j.Key, j.Waits, j.Why, j.Start.P10, j.Start.P50, j.Start.P90, j.End.P10, j.End.P50, j.End.P90,
			[6]cluster.Instant{j.RawStart.P10, j.RawStart.P50, j.RawStart.P90, j.RawEnd.P10, j.RawEnd.P50, j.RawEnd.P90}}
	}
	text, err := json.Marshal(rows)
	kept, err2 := json.Marshal(append([]forecast.Coverage{}, f.Kept...)) // never null
	if err = errors.Join(err, err2); err == nil {
		err = s.inTerm(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, forecastPut, f.At, f.Round, f.Runs, f.Horizon, string(text)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, classesClear); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, classesPut, f.At, string(kept)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, forecastReplace, f.At); err != nil {
				return err
			}
			slips, err := s.Notices.slips(ctx, tx, f.At)
			if err != nil {
				return err
			}
			return s.Notices.put(ctx, tx, slips)
		})
	}
	if err != nil {
		return fmt.Errorf("writing a forecast down: %w", err)
	}
	return nil
}

// Question reads what a forecast is made from: the newest round, the jobs of the last time, and what became of earlier
// forecasts in it. It fails with ErrNone if there is no round.
func (s Forecasts) Question(ctx context.Context, last cluster.Span) (*forecast.Question, error) {
	snap, plan, err := Rounds(s).Last(ctx)
	if err != nil {
		return nil, err
	}
	if plan.Round == 0 {
		return nil, fmt.Errorf("reading the newest round: %w", ErrNone)
	}
	q := &forecast.Question{Snapshot: &snap, Plan: &plan, Seed: uint64(plan.Round)}
	since := snap.Now.Add(-last)
	if q.Outcomes, err = s.outcomes(ctx, since, snap.Now); err != nil {
		return nil, err
	}
	rows, err := collect[pastRow](ctx, s.base, "reading the jobs of the past", forecastPast, since.Time())
	if err != nil {
		return nil, err
	}
	q.Past = pastOf(rows, since, &snap)
	return q, nil
}

// pastRow is a job of the past.
type pastRow struct {
	Key        cluster.JobKey
	Name       string
	User       string `db:"user_name"`
	Tenant     string
	Partitions []string
	GPUs       cluster.GPUCount `db:"gpus"`
	Nodes      int
	Model      string
	Limit      cluster.Span    `db:"limit_ms"`
	Submitted  *time.Time      `db:"submitted_at"` // or last requeued
	Eligible   *time.Time      `db:"eligible_at"`
	Started    *time.Time      `db:"started_at"` // first
	Done       *time.Time      `db:"done_at"`
	Work       cluster.GPUTime `db:"work_gpu_ms"`
}

// pastOf joins the journal's rows with the newest snapshot, which knows more of live jobs. The journal knows all arrivals since
// its own first job.
func pastOf(rows []pastRow, since cluster.Instant, snap *cluster.Snapshot) forecast.Past {
	p := forecast.Past{From: snap.Now}
	live := map[cluster.JobKey]*cluster.Case{}
	for i := range snap.Cases {
		live[snap.Cases[i].Record.Key] = &snap.Cases[i]
	}
	for i := range rows {
		r := &rows[i]
		submit := r.Eligible
		for _, t := range []*time.Time{r.Submitted, r.Started} {
			if submit == nil || t != nil && t.Before(*submit) {
				submit = t
			}
		}
		if submit == nil || r.Done != nil && r.Work == 0 {
			continue
		}
		j := forecast.PastJob{Tenant: r.Tenant, Submit: cluster.InstantOf(*submit), Ended: r.Done != nil, Ran: ran(r.Work, r.GPUs),
			Job: cluster.Job{Name: r.Name, User: r.User, Partitions: r.Partitions, Limit: r.Limit, Request: cluster.Request{Size: cluster.SizeOf(r.GPUs), Nodes: r.Nodes, Model: r.Model}}}
		if c := live[r.Key]; c != nil && r.Done == nil {
			j.Job, j.Ran = c.Job, ran(cluster.Received(&c.Record), r.GPUs)
		}
		p.From = max(min(p.From, j.Submit), since)
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// ran gives how long n GPUs take for work; none count as one.
func ran(work cluster.GPUTime, n cluster.GPUCount) cluster.Span {
	return cluster.Span(cluster.MulDiv(max(int64(work), 0), int64(cluster.WholeGPU), int64(cmp.Or(n, cluster.CountOf(1)))))
}

// outcomes gives what became of the statements of the kept forecasts since a moment.
func (s Forecasts) outcomes(ctx context.Context, since, now cluster.Instant) ([]forecast.Outcome, error) {
	rows, err := s.pool.Query(ctx, forecastOutcomes, since.Time())
	if err != nil {
		return nil, fmt.Errorf("reading what became of forecasts: %w", denied(err))
	}
	defer rows.Close()
	var out []forecast.Outcome
	for rows.Next() {
		var waits bool
		var at time.Time
		var horizon int64
		var raw []int64
		var started, done *time.Time
		var said [6]*time.Time
		known := forecast.Outcome{Until: now}
		if err := rows.Scan(&waits, &at, &horizon, &raw, &known.Job, &known.Tenant, &known.GPUs, &said[0], &said[1], &said[2], &said[3], &said[4], &said[5], &started, &done); err != nil {
			return nil, fmt.Errorf("reading what became of forecasts: %w", err)
		}
		if len(raw) != 6 {
			return nil, fmt.Errorf("reading what became of forecasts: %d moments instead of 6", len(raw))
		}
		known.At, known.Horizon = cluster.InstantOf(at), cluster.Span(horizon)
		add := func(kind forecast.Kind, raw []int64, said []*time.Time, was *time.Time) {
			o := known
			o.Kind, o.Raw = kind, forecast.Times{P10: cluster.Instant(raw[0]), P50: cluster.Instant(raw[1]), P90: cluster.Instant(raw[2])}
			o.Said, o.Was = forecast.Times{P10: instantOf(said[0]), P50: instantOf(said[1]), P90: instantOf(said[2])}, instantOf(was)
			out = append(out, o)
		}
		if waits {
			add(forecast.Starts, raw[:3], said[:3], started)
			add(forecast.Returns, raw[3:], said[3:], done)
		} else {
			add(forecast.Ends, raw[3:], said[3:], done)
		}
	}
	return out, rows.Err()
}

// Coverage lists how many statements kept their word, the whole kinds first.
func (s Forecasts) Coverage(ctx context.Context) ([]forecast.Coverage, error) {
	return collect[forecast.Coverage](ctx, s.base, "reading how often forecasts kept their word", forecastClasses)
}

// Forbidden tells whether there is none because Slurm's rules do not let the job start; Why then begins with "not before".
func (f *Forecast) Forbidden() bool { return strings.HasPrefix(f.Why, forecast.Never) }
