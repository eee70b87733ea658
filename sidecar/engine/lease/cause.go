package lease

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Limits of the memory for causes. A class is forgotten if it has opened to opened grants at a time, or if no job of it
// has waited for emptyFor. mostCauses are remembered of one tenant, and mostRequests of one user for which the request may
// be at fault.
const (
	opened       = 16
	emptyFor     = cluster.Hour
	mostCauses   = 16
	mostRequests = 4
)

// Told returns how soon after a grant Slurm's reason for not starting its job counts: right after an update of a job it is
// still the old one, or none. The reason Licenses, which is also that of our own gate, counts after twice that time.
func Told(s *cluster.Settings) cluster.Span { return max(5*cluster.Second, s.Interval) }

// scope says which jobs share a cause, by Slurm's reason.
type scope struct {
	lasting bool // time alone does not end it: a grant is taken back at once, and one failure closes the class
	user, account, qos, licenses,
	partition,
	request bool // with user and partition: it may be a fault of the request
}

// scopes lists Slurm's reasons by their beginnings; the first that fits counts. All others may be the fault of the
// request, or pass by themselves.
var scopes = []struct {
	reason string
	scope
}{
	{"Licenses", scope{lasting: true, licenses: true}},
	{"QOSGrp", scope{lasting: true, qos: true}},
	{"QOSMaxJobsPerUser", scope{lasting: true, qos: true, user: true}},
	{"QOS", scope{lasting: true, qos: true, account: true, user: true}},
	{"MaxGRESPerUser", scope{lasting: true, qos: true, user: true}},
	{"MaxGRESPerAccount", scope{lasting: true, qos: true, account: true}},
	{"AssocGrp", scope{lasting: true, account: true}},
	{"Assoc", scope{lasting: true, account: true, user: true}},
	{"AssociationJobLimit", scope{lasting: true, account: true, user: true}},
	{"AssociationResourceLimit", scope{lasting: true, account: true, user: true}},
	{"AccountNotAllowed: uid ", scope{lasting: true, user: true, partition: true}}, // AllowGroups of the partition
	{"AccountNotAllowed", scope{lasting: true, account: true}},
	{"AccountingPolicy", scope{lasting: true, account: true, user: true}},
	{"PartitionNodeLimit", scope{lasting: true, request: true}},
	{"PartitionTimeLimit", scope{lasting: true, request: true}},
	{"BadConstraints", scope{lasting: true, request: true}},
}

// nodesFault lists the reasons that are faults of the granted nodes. They say nothing of other jobs.
var nodesFault = []string{"ReqNodeNotAvail", "NodeDown", "Node", "BeginTime", "Reservation"}

// word returns Slurm's reason without its explanation: "QOSGrpGRES: …" is QOSGrpGRES.
func word(reason string) string {
	if k := strings.IndexAny(reason, ",: "); k >= 0 {
		return reason[:k]
	}
	return reason
}

// scopeOf returns the scope of the reason for which Slurm does not start a job, and whether it says anything of
// other jobs. "Licenses" is also the reason of our own gate, and stays for a moment when that is open.
func scopeOf(j *cluster.Job) (scope, bool) {
	reason := j.PendingReason
	for i := range scopes {
		if strings.HasPrefix(reason, scopes[i].reason) && (!scopes[i].licenses || j.Licenses != "" && !j.Locked) {
			return scopes[i].scope, true
		}
	}
	soft := scope{request: true}
	return soft, !slices.ContainsFunc(nodesFault, func(s string) bool { return strings.HasPrefix(reason, s) })
}

// stuck reports whether Slurm says of a granted job that waits that it will not start by itself.
func stuck(j *cluster.Job, granted cluster.Instant, s *cluster.Snapshot) bool {
	wait := Told(&s.Settings)
	if s.Now.Sub(granted) < wait {
		return false
	}
	of, ok := scopeOf(j)
	return ok && of.lasting && (!of.licenses || s.Now.Sub(granted) >= 2*wait)
}

