package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// RefusedError says that PostgreSQL refuses rows of some jobs, for example a number out of range.
// Nothing of the round was written.
type RefusedError struct {
	Keys []cluster.JobKey
	Err  error // PostgreSQL's error for the first of them
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("PostgreSQL refuses rows of %d jobs, first of job %d: %v", len(e.Keys), e.Keys[0], e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Jobs gives the keys of the jobs whose rows are refused.
func (e *RefusedError) Jobs() []cluster.JobKey { return e.Keys }

// Why gives PostgreSQL's error for the first of them.
func (e *RefusedError) Why() string { return e.Err.Error() }

// isRefusal tells whether PostgreSQL refuses the data, not the statement or its time.
func isRefusal(err error) bool { return ofClass(err, "21", "22", "23", "54") } // rows with one key; data; constraints; limits

// ofClass tells whether an error is PostgreSQL's, with a SQLSTATE of one of the classes.
func ofClass(err error, classes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && len(e.Code) >= 2 && slices.Contains(classes, e.Code[:2])
}

// refusal is a row that PostgreSQL refuses.
type refusal struct {
	of  int // index in rows
	row json.RawMessage
	err error
}

// job gives the key of the row's job; 0 = none.
func (r *refusal) job() cluster.JobKey {
	var keys struct {
		Key cluster.JobKey `json:"key"`
		Job cluster.JobKey `json:"job_key"`
	}
	if json.Unmarshal(r.row, &keys) != nil {
		return 0
	}
	return max(keys.Key, keys.Job)
}

var errTried = errors.New("tried, not kept")

// refusals finds the rows that PostgreSQL refuses, by bisection, in a transaction that is rolled
// back.
func (j *Journal) refusals(ctx context.Context, rows []rowsFor) ([]refusal, error) {
	var found []refusal
	err := j.lead.inTerm(ctx, func(tx pgx.Tx) error {
		for i := range rows {
			var all []json.RawMessage
			if err := json.Unmarshal(rows[i].text, &all); err != nil {
				return err
			}
			if err := refusedOf(ctx, tx, rows, i, all, &found); err != nil {
				return err
			}
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		err = nil
	}
	return found, err
}

func refusedOf(ctx context.Context, tx pgx.Tx, rows []rowsFor, of int, some []json.RawMessage, found *[]refusal) error {
	try := func(some []json.RawMessage) error {
		text, err := json.Marshal(some)
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, rows[of].query, text)
			return err
		})
	}
	err := try(some)
	switch {
	case err == nil:
		return nil
	case !isRefusal(err):
		return err
	case ofClass(err, "21"): // each alone is accepted: of rows with one key the first stays
		second := sort.Search(len(some)-1, func(n int) bool { return try(some[:n+1]) != nil })
		*found = append(*found, refusal{of, some[second], err})
		return refusedOf(ctx, tx, rows, of, slices.Delete(slices.Clone(some), second, second+1), found)
	case len(some) == 1:
		*found = append(*found, refusal{of, some[0], err})
		return nil
	}
	half := len(some) / 2
	if err := refusedOf(ctx, tx, rows, of, some[:half], found); err != nil {
		return err
	}
	return refusedOf(ctx, tx, rows, of, some[half:], found)
}

// withoutRefused handles a refusal. Jobs that must be set aside are a RefusedError. Rows of no
// job, or of jobs that are set aside already, are dropped, and an event says so.
func (j *Journal) withoutRefused(ctx context.Context, e *entry, snap cluster.Snapshot, rows []rowsFor) ([]rowsFor, error) {
	found, err := j.refusals(ctx, rows)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	var keys []cluster.JobKey
	var first error
	for i := range found {
		key := found[i].job()
		if c := caseOf(snap, key); key == 0 || c == nil || c.Gone || c.Job.Aside != "" || slices.Contains(keys, key) {
			continue
		}
		if keys = append(keys, key); first == nil {
			first = found[i].err
		}
	}
	if len(keys) > 0 {
		return nil, &RefusedError{keys, first}
	}
	left := slices.Clone(rows)
	for i := range found {
		var all []json.RawMessage
		if err := json.Unmarshal(left[found[i].of].text, &all); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(row json.RawMessage) bool { return string(row) == string(found[i].row) })
		if left[found[i].of].text, err = json.Marshal(slices.Delete(all, at, at+1)); err != nil {
			return nil, err
		}
	}
	told, err := rowsText([]eventRow{{Round: e.round.Number, Ordinal: len(e.events), At: stamp(e.at), Kind: "refused",
		Text: fmt.Sprintf("%d rows are left out, which PostgreSQL refuses, one by %s: %v", len(found), verbOf(left[found[0].of].query), found[0].err)}})
	return append(left, rowsFor{putEvents, told}), err
}

// verbOf gives the first line of a query.
func verbOf(query string) string {
	line, _, _ := strings.Cut(query, "\n")
	return strings.TrimRight(line, " (")
}
