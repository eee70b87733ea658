package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// meter is a limit on what the jobs of a set use together, and its use. All jobs of the set count, also those that another
// limit of the same kind decides on.
type meter struct {
	of   string // "account nlp", "QOS high, user alice"
	cap  cluster.Cap
	used int64 // by jobs that run, or were granted a lease
	next int64 // the same without leases that end now and are not renewed
	want int64 // with the demand that counts as due
	due  int   // granted jobs that have not started, and start only below this limit
	full string
	safe bool // a limit on minutes counts whole time limits
}

// meterKey identifies a meter.
type meterKey struct{ of, rule, tres string }

// sharing are the rules that count what jobs use together.
var sharing = []string{cluster.GrpTRESMins, cluster.GrpWall, cluster.GrpTRES, cluster.GrpJobs, cluster.MaxJobs, cluster.MaxTRESPerUser, cluster.MaxJobsPerUser, cluster.MaxTRESPerAccount, cluster.MaxJobsPerAccount}

// limit adds the limits of QOS and associations to a door. Of limits of the same kind on the same resource, that of the
// partition's QOS comes before that of the job's QOS (the other way round with OverPartQOS), and both come before those of
// associations. There all levels count (Slurm's resource limits, "hierarchy").
func (b *Book) limit(d *door, k key) {
	var qos []*cluster.QOS
	if q := b.qos(k.qos); q != nil {
		if qos, d.free = append(qos, q), q.Flags; d.no == "" && slices.Contains(q.Flags, cluster.RequiresReservation) {
			d.no = "QOS " + q.Name + " has Flags=RequiresReservation" + changes
		}
	}
	if d.rule != nil {
		if q := b.qos(d.rule.Rules.QOS); q != nil && q.Name != k.qos {
			if qos = append(qos, q); len(qos) == 2 && !slices.Contains(qos[0].Flags, cluster.OverPartQOS) {
				qos[0], qos[1] = qos[1], qos[0]
			}
		}
	}
	decided := map[[2]string]bool{}
	for _, q := range qos {
		fresh := make([]bool, len(q.Caps))
		for i, c := range q.Caps {
			fresh[i] = !decided[[2]string{c.Rule, c.TRES}]
			of := "QOS " + q.Name
			switch c.Rule {
			case cluster.MaxTRESPerUser, cluster.MaxJobsPerUser:
				of += ", user " + k.user
			case cluster.MaxTRESPerAccount, cluster.MaxJobsPerAccount:
				of += ", account " + k.account
			}
			b.add(d, of, c, fresh[i])
		}
		for _, c := range q.Caps {
			decided[[2]string{c.Rule, c.TRES}] = true
			if c.Rule == cluster.MaxJobsPerUser || c.Rule == cluster.MaxJobsPerAccount {
				decided[[2]string{cluster.MaxJobs, ""}] = true
			}
		}
	}
	user := b.association(k.account, k.user, d.name)
	if user == nil {
		user = b.association(k.account, k.user, "")
	}
	if user != nil && k.user != "" { // else it is the account's
		for _, c := range user.Caps {
			b.add(d, "user "+k.user+" in account "+k.account, c, !decided[[2]string{c.Rule, c.TRES}])
		}
	}
	account := k.account
	for range len(b.parent) + 1 { // a broken tree has no end
		if account == "" {
			break
		}
		if a := b.association(account, "", ""); a != nil {
			for _, c := range a.Caps {
				if c.Rule == cluster.GrpTRES || c.Rule == cluster.GrpJobs || c.Minutes() { // the others are defaults of its users, who have them
					b.add(d, "account "+account, c, !decided[[2]string{c.Rule, c.TRES}])
				}
			}
		}
		account = b.parent[account]
	}
}

