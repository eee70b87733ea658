package sim

import (
	"cmp"
	"iter"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Virtual is a cluster in pretend time that behaves as Slurm does as far as
// fairlease can tell: a job starts when its begin time has come and the nodes that
// it requires have room, a requeue takes a while to complete, a begin time that
// is not in the future when the requeue completes is lost to a delay of two
// minutes. It implements loop.Cluster. It is not safe for use by several
// goroutines.
//
// The exported fields say what kind of cluster it is; they are set before the
// first job comes.
type Virtual struct {
	// Costs is what leases cost jobs that have no Costs of their own. NewVirtual
	// charges only what Slurm takes; DefaultCosts gives the rest.
	Costs
	// Term is the length of a term as jobs that save at EachTerm are told.
	Term cluster.Span
	// Gate is how far ahead the submit plugin sets the begin time of a new batch job;
	// 0 = there is no plugin.
	Gate cluster.Span
	// License is how many licences there are by which jobs are gated; with them the plugin has new batch jobs ask for one
	// instead, and Gate is only whether there is a plugin. 0 = the cluster has none.
	License int64
	// Speeds is how fast work is on GPU models; nil = equally fast on all.
	Speeds Speeds
	// Beside is how fast work is that shares GPUs; nil = none can.
	Beside Beside
	// Reports is how often running jobs report their progress, in seconds of work on the reference
	// model; 0 = never.
	Reports cluster.Span
	// ReportSaves lets jobs that save on their own, every so often or at the end of each term, report each save with
	// their progress.
	ReportSaves bool
	// Mixed lets gangs that name no model span models, at the pace of the slowest.
	Mixed bool
	// History makes every look tell the attempts since the last, not only looks
	// after a long pause.
	History bool
	// Forget lets a finished job leave memory when it is no longer listed, and an
	// attempt when it has been told, so that memory grows with the jobs that are
	// active. Job, Progress and Received then do not know it any more, and Log stays empty.
	Forget bool
	// Lend makes Observe lend its lists rather than give them away: they are good
	// until the next look, and nobody may change them. A look then costs no more than what
	// has changed.
	Lend bool
	// Watch, if not nil, is told of everything that happens to jobs, in order.
	Watch func(Event)
	// Log has every signal that jobs were sent, for tests.
	Log []string

	now          cluster.Instant
	reported     cluster.Instant
	nodes        []cluster.Node
	at           map[string]int // nodes by name
	every        []int          // all nodes
	free         []room         // by node
	largest      map[string]int // GPUs of the largest node, by model
	partitions   []cluster.Partition
	accounts     []cluster.Account
	reservations []cluster.Reservation
	holders      map[string]int // jobs by the reservation that they name
	outages      []outage       // to come, by time

	jobs   map[cluster.JobID]*work
	list   list
	savers []*work // those that have saved since they were reported last
	live   int     // jobs that are not done
	nextID int64
	agenda agenda
	queue  queue
	feed   feed

	attempts []cluster.Attempt // by end
	changed  bool
}

// NewVirtual makes an idle cluster at the moment now. All nodes are in the
// partitions that they name.
func NewVirtual(now cluster.Instant, nodes []cluster.Node, accounts []cluster.Account) *Virtual {
	v := &Virtual{Costs: Costs{Completing: cluster.Second, RequeueDelay: 2 * cluster.Minute}, now: now, nextID: 1,
		jobs: map[cluster.JobID]*work{}, at: map[string]int{}, largest: map[string]int{}, holders: map[string]int{}, changed: true}
	v.accounts = sortedBy(accounts, func(a *cluster.Account) string { return a.Name })
	v.nodes = sortedBy(nodes, func(n *cluster.Node) string { return n.Name })
	byName := map[string]*cluster.Partition{}
	var names []string
	for i := range v.nodes {
		n := &v.nodes[i]
		v.at[n.Name], v.every = i, append(v.every, i)
		v.free = append(v.free, room{gpus: slices.Clone(n.GPUs), cpus: n.CPUs, memory: n.MemoryMB})
		for _, g := range n.GPUs {
			v.largest[g.Model] = max(v.largest[g.Model], g.Count)
		}
		for _, p := range n.Partitions {
			if byName[p] == nil {
				byName[p] = &cluster.Partition{Name: p, Up: true}
				names = append(names, p)
			}
			byName[p].Nodes = append(byName[p].Nodes, n.Name)
		}
	}
	slices.Sort(names)
	for _, p := range names {
		v.partitions = append(v.partitions, *byName[p])
	}
	return v
}

func sortedBy[T any](in []T, name func(*T) string) []T {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b T) int { return cmp.Compare(name(&a), name(&b)) })
	return out
}

// Now gives the pretend time.
func (v *Virtual) Now() cluster.Instant { return v.now }

// AddReservation adds somebody else's reservation.
func (v *Virtual) AddReservation(r cluster.Reservation) {
	v.reservations = append(v.reservations, r)
	v.changed = true
}

func (v *Virtual) unreserve(name string) {
	v.dropReservations(func(r cluster.Reservation) bool { return r.Name == name })
}

// SetShares changes the shares of an account.
func (v *Virtual) SetShares(account string, shares int64) {
	for i := range v.accounts {
		if v.accounts[i].Name == account {
			v.accounts[i].Shares = shares
		}
	}
	v.changed = true
}

// Arrival is a job that will be submitted at the moment At.
type Arrival struct {
	At   cluster.Instant
	Work Work
}

// feed is where jobs come from that are not yet there.
type feed struct {
	pull func() (Arrival, bool)
	next Arrival
	more bool // next is one
}

// Feed lets jobs arrive, in order of time; each is asked for when the one before it
// has come. There is one feed at a time. stop frees what it holds; it needs not be
// called after the last job has come.
func (v *Virtual) Feed(arrivals iter.Seq[Arrival]) (stop func()) {
	v.feed.pull, stop = iter.Pull(arrivals)
	v.feed.next, v.feed.more = v.feed.pull()
	return stop
}

// Drained tells whether there was a feed and all its jobs have come, and whether
// every job is done.
func (v *Virtual) Drained() bool { return v.feed.pull != nil && !v.feed.more && v.live == 0 }
