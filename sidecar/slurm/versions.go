package slurm

import (
	"maps"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// versions are the numbers of what looks have shown of jobs: see cluster.Job.Version.
type versions struct {
	of   map[int64]numbered // by record
	last int64
}

// numbered is what a number stands for. A record is replaced when Slurm shows another one, and never changed.
type numbered struct {
	record  *record
	factor  int64 // site factor of others
	known   bool  // that is known
	version int64
}

// number gives jobs their versions. Jobs on which other jobs or the time have a part have none: those that share GPUs or close their nodes, that are
// suspended, and tasks of arrays with a limit.
func (s *seen) number(jobs []cluster.Job) []cluster.Job {
	if s.given && !s.changed {
		return jobs // as they were
	}
	x := &s.versions
	if x.of == nil {
		x.of = map[int64]numbered{}
	}
	limited := map[int64]bool{}
	for _, rec := range s.records {
		if rec.limit > 0 {
			limited[rec.array] = true
		}
	}
	for i := range jobs {
		j := &jobs[i]
		rec, now := s.records[j.Record], x.of[j.Record]
		if rec == nil || rec.apart || len(rec.shares) > 0 || j.State == cluster.Suspended || rec.array != 0 && limited[rec.array] {
			j.Version = 0
			continue
		}
		if factor, known := s.factors[j.Record]; now.record != rec || now.factor != factor || now.known != known {
			x.last++
			now = numbered{rec, factor, known, x.last}
			x.of[j.Record] = now
		}
		j.Version = now.version
	}
	if len(x.of) > 2*len(s.records) {
		maps.DeleteFunc(x.of, func(id int64, _ numbered) bool { return s.records[id] == nil })
	}
	return jobs
}