// add adds a limit to a door: one that counts what jobs use together, or one for each job. checks is false if another
// limit decides: then jobs only count.
func (b *Book) add(d *door, of string, c cluster.Cap, checks bool) {
	if !slices.Contains(sharing, c.Rule) {
		if checks {
			d.each = append(d.each, each{c, of + " has " + c.String() + changes})
		}
		return
	}
	k := meterKey{of, c.Rule, c.TRES}
	at, ok := b.byKey[k]
	if !ok {
		at = len(b.meters)
		m := meter{of: of, cap: c, safe: b.rules.Safe}
		if m.used = c.Used; m.safe && c.Rule == cluster.GrpTRESMins {
			m.used += c.Promised
		}
		m.next = m.used
		b.meters = append(b.meters, m)
		b.byKey[k] = at
	}
	d.counts = append(d.counts, at)
	if checks {
		d.checks = append(d.checks, at)
	} else {
		d.exempt = append(d.exempt, at)
	}
}

// changes says who can change a limit.
const changes = "; an administrator can change it (sacctmgr)"

// each is a limit for each job.
type each struct {
	cap  cluster.Cap
	says string
}

func (b *Book) qos(name string) *cluster.QOS {
	at, ok := slices.BinarySearchFunc(b.rules.QOS, name, func(q cluster.QOS, name string) int { return strings.Compare(q.Name, name) })
	if !ok || name == "" {
		return nil
	}
	return &b.rules.QOS[at]
}

func (b *Book) association(account, user, partition string) *cluster.Association {
	want := cluster.Association{Account: account, User: user, Partition: partition}
	at, ok := slices.BinarySearchFunc(b.rules.Associations, want, func(a, o cluster.Association) int { return a.Compare(&o) })
	if !ok {
		return nil
	}
	return &b.rules.Associations[at]
}

// amount gives how much of a resource a waiting job asks for, at least, or a running one holds.
func amount(j *cluster.Job, tres string) int64 {
	q := &j.Request
	holds := j.State != cluster.Waiting && len(j.Holds) > 0
	switch tres {
	case "":
		return 1
	case "gres/shard", "gres/mps":
		if q.MPS != (tres == "gres/mps") {
			return 0
		}
		return int64(q.Shards)
	case "gres/gpu":
		if q.Shards > 0 && j.Ask == "" { // Slurm counts no GPU; for a slice of one that its user asked for, fairlease does
			return 0
		}
		if holds {
			return counted(q, j.GPUsHeld())
		}
		return int64(q.Size.Devices)
	case "node":
		if holds {
			return nodes(j.Holds)
		}
		if q.PerNode > 0 {
			return int64(max(q.Nodes, (q.Size.Devices+q.PerNode-1)/q.PerNode))
		}
		return int64(max(q.Nodes, 1))
	case "cpu":
		if !holds {
			return int64(q.CPUs)
		}
		n := 0
		for i := range j.Holds {
			n += j.Holds[i].CPUs
		}
		return int64(n)
	case "mem":
		if !holds {
			return q.MemoryMB
		}
		n := int64(0)
		for i := range j.Holds {
			n += j.Holds[i].MemoryMB
		}
		return n
	}
	model, ok := strings.CutPrefix(tres, "gres/gpu:")
	switch {
	case !ok || q.Shards > 0 && j.Ask == "":
		return 0
	case holds:
		n := 0
		for i := range j.Holds {
			if j.Holds[i].Model == model {
				n += j.Holds[i].Size.Devices
			}
		}
		return counted(q, n)
	case q.Model == model:
		return int64(q.Size.Devices)
	}
	return 0
}

// counted gives how many of the GPUs that a running job holds Slurm counts.
func counted(q *cluster.Request, gpus int) int64 {
	if q.Apart() {
		gpus = min(gpus, q.Size.Devices)
	}
	return int64(gpus)
}

// minutes gives a job's time limit in minutes, rounded up; 0 = none: Slurm lowers it to what a limit leaves.
func minutes(j *cluster.Job) int64 { return int64((j.Limit + cluster.Minute - 1) / cluster.Minute) }

