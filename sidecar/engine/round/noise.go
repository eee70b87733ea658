package round

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Users cause events: they open gates, change jobs, report odd progress. One command on an array of a thousand jobs must not
// make a thousand of them, nor may many commands. So jobs of one array with one cause share an event, and a user has at most
// MostNoise events in NoiseFor. The rest are counted: an event says that they are, and another how many they were.
const (
	MostNoise = 20
	NoiseFor  = cluster.Hour
)

// Quiet limits the events that users cause. was is sorted by user, and so is what it returns to remember. Events of other
// kinds, and those of no job, stay as they are.
func Quiet(now cluster.Instant, was []cluster.Noise, events []cluster.Event, records []cluster.Record) ([]cluster.Event, []cluster.Noise) {
	if len(was) == 0 && !slices.ContainsFunc(events, caused) {
		return events, nil
	}
	q := quieting{now: now, shared: map[cause]int{}, more: map[int]int{}}
	for _, n := range was {
		if now.Sub(n.Since) < NoiseFor {
			q.noise = append(q.noise, n)
		} else if n.Left > 0 {
			q.left = append(q.left, cluster.Event{Kind: cluster.EventEventsLeftOut, Text: fmt.Sprintf(
				"user %s caused %d more events in the hour from %s on; they were counted and left out", n.User, n.Left, n.Since)})
		}
	}
	for _, e := range events {
		at, known := slices.BinarySearchFunc(records, e.Job, func(r cluster.Record, key cluster.JobKey) int { return cmp.Compare(r.Key, key) })
		if !caused(e) || !known {
			q.kept = append(q.kept, e)
			continue
		}
		q.add(e, &records[at])
	}
	for at, n := range q.more {
		q.kept[at].Text += fmt.Sprintf(" (and %d more of its array)", n)
	}
	return append(q.kept, q.left...), q.noise
}

func caused(e cluster.Event) bool {
	return e.Job != 0 && slices.ContainsFunc(cluster.EventKinds, func(k cluster.EventKind) bool { return k.Users && k.Kind == e.Kind })
}

// quieting is the work of Quiet.
type quieting struct {
	now    cluster.Instant
	noise  []cluster.Noise
	kept   []cluster.Event
	left   []cluster.Event
	shared map[cause]int // index in kept
	more   map[int]int   // jobs that share an event, by its index in kept
}

// cause is what jobs of an array share if they share an event.
type cause struct {
	kind  string
	array cluster.JobID
	user  string
	text  string // without the job's id
}

// add keeps an event, counts it for another job's, or leaves it out.
func (q *quieting) add(e cluster.Event, r *cluster.Record) {
	why := cause{e.Kind, r.ID.Array(), r.User, strings.ReplaceAll(e.Text, r.ID.String(), "")}
	if at, ok := q.shared[why]; ok {
		if at >= 0 {
			q.more[at]++
		}
		return
	}
	k, known := slices.BinarySearchFunc(q.noise, r.User, func(n cluster.Noise, user string) int { return strings.Compare(n.User, user) })
	if !known {
		q.noise = slices.Insert(q.noise, k, cluster.Noise{User: r.User, Since: q.now})
	}
	n := &q.noise[k]
	if n.Told == MostNoise {
		if n.Left++; n.Left == 1 {
			q.left = append(q.left, cluster.Event{Kind: cluster.EventEventsLeftOut, Text: fmt.Sprintf(
				"user %s has caused %d events since %s; more are counted and left out until %s", n.User, n.Told, n.Since, n.Since.Add(NoiseFor))})
		}
		q.shared[why] = -1
		return
	}
	n.Told++
	q.shared[why], q.kept = len(q.kept), append(q.kept, e)
}
