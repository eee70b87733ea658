package figures

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// sharing is one of Gandiva_fair's experiments on GPUs of one model (§5.1 to §5.3): classes of users, and who leaves.
type sharing struct {
	figure, title, theirs, fleet string
	classes                      []class
	until, step                  cluster.Span
	moments                      []cluster.Span // ends of the phases that are compared
}

// class is users with so many equal jobs each. A user's weight is the GPUs of its jobs where the paper's tickets are.
type class struct {
	name              string
	users, jobs, gpus int
	tickets           int64
	leaves            cluster.Span // 0 = stays
}

var gandivaSharing = []sharing{
	{"4", "4 V100, three users", "1.33 GPUs each; later user 2 alone has 4 (§5.1)", "1x4:v100", []class{
		{"user1", 1, 4, 1, 1, 4 * cluster.Hour}, {"user2", 1, 4, 2, 1, 0}, {"user3", 1, 4, 4, 1, 4 * cluster.Hour}},
		6 * cluster.Hour, cluster.Hour / 2, []cluster.Span{4 * cluster.Hour, 6 * cluster.Hour}},
	{"5", "8 P100, small and large jobs", "2.66 GPUs each; 4 each after user 1 has left (§5.2)", "2x4:p100", []class{
		{"user1", 1, 1, 8, 1, 4 * cluster.Hour}, {"user2", 1, 2, 2, 1, 0}, {"user3", 1, 4, 1, 1, 0}},
		8 * cluster.Hour, cluster.Hour / 2, []cluster.Span{4 * cluster.Hour, 8 * cluster.Hour}},
	{"6", "48 P100, 70 users", "31, 3, 6 and 8 GPUs by class as tickets say; 0.6 GPUs a ticket after the large jobs have left, 48 in all (§5.3)", "12x4:p100", []class{
		{"1 GPU", 62, 1, 1, 1, 0}, {"2 GPUs", 3, 1, 2, 2, 0}, {"4 GPUs", 3, 1, 4, 4, 0}, {"8 GPUs", 2, 1, 8, 8, 12 * cluster.Hour}},
		24 * cluster.Hour, cluster.Hour, []cluster.Span{12 * cluster.Hour, 24 * cluster.Hour}},
	{"7", "64 K80, three users with 128 jobs each", "21.3 each, then 32 and 32, then 64 (§5.3)", "16x4:k80", []class{
		{"user1", 1, 128, 1, 1, 8 * cluster.Hour}, {"user2", 1, 128, 4, 1, 0}, {"user3", 1, 128, 2, 1, 4 * cluster.Hour}},
		12 * cluster.Hour, cluster.Hour / 2, []cluster.Span{4 * cluster.Hour, 8 * cluster.Hour, 12 * cluster.Hour}},
}

// shares makes Gandiva_fair's Figures 4 to 7: GPUs of each class of users, by fairlease with its leases of 15 minutes (the paper's quanta are
// one to two) and saves that cost nothing, with the default chooser of jobs and with the paper's.
func shares(ctx context.Context) ([]report.Chart, error) {
	var out []report.Chart
	for i := range gandivaSharing {
		c, err := gandivaSharing[i].chart(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (x *sharing) chart(ctx context.Context) (report.Chart, error) {
	var users []steady.User
	leaves, class, weights := map[string]cluster.Span{}, map[string]int{}, map[string]int64{}
	for k, c := range x.classes {
		for n := range c.users {
			name := c.name
			if c.users > 1 {
				name = fmt.Sprintf("%s, %d", c.name, n+1)
			}
			users = append(users, steady.User{Name: name, Kind: "job", Jobs: c.jobs, GPUs: c.gpus})
			class[name], weights[name] = k, c.tickets
			if c.leaves > 0 {
				leaves[name] = c.leaves
			}
		}
	}
	out := report.Chart{Name: "gandiva-fair-" + x.figure, Title: "Gandiva_fair, Figure " + x.figure + ": " + x.title, Theirs: x.theirs + ".", Ours: "GPUs by user or class"}
	for _, by := range []struct{ chooser, title, ours string }{{"", x.title, ": "}, {preset.Paper, "with the paper's split stride", " With its stride (models.chooser: paper) "}} {
		s := experiment.Default()
		s.Costs, s.Saves, s.Weights, s.Chooser = sim.Costs{}, experiment.Only(sim.Always), weights, by.chooser
		got, err := over(ctx, s, "fairlease:gandiva-fair", x.fleet, users, x.until, x.step, leaves)
		if err != nil {
			return report.Chart{}, err
		}
		p := report.Panel{Title: by.title, X: "hours", Y: "GPUs held"}
		for k, c := range x.classes {
			p.Curves = append(p.Curves, line(c.name, got, cluster.Hour, func(s *steady.Stretch) float64 {
				sum := 0.0
				for _, held := range s.GPUs {
					for name, gpus := range held {
						if class[name] == k {
							sum += gpus
						}
					}
				}
				return sum
			}))
		}
		out.Panels, out.Ours = append(out.Panels, p), out.Ours+by.ours+x.phases(p)+"."
	}
	return out, nil
}

// phases says how many GPUs each class holds in each phase.
func (x *sharing) phases(p report.Panel) string {
	var phases []string
	from := cluster.Span(0)
	for _, to := range x.moments {
		var held []string
		for _, c := range p.Curves {
			held = append(held, fmt.Sprintf("%.2f", mean(c, from.Duration().Hours(), to.Duration().Hours())))
		}
		phases, from = append(phases, strings.Join(held, ", ")), to
	}
	return strings.Join(slices.Compact(phases), "; then ")
}
