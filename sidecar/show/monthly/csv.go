package monthly

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
)

// CSV writes the numbers, one a line. Those of tenants and of models are of all users. GPU hours have so many digits that sums
// agree with the view gpu_hours to the millisecond.
func (r *Report) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	line := func(of, user, model, measure, value, unit string) {
		_ = w.Write([]string{chart.Cell(r.Tenant), r.Begin.Format("2006-01"), of, chart.Cell(user), chart.Cell(model), measure, value, unit}) // Error tells
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	hours := func(of, user, model, measure string, t cluster.GPUTime) {
		line(of, user, model, measure, strconv.FormatFloat(t.Hours(), 'f', 9, 64), "GPU h")
	}
	_ = w.Write([]string{"tenant", "month", "of", "user", "model", "measure", "value", "unit"})
	for i := range r.Models {
		m := &r.Models[i]
		for _, x := range []struct {
			measure string
			time    cluster.GPUTime
		}{{"gpu_hours", m.Time}, {"own", m.Own}, {"borrowed", m.Borrowed}, {"lent", m.Lent}, {"traded_got", m.Got}, {"traded_gave", m.Gave}, {"idle_held", m.Idle}} {
			hours("model", "", m.Name, x.measure, x.time)
		}
		if r.Prices != nil {
			line("model", "", m.Name, "price", number(r.Price(m.Name)), "per GPU h")
			line("model", "", m.Name, "cost", strconv.FormatFloat(m.Time.Hours()*r.Price(m.Name), 'f', 6, 64), "")
		}
	}
	if rho, ok := r.Rho(); ok {
		line("tenant", "", "", "rho", strconv.FormatFloat(rho, 'f', 6, 64), "")
	}
	waits := func(of, user string, seconds []float64) {
		line(of, user, "", "first_leases", strconv.Itoa(len(seconds)), "jobs")
		if len(seconds) > 0 {
			line(of, user, "", "wait_p50", strconv.FormatFloat(quantile(seconds, 0.5), 'f', 0, 64), "s")
			line(of, user, "", "wait_p90", strconv.FormatFloat(quantile(seconds, 0.9), 'f', 0, 64), "s")
		}
	}
	waits("tenant", "", r.Waits())
	hours("tenant", "", "", "work_lost", r.Lost())
	if b := r.Budget; b != nil {
		line("tenant", "", "", "budget", number(b.Hours), "GPU h at prices per "+b.Per)
		line("tenant", "", "", "budget_used", strconv.FormatFloat(b.Used, 'f', 6, 64), "GPU h at prices")
	}
	for i := range r.Users {
		u := &r.Users[i]
		for k := range r.Models {
			if t := u.ByModel[r.Models[k].Name]; t != 0 {
				hours("user", u.Name, r.Models[k].Name, "gpu_hours", t)
			}
		}
		hours("user", u.Name, "", "idle_held", u.Idle)
		hours("user", u.Name, "", "work_lost", u.Lost)
		waits("user", u.Name, u.Waits)
	}
	w.Flush()
	return w.Error()
}
