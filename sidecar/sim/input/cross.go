package input

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// untyped is the model of GPUs without a type in Slurm.
const untyped = "gpu"

// plainSlurm is the scheduler that users mean by "slurm".
const plainSlurm = "slurm-multifactor"

// Cross gives a setup for each size and scheduler. Without schedulers these are fairlease and, where it can be compared, plain Slurm, which
// is also "slurm".
func Cross(base experiment.Setup, sizes string, schedulers []string, cells string) ([]experiment.Setup, error) {
	fleets := []experiment.Fleet{base.Fleet}
	if sizes != "" {
		fleets = nil
		for text := range strings.SplitSeq(sizes, ",") {
			f, err := experiment.ParseFleet(text)
			if err != nil {
				return nil, failure.Usage("--sizes: %v", err)
			}
			f.CPUs, f.MemoryMB, f.PerSwitch = base.Fleet.CPUs, base.Fleet.MemoryMB, base.Fleet.PerSwitch
			fleets = append(fleets, f)
		}
	}
	switch {
	case len(schedulers) == 0 && base.Limits.Empty():
		schedulers = []string{experiment.Schedulers()[0], plainSlurm}
	case len(schedulers) == 0:
		schedulers = experiment.Schedulers()[:1]
	case len(schedulers) == 1 && schedulers[0] == "all":
		schedulers = experiment.Schedulers()
	}
	var out []experiment.Setup
	for _, f := range fleets {
		d, err := virtual(cells, f, base.Weights)
		if err != nil {
			return nil, err
		}
		for _, name := range schedulers {
			s := base
			if name = strings.TrimSpace(name); name == "slurm" {
				name = plainSlurm
			}
			s.Fleet, s.Scheduler, s.Cells = f, name, d
			if len(s.Settings.Worths) > 0 && (d != nil || strings.HasPrefix(name, "fairlease:")) {
				return nil, &failure.Error{Code: failure.Misuse, What: name + " counts whole devices, and models.worth counts them as parts of GPUs",
					Next: "simulate it without models.worth, by a copy of the configuration for -c"}
			}
			if s.Prices, err = Prices(base.Prices, f, s.Scheduler); err != nil {
				return nil, err
			}
			if err := s.Check(); err != nil {
				return nil, failure.Usage("%v", err)
			}
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, failure.Usage("--schedulers names none")
	}
	return out, nil
}

// Prices gives the price of a GPU of each model of a fleet: 1 unless configured, as in the
// daemon.
func Prices(known map[string]float64, f experiment.Fleet, scheduler string) (map[string]float64, error) {
	if len(known) == 0 {
		if strings.HasPrefix(strings.TrimPrefix(scheduler, "fairlease:"), "gavel:cost") {
			return nil, &failure.Error{Code: failure.Misuse, What: scheduler + " weighs throughput against cost, and no price is known",
				Next: "write what a GPU of each model costs an hour, as models.prices, into a configuration for -c"}
		}
		return nil, nil
	}
	out := map[string]float64{}
	for _, r := range f.Racks {
		out[cmp.Or(r.Model, untyped)] = 1
	}
	maps.Copy(out, known)
	return out, nil
}

// virtual gives the virtual clusters of --cells; nil = none.
func virtual(name string, f experiment.Fleet, weights map[string]int64) (*cluster.Cells, error) {
	switch name {
	case "":
		return nil, nil
	case "weights":
		d, err := experiment.CellsByWeight(f, weights)
		if err != nil {
			return nil, failure.Usage("--cells weights: %v", err)
		}
		return d, nil
	}
	file, err := config.LoadCells(name)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "--cells " + name + " cannot be used", Err: err, Next: "write weights for whole nodes by the tenants' weights"}
	}
	for i := range file.Cells.VCs {
		if vc := &file.Cells.VCs[i]; vc.Scheduler != nil {
			return nil, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("--cells %s cannot be simulated: virtual cluster %s has a scheduler of its own, which is not run here", name, vc.Name),
				Next: "take scheduler out of a copy of the file: the built-in order then decides"}
		}
	}
	return file.Cells, nil
}