// fate is what became of a grant.
type fate struct {
	at    int // case
	what  outcome
	nodes []cluster.Holding // of the grant
}

// outcome is one of: Slurm did not start the job; the job has started; it was requeued by others in its first minute; it has run
// beyond that, or ended.
type outcome int

const (
	unstarted outcome = iota
	started
	requeued
	lasted
)

// opensClass tells whether an outcome shows that the cause of a class is gone: the job has started or, where jobs were requeued at their
// start, has stayed.
func (o outcome) opensClass(x *cluster.Cause) bool {
	if x.Reason == cluster.RequeuedAtStart {
		return o == lasted
	}
	return o == started
}

// causeOf returns the cause for which a job was not started, or did not stay, without its counts, and whether it lasts; !ok = it concerns
// no other jobs.
func causeOf(c *cluster.Case, what outcome) (x cluster.Cause, lasting, ok bool) {
	j := &c.Job
	of, ok := scopeOf(j)
	k := cluster.CauseKey{Tenant: c.Record.Tenant, Reason: word(j.PendingReason)}
	if what == requeued { // Slurm's reason is about its next start
		of, ok, k.Reason = scope{request: true}, true, cluster.RequeuedAtStart
	}
	if of.user || of.request {
		k.User = j.User
	}
	if of.account {
		k.Account = j.Account
	}
	if of.qos {
		k.QOS = j.QOS
	}
	if of.licenses {
		k.Licenses = licenseNames(j.Licenses)
	}
	gpus := j.Request.Size.Devices
	if !of.lasting && (k.Reason == "" || k.Reason == "None" || k.Reason == "Priority") { // Slurm uses these in turn
		k.Reason = "Resources"
	}
	if of.partition {
		k.Partition, gpus = strings.Join(j.Partitions, ","), 0
	}
	if of.request {
		k.Partition, k.Request, gpus = strings.Join(j.Partitions, ","), j.Request, 0
	}
	return cluster.Cause{CauseKey: k, GPUs: gpus}, of.lasting, ok
}

