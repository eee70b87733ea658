package daemon

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// noises are the remarks on users' jobs that began within an hour, by user: as round.Quiet limits the events of rounds, so
// that a thousand idle jobs of one user are no thousand events.
type noises map[string]cluster.Noise

// quieted are the remarks that began and are told, by user at most round.MostNoise in round.NoiseFor.
type quieted struct {
	rows  []gpu.Remark // for the journal: jobs of an array with one cause count once
	lines []gpu.Remark // for the log: the first of those
	is    noises
	left  int // remarks left out
}

// limit leaves out what is beyond the limit. It changes nothing: what could not be written down comes again.
func (was noises) limit(now cluster.Instant, news []gpu.Remark) quieted {
	q := quieted{is: noises{}}
	var said []gpu.Remark
	say := func(format string, args ...any) {
		said = append(said, gpu.Remark{Kind: cluster.EventEventsLeftOut, GPU: -1, Text: fmt.Sprintf(format, args...)})
	}
	for _, user := range slices.Sorted(maps.Keys(was)) {
		if n := was[user]; now.Sub(n.Since) < round.NoiseFor {
			q.is[user] = n
		} else if n.Left > 0 {
			say("the jobs of user %s caused %d more remarks in the hour from %s on; they were counted and left out", user, n.Left, n.Since)
		}
	}
	type cause struct {
		kind  string
		array cluster.JobID
	}
	type array struct {
		told bool
		jobs map[cluster.JobID]bool
	}
	arrays := map[cause]*array{}
	for _, r := range news {
		_, task := r.ID.Index()
		of := cause{r.Kind, r.ID.Array()}
		if a := arrays[of]; task && a != nil && !a.jobs[r.ID] {
			if a.jobs[r.ID] = true; a.told {
				q.rows = append(q.rows, r)
			}
			continue
		}
		n, known := q.is[r.User]
		if !known {
			n = cluster.Noise{User: r.User, Since: now}
		}
		told := n.Told < round.MostNoise
		if told {
			n.Told++
			q.rows, q.lines = append(q.rows, r), append(q.lines, r)
		} else {
			if n.Left++; n.Left == 1 {
				say("the jobs of user %s have caused %d remarks since %s; more are counted and left out until %s", r.User, n.Told, n.Since, n.Since.Add(round.NoiseFor))
			}
			q.left++
		}
		q.is[r.User], arrays[of] = n, &array{told, map[cluster.JobID]bool{r.ID: true}}
	}
	q.rows, q.lines = append(q.rows, said...), append(q.lines, said...)
	return q
}
