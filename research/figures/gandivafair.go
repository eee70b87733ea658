package figures

import (
	"context"
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// trading makes Gandiva_fair's Figures 8, 10 and 11 (§5.4, §5.5): its four users without and with trading; user1 goes half-way.
func trading(ctx context.Context, until, step cluster.Span) ([]report.Chart, error) {
	users, speeds := steady.Gandiva()
	s := experiment.Default()
	s.Saves = experiment.Only(sim.AtEnd) // as the paper assumes
	s.Speeds = speeds
	leaves := map[string]cluster.Span{"user1": until / 2}
	rates := report.Chart{Name: "gandiva-fair-8", Title: "Gandiva_fair, Figure 8: progress with and without trading",
		Theirs: "users 1 and 4 gain about 30 % by trading and nobody loses; as user 1 leaves after four hours trades are undone and made anew (§5.5)."}
	held := []report.Chart{
		{Name: "gandiva-fair-10", Title: "Gandiva_fair, Figure 10: GPUs of each model, no trading",
			Theirs: "3 V100, 6 P100, 16 K80 for each user; 4, 8, 21.3 after user 1 has left (§5.4)."},
		{Name: "gandiva-fair-11", Title: "Gandiva_fair, Figure 11: GPUs of each model, with trading",
			Theirs: "shares of a model move away from equal ones as users trade (§5.5)."}}
	for _, u := range users {
		rates.Panels = append(rates.Panels, report.Panel{Title: u.Name, X: "hours", Y: "progress, GPUs of the slowest model"})
	}
	for k, by := range []string{"fairlease:gandiva-fair:no-trade", "fairlease:gandiva-fair"} {
		got, err := over(ctx, s, by, steady.GandivaFleet, users, until, step, leaves)
		if err != nil {
			return nil, err
		}
		for i, u := range users {
			rates.Panels[i].Curves = append(rates.Panels[i].Curves,
				line([]string{"no trading", "trading"}[k], got, cluster.Hour, func(s *steady.Stretch) float64 { return s.Of(u.Name) }))
		}
		for _, model := range []string{"v100", "p100", "k80"} {
			p := report.Panel{Title: model, X: "hours", Y: "GPUs held"}
			for _, u := range users {
				p.Curves = append(p.Curves, line(u.Name, got, cluster.Hour, func(s *steady.Stretch) float64 { return s.GPUs[model][u.Name] }))
			}
			held[k].Panels = append(held[k].Panels, p)
		}
	}
	half := until.Duration().Hours() / 2
	rates.Ours = "with trading, as multiples of without, before user 1 leaves:"
	for i, u := range users {
		c := rates.Panels[i].Curves
		rates.Ours += fmt.Sprintf(" %s %.2f,", u.Name, mean(c[1], half/4, half)/mean(c[0], half/4, half))
	}
	rates.Ours = strings.TrimSuffix(rates.Ours, ",") + "."
	for k := range held {
		held[k].Ours = "user 2's GPUs before and after:"
		for _, p := range held[k].Panels {
			held[k].Ours += fmt.Sprintf(" %s %.1f, %.1f;", p.Title, mean(p.Curves[1], half/4, half), mean(p.Curves[1], 1.25*half, 2*half))
		}
		held[k].Ours = strings.TrimSuffix(held[k].Ours, ";") + "."
	}
	return append([]report.Chart{rates}, held...), nil
}