// asks gives how much a limit must leave for a waiting job to start. A limit on minutes that is not safe must leave some.
func (m *meter) asks(j *cluster.Job) int64 {
	n := amount(j, m.cap.TRES)
	switch {
	case !m.cap.Minutes():
		return n
	case !m.safe || j.Limit == 0:
		return min(n, 1)
	}
	return product(n, minutes(j))
}

// product multiplies two amounts. It is limited, so that no sum overflows.
func product(a, b int64) int64 {
	const most = 1 << 50
	if b > 0 && a > most/b {
		return most
	}
	return a * b
}

// adds gives how much a job counts once it is granted a lease. slurmctld counts run times (GrpWall) when they are over, and
// minutes beforehand only where limits are safe.
func (m *meter) adds(j *cluster.Job) int64 {
	switch {
	case !m.cap.Minutes():
		return amount(j, m.cap.TRES)
	case !m.safe || m.cap.Rule == cluster.GrpWall:
		return 0
	}
	return product(amount(j, m.cap.TRES), minutes(j))
}

func nodes(holds []cluster.Holding) int64 {
	n := int64(0)
	for i := range holds {
		if i == 0 || holds[i].Node != holds[i-1].Node {
			n++
		}
	}
	return n
}

// exceeds gives the limit for each job that a job exceeds, in words; "" = none. A limit on what jobs use together is one, too,
// if the job alone exceeds it.
func (b *Book) exceeds(d *door, j *cluster.Job) string {
	for i := range d.each {
		e := &d.each[i]
		n := int64(0)
		switch e.cap.Rule {
		case cluster.MinTRESPerJob:
			if amount(j, e.cap.TRES) < e.cap.Max {
				return e.says
			}
			continue
		case cluster.MaxWall:
			if n = minutes(j); j.Limit == 0 {
				continue // Slurm lowers it
			}
		case cluster.MaxTRESPerJob:
			n = amount(j, e.cap.TRES)
		case cluster.MaxTRESMins:
			n = product(amount(j, e.cap.TRES), minutes(j))
		case cluster.MaxTRESPerNode:
			n = onANode(j, e.cap.TRES)
		}
		if n > e.cap.Max {
			return e.says
		}
	}
	for _, at := range d.checks {
		if m := &b.meters[at]; m.asks(j) > m.cap.Max {
			return m.of + " has " + m.cap.String() + ", less than the job asks for" + changes
		}
	}
	return ""
}

// onANode gives how much of a resource a job needs on one of its nodes, at least.
func onANode(j *cluster.Job, tres string) int64 {
	q := &j.Request
	all := amount(j, tres)
	switch {
	case tres == "cpu":
		return int64(cpusOnANode(q))
	case q.PerNode > 0:
		return all * int64(q.PerNode) / int64(max(q.Size.Devices, q.PerNode))
	case q.MaxNodes > 0:
		return (all + int64(q.MaxNodes) - 1) / int64(q.MaxNodes)
	}
	return 0
}

// Count opens the meters: jobs that run, or were granted a lease, use their part. leases are by case, and ends tells whether a case's is up
// for renewal. Slurm counts the licences of running jobs itself.
func (b *Book) Count(x *round.Facts, leases []*cluster.Lease, ends func(i int) bool) {
	if !b.limits && len(b.site.counts) == 0 {
		return
	}
	if b.limits {
		for i := range b.rules.Others {
			o := &b.rules.Others[i]
			b.other(o)
		}
	}
	b.facts, b.ending = x, b.ending[:0]
	for i := range x.Cases {
		st := &x.Cases[i]
		j := &x.Snapshot.Cases[i].Job
		granted := st.Waits && leases[i] != nil && leases[i].State == cluster.Granted
		if !st.Live || !st.Runs && !granted && j.State != cluster.Configuring || len(j.Partitions) == 0 {
			continue
		}
		if b.limits {
			end := ends(i)
			if b.take(j, true, !end); end {
				b.ending = append(b.ending, i)
			}
			if granted {
				b.starts(b.first(j))
			}
		}
		if n := b.site.of(j); n != nil {
			b.site.take(n, j)
		}
	}
	for i := range b.meters {
		b.meters[i].want = b.meters[i].used
	}
	for i := range b.site.counts {
		b.site.counts[i].want = b.site.counts[i].used
	}
}

