package loop

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// formerOf gives the former jobs that a job continues which Slurm lists as not over; nil = none.
func formerOf(m *cluster.State, j *cluster.Job) map[cluster.JobKey]bool {
	if j.Restarts == 0 && j.Submit > m.Ledger.At.Add(-cluster.FormerAfter) { // it was submitted when they had ended
		return nil
	}
	for i := range m.Former {
		if r := &m.Former[i]; r.ID == j.ID && continues(r, j) {
			return map[cluster.JobKey]bool{r.Key: true}
		}
	}
	return nil
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
	again := map[cluster.JobKey]bool{}
	for i := range m.Former {
		if r := &m.Former[i]; ids[r.ID] {
			again[r.Key] = true
		}
	}
	if len(again) > 0 {
		revive(m, again)
	}
}

// revive makes former jobs of a memory ordinary ones, charged up to the last round, in lists of its own.
func revive(m *cluster.State, again map[cluster.JobKey]bool) {
	old := m.Former
	m.Records, m.Former = slices.Clone(m.Records), make([]cluster.Record, 0, len(old))
	for i := range old {
		if !again[old[i].Key] {
			m.Former = append(m.Former, old[i])
			continue
		}
		m.Records = append(m.Records, old[i])
		m.Records[len(m.Records)-1].ChargedTo = m.Ledger.At
	}
	slices.SortFunc(m.Records, func(a, b cluster.Record) int { return cmp.Compare(a.Key, b.Key) })
}
