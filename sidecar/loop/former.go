package loop

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// formerOf gives the former job that a job continues which Slurm lists as not over since; 0 = none.
func formerOf(m *cluster.State, j *cluster.Job) cluster.JobKey {
	if j.State != cluster.Done && j.Restarts == 0 && j.Submit > m.Ledger.At.Add(-cluster.FormerAfter) { // they had ended before
		return 0
	}
	for i := len(m.Former) - 1; i >= 0; i-- { // the newest
		if r := &m.Former[i]; r.ID == j.ID && continues(r, j) {
			return r.Key
		}
	}
	return 0
}

// reviveFromHistory revives the former jobs with the ids of attempts.
func reviveFromHistory(m *cluster.State, attempts []cluster.Attempt) {
	if len(attempts) == 0 || len(m.Former) == 0 {
		return
	}
	ids := map[cluster.JobID]bool{}
	for i := range attempts {
		ids[attempts[i].ID] = true
	}
	var again []cluster.JobKey
	for i := range m.Former {
		if r := &m.Former[i]; ids[r.ID] {
			again = append(again, r.Key)
		}
	}
	if again != nil {
		revive(m, again)
	}
}

// revive makes former jobs of a memory ordinary ones, in lists of its own.
func revive(m *cluster.State, again []cluster.JobKey) {
	slices.Sort(again)
	old := m.Former
	m.Records, m.Former = slices.Clone(m.Records), make([]cluster.Record, 0, len(old))
	for i := range old {
		if _, is := slices.BinarySearch(again, old[i].Key); !is {
			m.Former = append(m.Former, old[i])
			continue
		}
		m.Records = append(m.Records, old[i])
	}
	slices.SortFunc(m.Records, func(a, b cluster.Record) int { return cmp.Compare(a.Key, b.Key) })
}