// licenseNames returns the names of licences, sorted, without their counts.
func licenseNames(list string) string {
	var names []string
	for item := range strings.FieldsFuncSeq(list, func(c rune) bool { return c == ',' || c == ';' || c == '|' }) {
		if k := strings.IndexAny(item, ":="); k >= 0 {
			item = item[:k]
		}
		names = append(names, item)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// Concerns reports whether a job is of the class of a cause.
func Concerns(x *cluster.Cause, c *cluster.Case) bool {
	j := &c.Job
	return c.Record.Tenant == x.Tenant && j.Request.Size.Devices >= x.GPUs && (x.User == "" || x.User == j.User) &&
		(x.Account == "" || x.Account == j.Account) && (x.QOS == "" || x.QOS == j.QOS) &&
		(x.Request == (cluster.Request{}) || x.Request == j.Request) && (x.Partition == "" || joins(j.Partitions, x.Partition)) &&
		(x.Licenses == "" || x.Licenses == licenseNames(j.Licenses))
}

// joins reports whether names, joined by commas, are text.
func joins(names []string, text string) bool {
	for i, name := range names {
		rest, ok := strings.CutPrefix(text, name)
		if !ok {
			return false
		}
		if text = rest; i < len(names)-1 {
			if text, ok = strings.CutPrefix(text, ","); !ok {
				return false
			}
		}
	}
	return text == ""
}

// MayDisplaceFor returns the time from which a probe of a class may have GPUs of leases that end with their terms, if none
// that it could use are idle until then. Else a class whose cause has gone unseen would wait for ever on a full cluster. The
// wait begins with four terms, or with one if the cause may pass by itself, and doubles with every failure, up to a day.
func MayDisplaceFor(x *cluster.Cause, term cluster.Span) cluster.Instant {
	first := 4 * term
	if x.Request != (cluster.Request{}) {
		first = term
	}
	return max(x.Until, x.At.Add(min(first<<min(max(x.Failed-1, 0), 10), max(cluster.Day, term))))
}

// Learn returns the causes for which Slurm does not start jobs, sorted, after the grants of the last rounds have
// started or failed. A class opens step by step: with every job that starts, one grant more may stand. It changes
// nothing that it was handed.
func Learn(s *cluster.Snapshot, room *Workspace) []cluster.Cause {
	if len(s.Causes) == 0 && !slices.ContainsFunc(room.fates, func(f fate) bool { return f.what == unstarted || f.what == requeued }) {
		return nil
	}
	all := slices.Clone(s.Causes)
	for _, f := range room.fates {
		if c := &s.Cases[f.at]; f.what == started || f.what == lasted {
			all = starts(all, c, f.what)
			opens(all, s, c, f.what)
		}
	}
	var free map[gpusOn]cluster.MicroGPU
	for _, f := range room.fates {
		if f.what == started || f.what == lasted {
			continue
		}
		c := &s.Cases[f.at]
		if of, _ := scopeOf(&c.Job); !of.lasting && f.what == unstarted {
			if free == nil {
				free = idle(s)
			}
			if slices.ContainsFunc(f.nodes, func(h cluster.Holding) bool { return free[gpusOn{h.Node, h.Model}] < h.Size.Amount() }) {
				continue // others have not left yet
			}
		}
		all = fails(all, s, c, f.what)
	}
	seeEvents(all, s)
	return bounded(slices.DeleteFunc(all, func(x cluster.Cause) bool {
		return x.Empty > 0 && s.Now.Sub(x.Empty) >= emptyFor || x.Admits > 1 && s.Now.Sub(max(x.At, x.Until)) >= s.Settings.Term
	}))
}

// gpusOn is the GPUs of a model on a node.
type gpusOn struct{ node, model string }

// idle counts the GPUs that no job holds.
func idle(s *cluster.Snapshot) map[gpusOn]cluster.MicroGPU {
	free := map[gpusOn]cluster.MicroGPU{}
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			free[gpusOn{s.Nodes[i].Name, g.Model}] += cluster.Micro(g.Count)
		}
	}
	for i := range s.Cases {
		if c := &s.Cases[i]; !c.Gone && c.Job.State != cluster.Done {
			for _, h := range c.Job.Holds {
				free[gpusOn{h.Node, h.Model}] -= h.Size.Amount()
			}
		}
	}
	return free
}

// starts notes that a granted job has started, or has stayed.
func starts(all []cluster.Cause, c *cluster.Case, what outcome) []cluster.Cause {
	return slices.DeleteFunc(all, func(x cluster.Cause) bool {
		return what.opensClass(&x) && Concerns(&x, c) && (x.Admits == 0 || x.Admits >= opened)
	})
}

// opens lets the classes of a granted job that has started, or has stayed, have one grant more.
func opens(all []cluster.Cause, s *cluster.Snapshot, c *cluster.Case, what outcome) {
	for k := range all {
		if x := &all[k]; x.Admits > 0 && what.opensClass(x) && Concerns(x, c) {
			x.Admits++
			x.Failed, x.Until = 0, s.Now
		}
	}
}

// fails notes that a grant has failed.
func fails(all []cluster.Cause, s *cluster.Snapshot, c *cluster.Case, what outcome) []cluster.Cause {
	x, lasting, ok := causeOf(c, what)
	if !ok || x.Tenant == "" {
		return all
	}
	if x.Request != (cluster.Request{}) {
		all, x = widened(all, x)
	}
	k, found := slices.BinarySearchFunc(all, x, func(a, b cluster.Cause) int { return a.Compare(&b.CauseKey) })
	if !found {
		all = slices.Insert(all, k, x)
	}
	was := &all[k]
	was.GPUs = min(was.GPUs, x.GPUs)
	other := found && was.Last != c.Record.Key
	was.Last, was.Facts = c.Record.Key, facts(s, &was.CauseKey)
	if lasting || other || was.Admits > 0 {
		if was.Admits == 0 || was.At != s.Now {
			was.Failed++
		}
		was.Admits, was.Until = 1, s.Now.Add(backOff(was.Failed, s.Settings.GrantTimeout))
	}
	was.At, was.Empty = s.Now, 0
	return all
}