// Settle tells which leases end now, where Count took those for such that may.
func (b *Book) Settle(ends func(i int) bool) {
	if !b.limits {
		return
	}
	left := b.ending
	for i := range b.facts.Cases {
		was := len(left) > 0 && left[0] == i
		if was {
			left = left[1:]
		}
		j := &b.facts.Snapshot.Cases[i].Job
		if st := &b.facts.Cases[i]; !st.Live || !st.Runs || len(j.Partitions) == 0 || ends(i) == was {
			continue
		}
		for _, at := range b.first(j).counts {
			switch m := &b.meters[at]; {
			case m.cap.Minutes():
			case was:
				m.next += amount(j, m.cap.TRES)
			default:
				m.next -= amount(j, m.cap.TRES)
			}
		}
	}
}

// other counts the jobs that the snapshot has no case of.
func (b *Book) other(o *cluster.Use) {
	for _, at := range b.first(asJob(o)).counts {
		m := &b.meters[at]
		n := o.Amount(m.cap.TRES)
		if m.cap.Minutes() {
			continue // Slurm's count has them
		}
		m.used, m.next = m.used+n, m.next+n
	}
}

// asJob gives a job in place of those that the snapshot has no case of.
func asJob(o *cluster.Use) *cluster.Job {
	return &cluster.Job{Account: o.Account, User: o.User, QOS: o.QOS, Partitions: []string{o.Partition}}
}

// first gives the door of a job that runs, and of the first partition of others.
func (b *Book) first(j *cluster.Job) *door {
	return &b.class(j).doors[0]
}

// take counts a job.
func (b *Book) take(j *cluster.Job, now, next bool) {
	d := b.first(j)
	for _, at := range d.counts {
		m := &b.meters[at]
		if m.cap.Minutes() {
			if j.State == cluster.Waiting || j.Start.Add(j.Blur) > b.rules.Read { // Slurm's count has the others
				n := m.adds(j)
				m.used, m.next = m.used+n, m.next+n
			}
			continue
		}
		n := amount(j, m.cap.TRES)
		if now {
			m.used += n
		}
		if next {
			m.next += n
		}
	}
}

// room tells whether the limits leave room for a job at a door, and else which one does not.
func (b *Book) room(d *door, j *cluster.Job) (lease.Room, int) {
	out := lease.Now
	for _, at := range d.checks {
		m := &b.meters[at]
		if m.cap.Minutes() && j.State != cluster.Waiting {
			continue
		}
		switch n := m.asks(j); {
		case m.spares(n):
		case m.next+n > m.cap.Max:
			return lease.Never, at
		case m.used+n > m.cap.Max:
			out = lease.Later
		}
	}
	for _, at := range d.exempt { // jobs that were granted leases start first: else this one would take their part
		if m := &b.meters[at]; m.due > 0 && m.used+m.adds(j) > m.cap.Max {
			out = lease.Later
		}
	}
	return out, -1
}

// spares tells whether a limit does not concern a job that asks for n, though others use more than the limit: it asks for none. Of CPUs
// and memory each job has some, also where its request does not say how much.
func (m *meter) spares(n int64) bool {
	return n == 0 && (m.cap.Minutes() || strings.HasPrefix(m.cap.TRES, "gres/gpu"))
}

