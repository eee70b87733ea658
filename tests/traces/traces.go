// Package traces has the clusters and traces on which schedulers are compared. The traces are published, but not ours to ship: a
// folder that FAIRLEASE_TRACES names has them. Made-up jobs of the same shape stand for them where there is none.
package traces

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Scene is a trace on a cluster.
type Scene struct {
	Name, File, Fleet string
	tenants           string // file with their weights; "" = Philly's, which are known
}

// Scenes are two weeks of Venus on so many nodes, and two of Philly.
var Scenes = []Scene{Venus(60), Venus(40), Philly(64)}

// Venus is two weeks of Helios' Venus on nodes of 8 GPUs.
func Venus(nodes int) Scene {
	return VenusOf(fmt.Sprintf("venus%d", nodes), "venus_2w.csv.gz", nodes)
}

// VenusOf is another window of Venus.
func VenusOf(name, file string, nodes int) Scene {
	return Scene{name, file, fmt.Sprintf("%dx8", nodes), "venus_tenants.csv"}
}

// Philly is two weeks of Microsoft's Philly on nodes of 8 GPUs.
func Philly(nodes int) Scene {
	return PhillyOf(fmt.Sprintf("philly%d", nodes), "philly_2w_most_demand.csv.gz", nodes)
}

// PhillyOf is another window of Philly.
func PhillyOf(name, file string, nodes int) Scene {
	return Scene{name, file, fmt.Sprintf("%dx8", nodes), ""}
}

// Files are the files of a folder that the scene reads.
func (x *Scene) Files() []string {
	if x.tenants == "" {
		return []string{x.File}
	}
	return []string{x.File, x.tenants}
}

// Setup reads the scene's trace from a folder.
func (x *Scene) Setup(dir string) (experiment.Setup, error) {
	s := experiment.Default()
	jobs, err := trace.Open(filepath.Join(dir, x.File), trace.Options{})
	if err != nil {
		return s, err
	}
	s.Load = experiment.Of(jobs)
	weights := []byte(simtest.Philly)
	if x.tenants != "" {
		if weights, err = os.ReadFile(filepath.Join(dir, x.tenants)); err != nil {
			return s, err
		}
	}
	if s.Weights, err = experiment.ReadWeights(bytes.NewReader(weights), x.Name); err != nil {
		return s, err
	}
	s.Fleet, err = experiment.ParseFleet(x.Fleet)
	return s, err
}

// MadeUp gives jobs of the same number, tenants and days as the scene's, and of about the same demand.
func (x *Scene) MadeUp() (experiment.Setup, error) {
	s := experiment.Default()
	r := trace.LikePhilly(1, 1)
	r.Durations = r.Durations[:5] // none of more than six days
	tenants := 11
	if r.Jobs = 22_009; x.tenants != "" {
		r.Jobs, tenants = 7791, 18
		r.Sizes = []trace.Size{{GPUs: 1, Share: 60}, {GPUs: 4, Share: 5}, {GPUs: 8, Share: 22}, {GPUs: 16, Share: 6}, {GPUs: 32, Share: 4}, {GPUs: 64, Share: 3}}
	}
	r.Tenants = trace.Shifts(tenants, 0.8)
	r.PerHour = float64(r.Jobs) / (14 * cluster.Day).Duration().Hours()
	jobs, err := trace.Generate(r)
	if err != nil {
		return s, err
	}
	s.Load = experiment.Load{Name: "made-up jobs", Jobs: jobs}
	s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
	s.Fleet, err = experiment.ParseFleet(x.Fleet)
	return s, err
}

// Between cuts a load to the jobs that arrive from a moment on and before another one, which then count from the former.
func Between(l experiment.Load, from, until cluster.Span) experiment.Load {
	jobs := l.Jobs
	l.Jobs = func(yield func(trace.Job) bool) {
		for j := range jobs {
			if j.Submit < from {
				continue
			}
			if j.Submit >= until {
				return
			}
			if j.Submit -= from; !yield(j) {
				return
			}
		}
	}
	return l
}
