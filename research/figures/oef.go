package figures

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// OEF's cluster (§6.1.1) and four users. The paper gives the 3090's speedups of LSTM and VGG only: the others are ours.
var (
	oefModels = []string{"rtx3070", "rtx3080", "rtx3090"}
	oefKinds  = []string{"lstm", "transformer", "resnet", "vgg"} // of users 1 to 4
	oefSpeeds = map[string][]float64{"lstm": {1, 1.6, 2.15}, "transformer": {1, 1.45, 1.9}, "resnet": {1, 1.3, 1.6}, "vgg": {1, 1.2, 1.39}}
)

const oefFleet = "2x4:rtx3070+2x4:rtx3080+2x4:rtx3090"

func oefUsers() (users []steady.User, s experiment.Setup) {
	for i, kind := range oefKinds {
		users = append(users, steady.User{Name: fmt.Sprintf("user%d", i+1), Kind: kind, Jobs: 20, GPUs: 1})
	}
	s = oefSetup()
	s.Speeds = speeds(oefModels, oefSpeeds)
	return users, s
}

// oefSetup has leases of five minutes (§6.1.1).
func oefSetup() experiment.Setup {
	s := experiment.Default()
	s.Saves = experiment.Only(sim.AtEnd) // as the paper assumes
	s.Settings.Term, s.Settings.Interval = 5*cluster.Minute, 10*cluster.Second
	s.Settings = experiment.Fit(s.Settings)
	return s
}

// lying makes OEF's Figure 4: the same users honest, and with user 1 claiming half as much speed again on the faster models.
// User 4 leaves after 40 of 80 minutes.
func lying(ctx context.Context) ([]report.Chart, error) {
	users, s := oefUsers()
	c := report.Chart{Name: "oef-4", Title: "OEF, Figure 4: who lies is penalised",
		Theirs: "all have equal progress; user 1, lying, has less than before, the others more, and all together 10 % less (§6.2.1)."}
	total, own := [2]float64{}, [2]float64{}
	for k, title := range []string{"nobody lies", "user1 lies"} {
		if k == 1 {
			lie := maps.Clone(oefSpeeds)
			lie["lstm"] = []float64{1, 2.4, 3.2}
			s.Declared = speeds(oefModels, lie)
		}
		got, err := over(ctx, s, "fairlease:oef:noncoop", oefFleet, users, 80*cluster.Minute, 5*cluster.Minute, map[string]cluster.Span{"user4": 40 * cluster.Minute})
		if err != nil {
			return nil, err
		}
		p := report.Panel{Title: title, X: "minutes", Y: "progress, GPUs of the slowest model"}
		for i, u := range users {
			curve := line(u.Name, got, cluster.Minute, func(s *steady.Stretch) float64 { return s.Of(u.Name) })
			p.Curves = append(p.Curves, curve)
			total[k] += mean(curve, 10, 40)
			if i == 0 {
				own[k] = mean(curve, 10, 40)
			}
		}
		c.Panels = append(c.Panels, p)
	}
	c.Ours = fmt.Sprintf("by its lie user 1 goes from %.2f to %.2f (%+.0f %%), all together from %.1f to %.1f (%+.0f %%), before user 4 leaves.",
		own[0], own[1], 100*(own[1]/own[0]-1), total[0], total[1], 100*(total[1]/total[0]-1))
	return []report.Chart{c}, nil
}

