package cluster

import (
	"slices"
	"strings"
)

// Basis is what a lease was granted on: the facts of a job that its owner may change in Slurm, as they were when the
// job was granted its lease, or when it was first seen running without one. They hold until the job waits
// again. A change that makes the job easier to stop counts at once, and stays. Replace a Basis, never modify it: records of
// several rounds share it.
type Basis struct {
	Request // in JSON its fields are those of the basis: there is one for each running job in each round
	// Fixed is true if it may not be requeued. Account and name are those of its Record.
	Fixed bool `json:"fixed,omitempty"`
	// Forced is true if it started before its turn: somebody opened its gate, or had it ask for more GPUs or time while its grant was
	// under way. It is stopped like others, whatever its options.
	Forced     bool     `json:"forced,omitempty"`
	QOS        string   `json:"qos,omitempty"`
	Partitions []string `json:"in"`
	// Reservation is one of others that it uses, or "".
	Reservation string `json:"reservation,omitempty"`
	Limit       Span   `json:"limit,omitempty"` // of its run time; 0 = none, or not known
	Hints       *Hints `json:"hints,omitempty"`
	Declares    Saving `json:"declares,omitzero"`
	// Told are the changes that an event has reported.
	Told Changes `json:"told,omitempty"`
}

// Changes is a set of facts that differ from the basis of a job's lease.
type Changes uint16

// The facts, by the words that users know from scontrol.
const (
	ChangedRequeue Changes = 1 << iota
	ChangedAccount
	ChangedQOS
	ChangedPartition
	ChangedName
	ChangedReservation
	ChangedComment
)

var changeWords = []string{"Requeue", "Account", "QOS", "Partition", "JobName", "Reservation", "Comment"}

func (c Changes) String() string {
	var words []string
	for i, word := range changeWords {
		if c&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// BasisOf gives the facts of a job as they are now.
func BasisOf(j *Job) *Basis {
	b := new(Basis)
	b.Set(j)
	return b
}

// Set is BasisOf for memory that the caller has, and that no record refers to yet.
func (b *Basis) Set(j *Job) {
	*b = Basis{Fixed: !j.Requeueable, QOS: j.QOS, Partitions: j.Partitions,
		Reservation: j.Reservation, Limit: j.Limit, Request: j.Request, Hints: j.Hints, Declares: j.Declares}
	if strings.HasPrefix(j.Reservation, ReservationPrefix) {
		b.Reservation = ""
	}
}

// Over lays the basis of a job's lease, and the account and name in its record r, over what Slurm shows of the job now.
// It gives the basis from now on, and the facts whose present values do not count before the job's next start. longest is the longest save of a job that may newly
// declare that it saves: a longer one would make the job harder to stop; 0 = any.
func (b *Basis) Over(j *Job, r *Record, longest Span) (*Basis, Changes) {
	if j.Aside != "" { // nothing else of it is known
		j.Account = r.Account
		return b, 0
	}
	// The basis is large: a copy is made only for a change.
	fixed, reservation, hints, changed := b.Fixed && !j.Requeueable, b.Reservation, b.Hints.since(j.Hints), Changes(0)
	note := func(differs bool, what Changes) {
		if differs {
			changed |= what
		}
	}
	note(fixed == j.Requeueable, ChangedRequeue)
	note(r.Account != j.Account, ChangedAccount)
	note(b.QOS != j.QOS, ChangedQOS)
	note(r.Name != j.Name, ChangedName)
	j.Requeueable, j.Account, j.QOS, j.Name = !fixed, r.Account, b.QOS, r.Name
	if j.State != Waiting { // Slurm places it by its present request
		j.Request = b.Request
	}
	for _, p := range j.Partitions { // of several, a running job has the one in which it runs
		if !slices.Contains(b.Partitions, p) {
			j.Partitions = b.Partitions
			changed |= ChangedPartition
			break
		}
	}
	switch ours := strings.HasPrefix(j.Reservation, ReservationPrefix); {
	case ours:
	case j.Reservation == "":
		reservation = ""
	case j.Reservation != b.Reservation:
		j.Reservation = b.Reservation
		changed |= ChangedReservation
	}
	declares := &b.Declares
	if j.Declares != b.Declares {
		now := b.Declares.since(j.Declares, longest)
		note(!now.alike(&j.Declares), ChangedComment)
		j.Declares = now
		if now != b.Declares {
			declares = &now
		}
	}
	note(!hints.alike(j.Hints), ChangedComment)
	j.Hints = hints
	if fixed == b.Fixed && reservation == b.Reservation && declares == &b.Declares && hints == b.Hints {
		return b, changed
	}
	now := *b
	now.Fixed, now.Reservation, now.Declares, now.Hints = fixed, reservation, *declares, hints
	return &now, changed
}

// since gives the declaration that counts for a running job whose lease was granted on s, and which declares now. The present
// signal counts, since it only says how the job hears its notice, and so does what makes the job easier to stop.
func (s Saving) since(now Saving, longest Span) Saving {
	out := s
	out.Signal, out.SignalTo = now.Signal, now.SignalTo
	switch was, is := s.Manner.ease(), now.Manner.ease(); {
	case is > was && (longest == 0 || now.Takes <= longest):
		return now
	case is != was || is == 0:
		return out
	}
	if now.Takes > 0 && now.Takes < s.Takes {
		out.Takes = now.Takes
	}
	if now.Every > 0 && now.Every < s.Every {
		out.Every = now.Every
	}
	if s.Implied && !now.Implied {
		out.Implied, out.Source, out.Evidence = false, now.Source, now.Evidence
	}
	return out
}

// ease ranks manners by how easily a job can be stopped: at any time, at the end of a lease, after a save, not for long.
func (m Manner) ease() int {
	switch m {
	case SavesOnTerm:
		return 3
	case SavesOnNotice:
		return 2
	case SavesEvery:
		return 1
	}
	return 0
}

// alike tells whether two declarations say the same of when a job saves.
func (s *Saving) alike(o *Saving) bool {
	return s.Manner == o.Manner && s.Every == o.Every && s.Takes == o.Takes
}

// since gives the hints that count for a running job whose lease was granted on h, and which has the hints now; either may
// be nil. The job may leave the GPUs of others, and wish for less.
func (h *Hints) since(now *Hints) *Hints {
	if h == now {
		return h
	}
	var was, is Hints
	if h != nil {
		was = *h
	}
	if now != nil {
		is = *now
	}
	if (was.Idle || !is.Idle) && is.MinLease >= was.MinLease {
		return h
	}
	out := was
	out.Idle, out.MinLease = was.Idle || is.Idle, min(was.MinLease, is.MinLease)
	return &out
}

// alike tells whether two hints say the same, apart from signals and mistakes; either may be nil.
func (h *Hints) alike(o *Hints) bool {
	if h == o {
		return true
	}
	var a, b Hints
	if h != nil {
		a = *h
	}
	if o != nil {
		b = *o
	}
	return a.Kind == b.Kind && a.Idle == b.Idle && a.Share == b.Share && a.Steps == b.Steps && a.MinLease == b.MinLease && slices.Equal(a.Rates, b.Rates) && slices.Equal(a.Memory, b.Memory)
}
