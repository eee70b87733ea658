package trace

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// tres is the content of a list of trackable resources.
type tres struct {
	cpus, nodes int
	memoryMB    int64
	plain       int // gres/gpu
	typed       int // the sum of gres/gpu:model
	model       string
	mixed       bool
}

// add takes one entry, named as in Slurm: cpu, mem, node, gres/gpu, gres/gpu:v100.
func (r *tres) add(name string, n int) {
	switch name {
	case "cpu":
		r.cpus = n
	case "node":
		r.nodes = n
	case "mem":
		r.memoryMB = int64(n)
	case "gres/gpu":
		r.plain = n
	default:
		if model, ok := strings.CutPrefix(name, "gres/gpu:"); ok && model != "" && n > 0 {
			r.mixed = r.mixed || r.model != "" && r.model != model
			r.typed += n
			r.model = model
		}
	}
}

// gpus gives the number of GPUs, and the model if it is that of all.
func (r *tres) gpus() (int, string) {
	if r.mixed || r.plain > r.typed {
		return max(r.plain, r.typed), ""
	}
	return r.typed, r.model
}

// into sets the size of the job.
func (r *tres) into(j *Job) {
	j.GPUs, j.Model = r.gpus()
	j.CPUs, j.Nodes, j.MemoryMB = r.cpus, r.nodes, r.memoryMB
}

// parseTres reads sacct's "billing=4,cpu=4,gres/gpu:v100=2,gres/gpu=2,mem=16G,node=1".
func parseTres(s string) (tres, error) {
	var r tres
	for part := range strings.SplitSeq(s, ",") {
		name, text, _ := strings.Cut(part, "=")
		switch {
		case name == "mem":
			mb, err := megabytes(text)
			if err != nil {
				return r, fmt.Errorf("%.80q: %w", part, err)
			}
			r.memoryMB = mb
		case name == "cpu" || name == "node" || name == "gres/gpu" || strings.HasPrefix(name, "gres/gpu:"):
			n, err := count(text)
			if err != nil {
				return r, fmt.Errorf("%.80q: %w", part, err)
			}
			r.add(name, n)
		}
	}
	return r, nil
}

// megabytes reads "100M", "4G", "1.50T", "512K" and plain megabytes, rounded up.
func megabytes(s string) (int64, error) {
	unit := 1.0
	number := strings.TrimRight(s, "KMGTP")
	switch s[len(number):] {
	case "", "M":
	case "K":
		unit = 1.0 / 1024
	case "G":
		unit = 1024
	case "T":
		unit = 1024 * 1024
	case "P":
		unit = 1024 * 1024 * 1024
	default:
		return 0, errors.New("no amount of memory such as 16G")
	}
	f, err := amount(number)
	return int64(math.Ceil(f * unit)), err
}
