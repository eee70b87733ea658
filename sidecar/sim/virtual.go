package sim

import (
	"cmp"
	"iter"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Virtual is a cluster in simulated time that behaves like Slurm from fairlease's view. A job
// starts when its begin time has come and its required nodes have space. A requeue takes a while
// to complete. SetLimits and SetRules give it admission rules. A begin time that is not in the future when the requeue completes is replaced by a
// delay of two minutes. Virtual implements loop.Cluster. It is for one goroutine.
//
// The exported fields configure the cluster; set them before the first job arrives.
type Virtual struct {
	// Costs is the cost of leases to jobs without their own Costs. NewVirtual has only Slurm's
	// part; DefaultCosts gives the rest.
	Costs
	// Term is the length of a term for jobs that save at EachTerm.
	Term cluster.Span
	// Gate is how far ahead the submit plugin sets the begin time of a new batch job;
	// 0 = there is no plugin.
	Gate cluster.Span
	// License is the number of licences that gate jobs. If set, the plugin makes new batch jobs
	// request one instead of a begin time, and Gate only says whether there is a plugin. 0 =
	// none.
	License int64
	// Speeds is the speed of work on GPU models; nil = equal on all.
	Speeds Speeds
	// Beside is the speed of work that shares GPUs; nil = no sharing.
	Beside Beside
	// Reports is the interval of progress reports of running jobs; their steps are seconds of
	// work on the reference model. 0 = never.
	Reports cluster.Span
	// ReportSaves lets jobs that save on their own, periodically or at the end of each term,
	// report each save with their progress.
	ReportSaves bool
	// Mixed lets gangs that name no model span models, at the pace of the slowest.
	Mixed bool
	// History makes every look report the attempts since the last one, not only looks after a
	// long pause.
	History bool
	// Forget drops a finished job when it is no longer listed, and an attempt when it has been
	// reported, so that memory grows with the active jobs. Job, Progress and Received then do not
	// know it any more, and Log stays empty.
	Forget bool
	// Lend makes Observe lend its lists: they are valid until the next look, and must not be
	// modified. A look then costs only the changes.
	Lend bool
	// Refuse, if not nil, says for which reason Slurm does not start a job, wherever it fits; "" = none. It stands for
	// limits of the site.
	Refuse func(*cluster.Job) string
	// Watch, if not nil, receives all events of jobs, in order.
	Watch func(Event)
	// Log has every signal sent to jobs, for tests.
	Log []string

	now          cluster.Instant
	reported     cluster.Instant
	nodes        []cluster.Node
	nodesVersion int64
	at           map[string]int // nodes by name
	every        []int          // all nodes
	free         []room         // by node
	largest      map[string]int // GPUs of the largest node, by model
	partitions   []cluster.Partition
	accounts     []cluster.Account
	reservations reservations
	holders      map[string]int // jobs by the reservation that they use
	outages      []outage       // in the future, by time

	names  map[string]string // of users, accounts and the like: names that share their bytes compare at once
	jobs   map[cluster.JobID]*work
	list   list
	savers []*work // jobs that have saved since their last report
	live   int     // number of unfinished jobs
	nextID int64
	agenda agenda
	queue  queue
	rules  rules
	feed   feed

	attempts []cluster.Attempt // by end
	changed  bool
}

// NewVirtual makes an idle cluster at the moment now. Nodes are in the partitions that they name.
func NewVirtual(now cluster.Instant, nodes []cluster.Node, accounts []cluster.Account) *Virtual {
	v := &Virtual{Costs: Costs{Completing: cluster.Second, RequeueDelay: 2 * cluster.Minute}, now: now, nextID: 1,
		names: map[string]string{}, jobs: map[cluster.JobID]*work{}, at: map[string]int{}, largest: map[string]int{}, holders: map[string]int{}, changed: true, nodesVersion: 1}
	v.accounts = sortedBy(accounts, func(a *cluster.Account) string { return a.Name })
	v.nodes = sortedBy(nodes, func(n *cluster.Node) string { return n.Name })
	for i := range v.accounts {
		v.intern(v.accounts[i].Name)
	}
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

// intern gives a name with the bytes of the first one that was equal.
func (v *Virtual) intern(name string) string {
	if first, ok := v.names[name]; ok {
		return first
	}
	v.names[name] = name
	return name
}

// Now gives the simulated time.
func (v *Virtual) Now() cluster.Instant { return v.now }

// AddReservation adds a reservation of others.
func (v *Virtual) AddReservation(r cluster.Reservation) {
	v.reservations.all = append(v.reservations.all, r)
	v.changed, v.reservations.byNode = true, nil
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

// feed is the source of future jobs.
type feed struct {
	pull func() (Arrival, bool)
	next Arrival
	more bool // next is one
}

// Feed lets jobs arrive, in order of time; each is fetched after the previous one has arrived.
// There is one feed at a time. stop frees its resources; it is not needed after the last job.
func (v *Virtual) Feed(arrivals iter.Seq[Arrival]) (stop func()) {
	v.feed.pull, stop = iter.Pull(arrivals)
	v.feed.next, v.feed.more = v.feed.pull()
	return stop
}

// Drained tells whether there was a feed, all its jobs have arrived, and every job has ended.
func (v *Virtual) Drained() bool { return v.feed.pull != nil && !v.feed.more && v.live == 0 }
