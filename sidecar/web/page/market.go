package page

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// market is the content of the page of trades.
type market struct {
	scene.Market
	CellTrades []string // in words
	Past       []store.Trade
	Chart      *chart.Chart // throughput now, due and by weight; nil = no policy divides GPU models
	Debts      []store.Debt
}

const mostTrades = 200

func marketPage(v *visit) (string, any, error) {
	v.Title = "Market"
	m := &market{Market: v.Market, Debts: v.Debts[:min(len(v.Debts), mostTrades)]}
	for i := range v.Market.Cells {
		m.CellTrades = append(m.CellTrades, explain.CellTrade(&v.Market.Cells[i]))
	}
	if m.Policy == "" {
		return "market", m, nil
	}
	all, err := v.past().Trades(v.req.Context(), v.Scope(), mostTrades)
	if err := v.history(err); err != nil {
		return "", nil, err
	}
	m.Past = slices.DeleteFunc(slices.Clone(all), func(t store.Trade) bool { return t.InForce })
	m.Trades = m.Trades[:min(len(m.Trades), mostTrades)]
	if len(m.Effective) > 0 {
		m.Chart = throughput(m.Effective[:min(len(m.Effective), mostTenants)])
	}
	return "market", m, nil
}

// throughput draws what tenants' GPUs do for them, in GPUs of the reference model.
func throughput(list []store.Effective) *chart.Chart {
	c := &chart.Chart{Title: "Throughput of tenants' GPUs, in GPUs of the reference model", Kind: chart.Bars, X: chart.Axis{Label: "GPUs of the reference model"},
		Series: []chart.Series{{Name: "now", Colour: 0}, {Name: "due, with trades", Colour: 2}, {Name: "by weight alone", Colour: 7}}}
	for i := range list {
		e := &list[i]
		c.Rows = append(c.Rows, e.Tenant)
		for k, value := range []float64{e.Throughput, e.Due, e.Share} {
			c.Series[k].Y = append(c.Series[k].Y, value)
			c.Series[k].Texts = append(c.Series[k].Texts, fmt.Sprintf("%.1f", value))
		}
	}
	return c
}