// says words a limit that leaves no room.
func (m *meter) says() string {
	switch {
	case m.full != "":
	case m.cap.Minutes():
		m.full = fmt.Sprintf("%s has %s; %d minutes are used", m.of, m.cap, m.cap.Used)
		if n := m.used - m.cap.Used; n > 0 {
			m.full += fmt.Sprintf(", and running or granted jobs may use %d", n)
		}
		m.full += changes
	default:
		m.full = fmt.Sprintf("%s is at %s; %d in use%s", m.of, m.cap, m.used, changes)
	}
	return m.full
}

// Room tells whether the limits leave room for a case's job: now, when leases that end now have ended, or neither. Licences
// must be free now.
func (b *Book) Room(i int) lease.Room {
	j := &b.facts.Snapshot.Cases[i].Job
	if n := b.site.of(j); n != nil && !b.site.room(n, j) {
		return lease.Never
	}
	if !b.limits {
		return lease.Now
	}
	d, room := b.entrance(classOf(b, i, j), j)
	if d == nil {
		return lease.Now
	}
	return room
}

// classOf gives the class of a case's job.
func classOf(b *Book, i int, j *cluster.Job) *class {
	for len(b.cases) <= i {
		b.cases = append(b.cases, nil)
	}
	if b.cases[i] == nil && len(j.Partitions) > 0 { // a chooser asks for a job several times
		b.cases[i] = b.class(j)
	}
	return b.cases[i]
}

// entrance gives the door of a class through which a job starts soonest; nil = it needs none, as no class does.
func (b *Book) entrance(c *class, j *cluster.Job) (*door, lease.Room) {
	if c == nil {
		return nil, lease.Now
	}
	var best *door
	found := lease.Never
	for i := range c.doors {
		d := &c.doors[i]
		if d.no != "" || d.exceeds(j) != "" || b.exceeds(d, j) != "" {
			continue
		}
		if room, _ := b.room(d, j); best == nil || room < found {
			best, found = d, room
		}
	}
	return best, found
}

// Take counts a case's job from now on, or from the time when leases that end now have ended.
func (b *Book) Take(i int, now bool) {
	j := &b.facts.Snapshot.Cases[i].Job
	if n := b.site.of(j); n != nil {
		b.site.take(n, j)
	}
	if !b.limits {
		return
	}
	d, _ := b.entrance(classOf(b, i, j), j)
	if d == nil {
		return
	}
	for _, at := range d.counts {
		m := &b.meters[at]
		if m.cap.Minutes() && j.State != cluster.Waiting {
			continue
		}
		n := m.adds(j)
		if m.next += n; now || m.cap.Minutes() {
			m.used += n
		}
	}
	if now {
		b.starts(d)
	}
}

// starts notes that a job may start at a door.
func (b *Book) starts(d *door) {
	for _, at := range d.checks {
		b.meters[at].due++
	}
}

// Wants tells whether the demand of a case's waiting job may count as due, and counts it. The limits, and the licences that are
// free, cap what is due.
func (b *Book) Wants(j *cluster.Job) bool {
	n, first := b.site.of(j), 0
	if n != nil {
		var ok bool
		if first, ok = b.site.wants(n, j); !ok {
			return false
		}
	}
	if b.limits && len(b.meters) > 0 && !b.limitsWant(j) {
		return false
	}
	if n != nil {
		b.site.add(n, first, func(l *license) *int64 { return &l.want })
	}
	return true
}

// limitsWant is Wants for the limits.
func (b *Book) limitsWant(j *cluster.Job) bool {
	if len(j.Partitions) == 0 {
		return true
	}
	d, _ := b.entrance(b.class(j), j)
	if d == nil {
		return true
	}
	for _, at := range d.checks {
		if m, n := &b.meters[at], b.meters[at].asks(j); !m.spares(n) && m.want+n > m.cap.Max {
			return false
		}
	}
	for _, at := range d.counts {
		m := &b.meters[at]
		m.want += m.adds(j)
	}
	return true
}

// Limits tells whether jobs use limits or licences together.
func (b *Book) Limits() bool { return b.limits && len(b.meters) > 0 || len(b.site.counts) > 0 }