// virtualTenants makes OEF's Figure 5b: user 1 adds jobs of a second kind after 40 minutes of four hours.
func virtualTenants(ctx context.Context) ([]report.Chart, error) {
	users, s := oefUsers()
	const second = "densenet"
	of := maps.Clone(oefSpeeds)
	of[second] = []float64{1, 1.25, 1.5}
	s.Speeds = speeds(oefModels, of)
	users = append(users, steady.User{Name: "user1", Kind: second, Jobs: 20, GPUs: 1, From: 40 * cluster.Minute})
	got, err := over(ctx, s, "fairlease:oef:noncoop", oefFleet, users, 4*cluster.Hour, 10*cluster.Minute, nil)
	if err != nil {
		return nil, err
	}
	p := report.Panel{Title: "user1 adds " + second + " after 40 minutes", X: "minutes", Y: "progress, GPUs of the slowest model"}
	for _, u := range users {
		p.Curves = append(p.Curves, line(u.Name+" "+u.Kind, got, cluster.Minute, func(s *steady.Stretch) float64 { return s.Rates[steady.Work{Tenant: u.Name, Kind: u.Kind}] }))
	}
	return []report.Chart{{Name: "oef-5b", Title: "OEF, Figure 5b: several kinds of jobs of a user", Panels: []report.Panel{p},
		Theirs: "the two kinds have about the same, each half of what another user has (§6.2.3).",
		Ours: fmt.Sprintf("in the last three hours user 1's kinds have %.2f and %.2f, user 2 has %.2f.",
			mean(p.Curves[0], 60, 240), mean(p.Curves[4], 60, 240), mean(p.Curves[1], 60, 240))}}, nil
}

// envyAndSharing makes OEF's Figures 5a and 6, as estimated: what the cooperative program gives each user beside an equal share, and
// what each could do with another's part.
func envyAndSharing() ([]report.Chart, error) {
	var m policy.Market
	for _, name := range oefModels {
		m.Models = append(m.Models, policy.Model{Name: name, GPUs: 8})
	}
	var names []string
	for i, kind := range oefKinds {
		names = append(names, fmt.Sprintf("user%d", i+1))
		m.Tenants = append(m.Tenants, policy.Tenant{Name: names[i], Weight: 1, Kind: policy.Kind{Speedup: oefSpeeds[kind], Demand: math.Inf(1)}})
	}
	parts, err := policy.OEFCooperative(m)
	if err != nil {
		return nil, err
	}
	equal := []float64{2, 2, 2}
	share, coop, most := report.Curve{Name: "equal share"}, report.Curve{Name: "OEF"}, 0.0
	matrix := report.Panel{Title: "throughput of each user with each part", Y: "GPUs of the slowest model", Names: names}
	for l := range m.Tenants {
		with := report.Curve{Name: "part of " + names[l]}
		for i := range m.Tenants {
			with.Y = append(with.Y, worth(m.Tenants[i].Speedup, parts.GPUs[l]))
		}
		matrix.Curves = append(matrix.Curves, with)
		share.Y = append(share.Y, worth(m.Tenants[l].Speedup, equal))
		coop.Y = append(coop.Y, worth(m.Tenants[l].Speedup, parts.GPUs[l]))
		most = max(most, coop.Y[l]/share.Y[l])
	}
	envy := 0.0
	for l, with := range matrix.Curves {
		for i, v := range with.Y {
			if i != l {
				envy = max(envy, v/coop.Y[i])
			}
		}
	}
	return []report.Chart{
		{Name: "oef-5a", Title: "OEF, Figure 5a: sharing incentive", Theirs: "nobody has less than with max-min, user 4 up to 1.16 times as much, estimated (§6.2.2).",
			Ours:   fmt.Sprintf("nobody has less, and at most %.2f times as much.", most),
			Panels: []report.Panel{{Title: "throughput, estimated", Y: "GPUs of the slowest model", Names: names, Curves: []report.Curve{share, coop}}}},
		{Name: "oef-6", Title: "OEF, Figure 6: envy", Theirs: "nobody would do more with another's part; user 4 does 1.58 times what it would with user 1's (§6.2.4).",
			Ours: fmt.Sprintf("with another's part nobody does more than %.2f times what it does with its own.", envy), Panels: []report.Panel{matrix}}}, nil
}

// worth gives what GPUs of each model do at these speeds.
func worth(speed, gpus []float64) float64 {
	sum := 0.0
	for j, v := range speed {
		sum += v * gpus[j]
	}
	return sum
}
