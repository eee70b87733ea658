package slurm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// lookFactors reads the site factors of waiting jobs before we set ours; job records do not
// contain them. sprio shows them for jobs whose begin time has come, and runs only if such a job
// is new. The site factor of a job that requests our licence is ours.
func (c queue) lookFactors(ctx context.Context, now cluster.Instant) {
	s := &c.seen
	if c.cfg.SiteFactor == 0 {
		return // we set none
	}
	fresh := false
	for id, rec := range s.records {
		waits := len(rec.jobs) > 0 && rec.jobs[0].State == cluster.Waiting && rec.jobs[0].Inactive == "" && rec.jobs[0].Eligible <= now && !rec.jobs[0].Locked
		fresh = fresh || waits && !s.factored[id]
	}
	if !fresh {
		return
	}
	factors, err := c.sprio(ctx)
	if err != nil {
		c.notes.add("site factors that others have set could not be read, and are not given back: %v", err)
	}
	s.factored = make(map[int64]bool, len(s.records))
	for id := range s.records {
		s.factored[id] = true
	}
	for id := range s.factors {
		if s.records[id] == nil {
			delete(s.factors, id)
		}
	}
	for id, factor := range factors {
		if factor >= c.cfg.SiteFactor/2 || factor == cluster.LastInQueue {
			continue // ours: parts of GPUs have a smaller one
		}
		if _, known := s.factors[id]; known || factor != 0 {
			if s.factors == nil {
				s.factors = map[int64]int64{}
			}
			s.changed = s.changed || s.factors[id] != factor
			s.factors[id] = factor
		}
	}
}

// factor adds the known site factors to jobs, in a copy.
func (s *seen) factor(jobs []cluster.Job) []cluster.Job {
	if len(s.factors) == 0 {
		return jobs
	}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		if f, ok := s.factors[jobs[i].Record]; ok && jobs[i].State == cluster.Waiting && !jobs[i].Locked {
			jobs[i].SiteFactor = &f
		}
	}
	return jobs
}

// sprio gives the site factors of waiting jobs by record. It is beside scontrol and runs in the
// same way.
func (c queue) sprio(ctx context.Context) (map[int64]int64, error) {
	line := slices.Clone(c.cfg.Scontrol)
	last := len(line) - 1
	if filepath.Base(line[last]) != "scontrol" {
		return nil, fmt.Errorf("slurm.scontrol does not end with scontrol, so sprio is not known")
	}
	line[last] = strings.TrimSuffix(line[last], "scontrol") + "sprio"
	line = append(line, "-h", "-o", "%i %S")
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil && strings.Contains(complaint.String(), "Unable to find jobs") {
		return nil, nil // there are none
	}
	if err != nil {
		return nil, fmt.Errorf("sprio: %w: %.200s", err, strings.Join(strings.Fields(complaint.String()), " "))
	}
	return factors(string(out)), nil
}

// factors reads sprio's output: a job id and its site factor per line.
func factors(text string) map[int64]int64 {
	out := map[int64]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		id, err1 := strconv.ParseInt(f[0], 10, 64)
		n, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 == nil && err2 == nil {
			out[id] = n
		}
	}
	return out
}
