package doctor

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// partsNamed is the maximum number of parts of a kind of statements that are named.
const partsNamed = 5

// checkForecasts tells how many statements of forecasts kept their word, by kind, and names the parts of a kind that surely did not.
func checkForecasts(f *findings, cfg *config.Config, list []forecast.Coverage) {
	if cfg.Forecast.Every == 0 {
		return
	}
	for i := range list {
		c := &list[i]
		if c.By != "" {
			continue
		}
		found := fmt.Sprintf("%s of %d statements of %d forecasts kept their word; %d %% are promised", view.KeptWord(c), c.Statements, c.Forecasts, forecast.Promised)
		var parts []string
		for k := range list {
			if p := &list[k]; p.Kind == c.Kind && p.By != "" && view.BreaksWord(p) {
				parts = append(parts, view.Statements(p)+" "+view.KeptWord(p))
			}
		}
		if more := len(parts) - partsNamed; more > 0 {
			parts = append(parts[:partsNamed], fmt.Sprintf("and %d more parts", more))
		}
		if len(parts) > 0 {
			found += fmt.Sprintf("; beyond %d to %d %%: %s", forecast.Lowest, forecast.Highest, strings.Join(parts, "; "))
		}
		f.must(!view.BreaksWord(c), Warn, view.Statements(c), found, "intervals of such forecasts are too narrow if fewer keep their word, and too wide if more do",
			"wait: each forecast is corrected by what became of those before, and a change of the load takes days to show; until then trust the median less")
	}
}