// widened returns the cause by which a failed grant is remembered if the cause may be the request. Once mostRequests
// different requests of a user have failed for one reason, that user's jobs are one class.
func widened(all []cluster.Cause, x cluster.Cause) ([]cluster.Cause, cluster.Cause) {
	wide := cluster.Cause{CauseKey: cluster.CauseKey{Tenant: x.Tenant, Reason: x.Reason, User: x.User}, GPUs: x.Request.Size.Devices}
	same := func(o cluster.Cause) bool { return o.Tenant == x.Tenant && o.Reason == x.Reason && o.User == x.User }
	n := 0
	for k := range all {
		switch o := &all[k]; {
		case !same(*o):
		case o.CauseKey == wide.CauseKey:
			return all, wide
		case o.CauseKey != x.CauseKey:
			n++
			wide.GPUs = min(wide.GPUs, o.Request.Size.Devices)
		}
	}
	if n < mostRequests {
		return all, x
	}
	return slices.DeleteFunc(all, same), wide
}

// seeEvents lets classes be tried again early whose cause may be gone: a job to which the same limit or licence applies has
// ended, or nodes, limits, access lists or the counts of licences have changed. Not sooner than lease.grant_timeout after the last failure,
// since events may be made.
func seeEvents(all []cluster.Cause, s *cluster.Snapshot) {
	closed := func(x *cluster.Cause) bool { return x.Until > max(s.Now, x.At.Add(s.Settings.GrantTimeout)) }
	for k := range all {
		if x := &all[k]; closed(x) && x.Facts != facts(s, &x.CauseKey) {
			x.Until = max(s.Now, x.At.Add(s.Settings.GrantTimeout))
		}
	}
	if !slices.ContainsFunc(all, func(x cluster.Cause) bool { return closed(&x) && x.Request == (cluster.Request{}) }) {
		return
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		if c.Record.State != cluster.Running || !c.Gone && c.Job.State == cluster.Running {
			continue
		}
		for k := range all {
			if x := &all[k]; closed(x) && frees(x, c) {
				x.Until = max(s.Now, x.At.Add(s.Settings.GrantTimeout))
			}
		}
	}
}

// frees reports whether the end of a job may leave room below the limit, or a licence, for which a class waits.
func frees(x *cluster.Cause, c *cluster.Case) bool {
	switch {
	case x.Request != (cluster.Request{}) || x.Partition != "":
		return false
	case x.Licenses != "":
		return c.Job.Licenses != "" && overlap(x.Licenses, licenseNames(c.Job.Licenses))
	}
	return (x.Account == "" && x.QOS != "" || c.Record.Tenant == x.Tenant) && (x.User == "" || x.User == c.Job.User) && (x.QOS == "" || x.QOS == c.Job.QOS)
}

// overlap reports whether two lists of names have one in common.
func overlap(a, b string) bool {
	for name := range strings.SplitSeq(a, ",") {
		for other := range strings.SplitSeq(b, ",") {
			if name == other {
				return true
			}
		}
	}
	return false
}

// facts returns a digest of what a snapshot shows of the things that could stop a class: the limits and access lists, or licences,
// that concern it and, if the request may be at fault, the nodes. 0 = nothing.
func facts(s *cluster.Snapshot, k *cluster.CauseKey) uint64 {
	if k.Licenses != "" {
		return licenseFacts(s.Admission, k.Licenses)
	}
	if k.Request == (cluster.Request{}) && s.Admission.Empty() {
		return 0
	}
	d := digest{fnv.New64a()}
	if a := s.Admission; !a.Empty() {
		d.lists(a, k)
		d.accounts(a, k)
		for i := range a.QOS {
			if q := &a.QOS[i]; q.Name == k.QOS || k.QOS == "" && k.Account != "" || ofPartition(a, q.Name) {
				d.text(q.Name)
				d.text(q.Flags...)
				d.caps(q.Caps, q.Unread)
			}
		}
	}
	if k.Request != (cluster.Request{}) {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			d.text(n.Name, n.Bad)
		}
	}
	return d.Sum64()
}

