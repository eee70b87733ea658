package ltgf

import (
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// counted gives sizes of devices as they count in accounts.
func counted(s *cluster.Settings, devices []cluster.ModelSize) []cluster.ModelSize {
	if len(s.Worths) == 0 {
		return devices
	}
	out := slices.Clone(devices)
	for i := range out {
		out[i].Size = out[i].Size.At(s.Worth(out[i].Model))
	}
	return out
}

// asBefore gives what a job held up to now: where the worth of its devices has changed, it counts from now on.
func asBefore(s *cluster.Settings, was, now []cluster.ModelSize) []cluster.ModelSize {
	same := func(x, y cluster.ModelSize) bool { return x.Model == y.Model && x.Size.Devices == y.Size.Devices }
	if len(s.Worths) > 0 && slices.EqualFunc(was, now, same) {
		return was
	}
	return now
}

// held sums a job's holdings by model, in order of model, as they count in accounts. Usually they are unchanged: then it
// returns was.
func held(s *cluster.Settings, holds []cluster.Holding, was []cluster.ModelSize) []cluster.ModelSize {
	if len(was) == 1 && sum(holds, was[0].Model).At(s.Worth(was[0].Model)) == was[0].Size {
		return was
	}
	var out []cluster.ModelSize
next:
	for _, h := range holds {
		if h.Size.Devices == 0 {
			continue
		}
		for i := range out {
			if out[i].Model == h.Model {
				out[i].Size = out[i].Size.And(h.Size)
				continue next
			}
		}
		out = append(out, cluster.ModelSize{Model: h.Model, Size: h.Size})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Model < out[j].Model })
	return counted(s, out)
}

// sum gives the size of holdings if they are of one model.
func sum(holds []cluster.Holding, model string) (size cluster.Size) {
	for i := range holds {
		if holds[i].Model != model {
			return cluster.Size{Devices: -1}
		}
		size = size.And(holds[i].Size)
	}
	return size
}
