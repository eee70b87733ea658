package slurm

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// drawnRecord is a record as a look may show it: a job, or two waiting tasks of an array.
func drawnRecord(t *rapid.T, id int64) *record {
	rec := &record{id: id, apart: rapid.IntRange(0, 9).Draw(t, "apart") == 0, limit: rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "limit")}
	j := cluster.Job{ID: cluster.JobID{ID: id}, Record: id, User: "ann", State: rapid.SampledFrom([]cluster.JobState{cluster.Waiting, cluster.Waiting, cluster.Running, cluster.Suspended}).Draw(t, "state"),
		Eligible: cluster.Instant(rapid.IntRange(0, 2).Draw(t, "eligible"))}
	if rapid.IntRange(0, 3).Draw(t, "array") == 0 {
		rec.array = id
		for n := range 2 {
			j.ID, j.UnsplitArray = cluster.TaskID(id, int32(n)), true
			rec.jobs = append(rec.jobs, j)
		}
		return rec
	}
	rec.limit = 0
	if j.State != cluster.Waiting {
		node := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")
		j.Start = 1
		if j.Holds = []cluster.Holding{{Node: node, Model: "v100", Size: cluster.Whole(1)}}; rapid.IntRange(0, 4).Draw(t, "shares") == 0 {
			rec.shares = map[string][]int{node: {rapid.IntRange(0, 3).Draw(t, "gpu")}}
		}
	}
	rec.jobs = []cluster.Job{j}
	return rec
}

// Two looks that give a job the same version show the same job, whatever has happened to others meanwhile.
func TestPropertyVersionsTellJobsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := seen{records: map[int64]*record{}, gpuNodes: map[string]cluster.Node{}}
		for _, name := range []string{"a", "b"} {
			s.gpuNodes[name] = cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}
		}
		type key struct {
			id     cluster.JobID
			record int64
		}
		last := map[key]cluster.Job{}
		for look := range 12 {
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				id := int64(rapid.IntRange(1, 5).Draw(t, "record"))
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					delete(s.records, id)
				case 1:
					s.factors = maps.Clone(s.factors)
					if s.factors == nil {
						s.factors = map[int64]int64{}
					}
					s.factors[id] = int64(rapid.IntRange(0, 2).Draw(t, "factor"))
				default:
					s.records[id] = drawnRecord(t, id)
				}
				s.changed = true
			}
			s.last.Jobs = s.number(s.factor(s.assemble(cluster.Instant(10 * look))))
			now := map[key]cluster.Job{}
			for _, j := range s.last.Jobs {
				k := key{j.ID, j.Record}
				was, known := last[k]
				if now[k] = j; known && j.Version != 0 && j.Version == was.Version && !reflect.DeepEqual(j, was) {
					t.Fatalf("version %d is of\n%+v\nand of\n%+v", j.Version, was, j)
				}
			}
			last = now
			s.last.Jobs = slices.Clone(s.last.Jobs)
			s.given, s.changed = true, false
		}
	})
}

// A job that is not read again keeps its version while others change.
func TestAJobKeepsItsVersion(t *testing.T) {
	s := seen{records: map[int64]*record{1: {id: 1, jobs: []cluster.Job{{ID: cluster.JobID{ID: 1}, Record: 1, State: cluster.Running}}}}}
	first := s.number(s.assemble(1))[0].Version
	s.given, s.changed = true, true
	s.records[2] = &record{id: 2, jobs: []cluster.Job{{ID: cluster.JobID{ID: 2}, Record: 2, State: cluster.Waiting}}}
	jobs := s.number(s.assemble(2))
	if first == 0 || jobs[0].Version != first || jobs[1].Version == 0 || jobs[1].Version == first {
		t.Errorf("versions %d, then %d and %d: want the first job's to stay, and another one for the second", first, jobs[0].Version, jobs[1].Version)
	}
}