// ofPartition reports whether a QOS holds for all jobs of some partition: its limits may stop jobs of any QOS.
func ofPartition(a *cluster.Admission, qos string) bool {
	return slices.ContainsFunc(a.Partitions, func(p cluster.Partition) bool { return p.Rules.QOS == qos })
}

// digest collects facts.
type digest struct{ hash.Hash64 }

// text adds words.
func (d digest) text(words ...string) {
	for _, w := range words {
		d.Write([]byte(w))
		d.Write([]byte{0})
	}
}

// numbers adds numbers.
func (d digest) numbers(list ...int64) {
	var buf [8]byte
	for _, n := range list {
		binary.LittleEndian.PutUint64(buf[:], uint64(n))
		d.Write(buf[:])
	}
}

// caps adds limits.
func (d digest) caps(list []cluster.Cap, unread uint64) {
	for i := range list {
		c := &list[i]
		d.text(c.Rule, c.TRES)
		d.numbers(c.Max)
	}
	d.numbers(int64(unread))
}

// lists adds the rules of the partitions that a class names, or of all.
func (d digest) lists(a *cluster.Admission, k *cluster.CauseKey) {
	for i := range a.Partitions {
		p := &a.Partitions[i]
		if k.Partition != "" && !overlap(k.Partition, p.Name) {
			continue
		}
		r := &p.Rules
		d.text(p.Name, r.Closed, r.QOS)
		for _, list := range [...][]string{r.AllowAccounts, r.DenyAccounts, r.AllowQOS, r.DenyQOS, r.AllowGroups} {
			d.text(list...)
			d.numbers(int64(len(list)))
		}
		named := int64(0)
		if r.NamedOnly {
			named = 1
		}
		d.numbers(int64(p.MaxTime), int64(r.MinNodes), int64(r.MaxNodes), int64(r.CPUsPerNode), named)
	}
}

// accounts adds the limits of the account of a class, of all accounts above it, and of the class's user there, or of all users.
func (d digest) accounts(a *cluster.Admission, k *cluster.CauseKey) {
	account, user := k.Account, k.User
	for range len(a.Accounts) + 1 { // a broken tree has no end
		if account == "" {
			return
		}
		from, _ := slices.BinarySearchFunc(a.Associations, account, func(x cluster.Association, name string) int { return strings.Compare(x.Account, name) })
		for i := from; i < len(a.Associations) && a.Associations[i].Account == account; i++ {
			if x := &a.Associations[i]; x.User == "" || account == k.Account && (user == "" || x.User == user) {
				d.text(x.Account, x.User, x.Partition)
				d.caps(x.Caps, x.Unread)
			}
		}
		at, ok := slices.BinarySearchFunc(a.Accounts, account, func(x cluster.Account, name string) int { return strings.Compare(x.Name, name) })
		if !ok {
			return
		}
		account = a.Accounts[at].Parent
	}
}

// licenseFacts is facts for licences, whose names are joined by commas: how many are in use.
func licenseFacts(a *cluster.Admission, names string) uint64 {
	if a == nil || len(a.Licenses) == 0 {
		return 0
	}
	d := digest{fnv.New64a()}
	for i := range a.Licenses {
		if l := &a.Licenses[i]; overlap(names, l.Name) {
			d.text(l.Name)
			d.numbers(l.Total, l.Used, l.Deficit)
		}
	}
	return d.Sum64()
}

// bounded drops the oldest causes of tenants that have too many.
func bounded(all []cluster.Cause) []cluster.Cause {
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Tenant == all[from].Tenant {
			to++
		}
		if to-from <= mostCauses {
			from = to
			continue
		}
		oldest := from
		for k := from; k < to; k++ {
			if all[k].At < all[oldest].At {
				oldest = k
			}
		}
		all = slices.Delete(all, oldest, oldest+1)
	}
	return all
}
