package monthly

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Order is an order for reports.
type Order struct {
	Tenants []string // nil = all that received or lent GPU time
	Month   string   // such as 2026-10; "" = the last one that is over
	Folder  string
	Cluster string
	Prices  map[string]float64 // where a tenant has no budget
	Now     time.Time
}

// Save writes a page and a CSV file for each tenant, and gives their paths.
func (o *Order) Save(ctx context.Context, s *store.Store) (paths []string, err error) {
	if o.Month == "" {
		now := o.Now.UTC()
		o.Month = time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
	}
	begin, end, err := Parse(o.Month)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: err.Error()}
	}
	if begin.After(o.Now) {
		return nil, &failure.Error{Code: failure.Misuse, What: o.Month + " has not begun", Next: "name a month that has"}
	}
	had, err := s.Tenants.MonthTenants(ctx, begin, end)
	if err != nil {
		return nil, err
	}
	if len(had) == 0 {
		return nil, &failure.Error{Code: failure.No, What: "no tenant received or lent GPU time in " + o.Month, Next: "name another month with --month"}
	}
	tenants := o.Tenants
	if tenants == nil {
		tenants = had
	}
	for _, t := range tenants {
		if !slices.Contains(had, t) {
			return nil, &failure.Error{Code: failure.No, What: fmt.Sprintf("tenant %s received and lent no GPU time in %s", t, o.Month), Next: fmt.Sprintf("name one of those that did: %v", had)}
		}
	}
	for _, t := range tenants {
		m, err := s.Tenants.Month(ctx, t, begin, end)
		if err != nil {
			return paths, err
		}
		r := Of(m, begin, o.Now, o.Cluster, o.Prices)
		for ext, write := range map[string]func(io.Writer) error{".html": r.Page, ".csv": r.CSV} {
			path := filepath.Join(o.Folder, FileName(t, o.Month)+ext)
			if err := save(path, write); err != nil {
				return paths, err
			}
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// FileName is that of a report, without its ending. Other characters than letters, digits and a few marks are written as %XX.
func FileName(tenant, month string) string { return url.PathEscape(tenant) + "-" + month }

func save(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the report cannot be written", Err: err, Next: "name a folder that exists, and that you may write to"}
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return write(f)
}
