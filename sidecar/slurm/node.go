package slurm

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// readNode reads one node record. Its GPUs are those of gres.conf without drained ones,
// "gpu:a100:2(IDX:3,5)". Usage is ignored, since node records lag behind job records.
func readNode(r *reader) cluster.Node {
	var n cluster.Node
	var states []string
	var has, drained string
	var reserved int64
	var spared int64
	members(r, func(name string) {
		switch name {
		case "name":
			n.Name = r.text()
		case "hostname":
			n.Host = r.text()
		case "address":
			n.Address = r.text()
		case "state":
			states = r.list()
		case "gres":
			has = r.text()
		case "gres_drained":
			drained = r.text()
		case "effective_cpus":
			spared = r.number().n
		case "cpus":
			n.CPUs = r.count()
		case "real_memory":
			n.MemoryMB = r.megabytes()
		case "specialized_memory":
			reserved = r.megabytes()
		case "partitions":
			n.Partitions = r.list()
		case "active_features":
			n.Features = r.list()
		default:
			r.skip()
		}
	}, true, "name", "state", "gres")
	if spared > 0 && spared < int64(n.CPUs) {
		n.CPUs = int(spared)
	}
	n.MemoryMB = max(n.MemoryMB-reserved, 0)
	all, err := gresList(has)
	n.GPUs = gpuCounts(all)
	if n.Shards = shardsOf(all, "shard", n.GPUs); n.Shards == 0 {
		n.Shards = shardsOf(all, "mps", n.GPUs)
		n.MPS = n.Shards > 0
	}
	broken, _ := gresList(drained)
	n.GPUs = less(n.GPUs, gpuCounts(broken))
	for _, g := range broken {
		if g.name == "gpu" {
			n.Drained = append(n.Drained, g.indices()...)
		}
	}
	slices.Sort(n.Drained)
	n.Drained = slices.Compact(n.Drained)
	if r.junk == "" && r.err == nil && (n.Name == "" || len(states) == 0 || err != nil && len(n.GPUs) == 0) {
		r.junk = "a node without name or state, or with GPUs that make no sense (" + has + ")"
	}
	n.Bad, n.Busy = health(states)
	n.Features = append(n.Features, others(has, "")...)
	slices.Sort(n.Partitions)
	slices.Sort(n.Features)
	return n
}

// mostShards is more shards of a GPU than anybody has use for. With more of them parts would be too small to count.
const mostShards = 1000

// shardsOf gives how many parts of a name each GPU of a node has: those that Slurm spreads evenly over GPUs of one model. 0 = none.
func shardsOf(all []gres, name string, gpus []cluster.GPUs) int {
	if len(gpus) != 1 {
		return 0
	}
	if n := count(all, name) / gpus[0].Count; n <= mostShards {
		return n
	}
	return 0
}

func less(all, broken []cluster.GPUs) []cluster.GPUs {
	for _, b := range broken {
		for i := range all {
			if all[i].Model == b.Model || b.Model == untyped && len(all) == 1 {
				all[i].Count = max(all[i].Count-b.Count, 0)
			}
		}
	}
	return all
}

// health reads a node's states: why its GPUs are no capacity (bad), or why it gets no grant for
// the moment (busy). A node that reboots by scontrol is DOWN (and DRAIN, with ASAP) until it is back. Where that takes too long, Slurm takes
// REBOOT_ISSUED away.
func health(states []string) (bad, busy string) {
	if slices.Contains(states, "REBOOT_ISSUED") {
		states = slices.DeleteFunc(slices.Clone(states), func(s string) bool { return s == "DOWN" || s == "DRAIN" })
	}
	comesUp := slices.ContainsFunc(states, func(s string) bool { return s == "POWERING_UP" || s == "POWER_UP" || s == "REBOOT_ISSUED" })
	// A node is silent on purpose while it powers down and afterwards, but not before (POWER_DOWN, REBOOT_REQUESTED).
	off := slices.Contains(states, "POWERING_DOWN") || slices.Contains(states, "POWERED_DOWN")
	for _, s := range states {
		switch s {
		case "DOWN", "ERROR", "UNKNOWN", "FUTURE", "FAIL":
			bad = cmp.Or(bad, strings.ToLower(s))
		case "DRAIN":
			bad = "drained"
		case "NOT_RESPONDING":
			switch {
			case comesUp: // Slurm sets it down where that takes too long
				busy = cmp.Or(busy, "powering up")
			case !off:
				bad = cmp.Or(bad, "not responding")
			}
		case "INVALID_REG":
			bad = cmp.Or(bad, "registered with another shape")
		case "MAINTENANCE":
			busy = "maintenance"
		case "COMPLETING": // Slurm starts nothing on a node with a completing job
			busy = cmp.Or(busy, "completing")
		case "REBOOT_REQUESTED", "REBOOT_ISSUED":
			busy = cmp.Or(busy, "reboot")
		case "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN":
			busy = cmp.Or(busy, "powering down")
		case "BLOCKED":
			busy = cmp.Or(busy, "blocked")
		}
	}
	return bad, busy
}

func readPartition(r *reader) cluster.Partition {
	var p cluster.Partition
	var nodes, none string // none: the limit that lets no job start
	members(r, func(name string) {
		switch name {
		case "name":
			p.Name = r.text()
		case "nodes":
			r.object(func(name string) {
				if name == "configured" {
					nodes = r.text()
				} else {
					r.skip()
				}
			})
		case "maximums":
			r.object(func(name string) {
				switch name {
				case "time":
					n := r.number()
					if p.MaxTime = limit(n); n.set && !n.infinite && n.n == 0 {
						none = cmp.Or(none, "MaxTime=0")
					}
				case "nodes":
					n := r.number()
					if p.Rules.MaxNodes = int(bounded(n.n, mostThings)); n.set && !n.infinite && n.n == 0 {
						none = "MaxNodes=0"
					}
				case "cpus_per_node":
					p.Rules.CPUsPerNode = r.count()
				default:
					r.skip()
				}
			})
		case "minimums":
			r.object(func(name string) {
				if name == "nodes" {
					p.Rules.MinNodes = r.count()
				} else {
					r.skip()
				}
			})
		case "accounts":
			p.Rules.AllowAccounts, p.Rules.DenyAccounts = readAllowed(r)
		case "groups":
			p.Rules.AllowGroups, _ = readAllowed(r)
		case "qos":
			r.object(func(name string) {
				switch name {
				case "allowed":
					p.Rules.AllowQOS = readNames(r)
				case "deny":
					p.Rules.DenyQOS = readNames(r)
				case "assigned":
					p.Rules.QOS = r.text()
				default:
					r.skip()
				}
			})
		case "partition":
			r.object(func(name string) {
				if name != "state" {
					r.skip()
					return
				}
				states := r.list()
				p.Up = slices.Contains(states, "UP")
				for _, s := range states {
					if s == "DOWN" || s == "INACTIVE" {
						p.Rules.Closed = s
					}
				}
			})
		case "flags":
			flags := r.list()
			p.Default = slices.Contains(flags, "DEFAULT")
			p.RootOnly = slices.Contains(flags, "ROOT_ONLY")
			p.Rules.NamedOnly = slices.Contains(flags, "REQUIRE_RESERVATION") || slices.Contains(flags, "REQ_RESV")
		default:
			r.skip()
		}
	}, true, "name")
	p.Rules.Closed = cmp.Or(p.Rules.Closed, none)
	p.Nodes = readable(nodes)
	switch {
	case r.junk != "" || r.err != nil:
	case p.Name == "":
		r.junk = "a partition without name"
	case nodes != "" && len(p.Nodes) == 0: // its nodes name it, too
		r.odd = cmp.Or(r.odd, "the nodes of partition "+p.Name+" make no sense ("+nodes+")")
	}
	return p
}

// readable expands a list of nodes, sorted, without the parts that make no sense.
func readable(list string) []string {
	all, err := hostlist.Expand(list)
	if err != nil {
		for _, part := range hostlist.Split(list, "[]") {
			some, _ := hostlist.Expand(part)
			all = append(all, some...)
		}
	}
	slices.Sort(all)
	return all
}

// readAllowed reads the lists of those who may use a partition, and of those who may not.
func readAllowed(r *reader) (allow, deny []string) {
	r.object(func(name string) {
		switch name {
		case "allowed":
			allow = readNames(r)
		case "deny":
			deny = readNames(r)
		default:
			r.skip()
		}
	})
	return allow, deny
}

// readNames reads a list of names, sorted, each once.
func readNames(r *reader) []string {
	var out []string
	for _, s := range r.list() {
		if s != "" && s != "ALL" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// forever stands for no end, in the year 4147: far ahead, but safe in computations.
const forever = cluster.Instant(lastSecond) * 1000

func readReservation(r *reader) cluster.Reservation {
	var v cluster.Reservation
	var nodes, tres string
	var cores int
	v.End = forever // default
	members(r, func(name string) {
		switch name {
		case "name":
			v.Name = r.text()
		case "node_list":
			nodes = r.text()
		case "accounts":
			v.Accounts = r.list()
		case "users":
			v.Users = r.list()
		case "licenses":
			v.Licenses = r.text()
		case "tres":
			tres = r.text()
		case "core_count":
			cores = r.count()
		case "core_specializations":
			v.Parts = readReservedCores(r)
		case "start_time":
			v.Start = instant(r.seconds())
		case "end_time":
			if s := r.seconds(); s > 0 {
				v.End = instant(s)
			}
		case "flags":
			v.Flags = r.list()
		default:
			r.skip()
		}
	}, true, "node_list") // one whose times are not known has begun, and does not end
	v.Nodes = readable(nodes)
	if v.Parts = reservedParts(v.Parts, parseTres(tres), cores); r.odd != "" {
		v.Parts = nil // the safe side: it keeps whole nodes
	}
	if v.Ours = strings.HasPrefix(v.Name, cluster.ReservationPrefix); v.Ours {
		v.Licenses = "" // those of gates are counted apart
	}
	switch {
	case r.err != nil:
	case r.junk != "" || nodes != "" && len(v.Nodes) == 0:
		r.junk = "the nodes of reservation " + v.Name + " make no sense (" + cmp.Or(r.junk, nodes) + "): jobs that are granted them do not start"
	case v.Name == "" && len(v.Nodes) == 0:
		r.junk = "a reservation without name and nodes"
	case v.Name == "":
		v.Name = "(unreadable)"
	}
	return v
}

// readReservedCores reads the cores that a reservation keeps on nodes, with their number as CPUs. Cores that make no sense are left
// out: then it keeps the whole node.
func readReservedCores(r *reader) []cluster.ReservedPart {
	var out []cluster.ReservedPart
	r.array(func() {
		var p cluster.ReservedPart
		var cores string
		r.object(func(name string) {
			switch name {
			case "node":
				p.Node = r.text()
			case "core":
				cores = r.text()
			default:
				r.skip()
			}
		})
		if _, n, err := numberRanges(cores, 0); err == nil && p.Node != "" {
			p.CPUs = bounded(n, mostThings)
			out = append(out, p)
		}
	})
	return out
}

// reservedParts gives the CPUs of reserved cores and the GPUs beside them, sorted: a core has as many CPUs as all reserved CPUs by all
// reserved cores, and each node at least one of the GPUs. Slurm reserves all cores of these GPUs' sockets, which may be all of a node.
func reservedParts(list []cluster.ReservedPart, all tres, cores int) []cluster.ReservedPart {
	if cores <= 0 || all.cpus < cores {
		return nil
	}
	for i := range list {
		list[i].CPUs = int(product(int64(list[i].CPUs), int64((all.cpus+cores-1)/cores), mostThings))
		if all.gpus > 0 {
			list[i].GPUs = max(all.gpus-len(list)+1, 1)
		}
	}
	byName(list, func(p cluster.ReservedPart) string { return p.Node })
	return list
}

// association is a line of slurmdbd's tree. Lines with a user are not accounts.
type association struct {
	cluster, account, parent, user, partition string
	shares                                    number
	caps                                      caps
}

func readAssociation(r *reader, unread unreadTRES) association {
	a := association{caps: caps{unread: unread}}
	members(r, func(name string) {
		switch name {
		case "cluster":
			a.cluster = r.text()
		case "account":
			a.account = r.text()
		case "parent_account":
			a.parent = r.text()
		case "user":
			a.user = r.text()
		case "partition":
			a.partition = r.text()
		case "shares_raw":
			a.shares = r.number()
		case "max":
			readLimits(r, &a.caps)
		default:
			r.skip()
		}
	}, true, "cluster", "account", "parent_account", "user", "partition", "shares_raw")
	return a
}

// readShare reads an association from slurmctld's tree of shares.
func readShare(r *reader) association {
	var a association
	var name string
	user := false
	r.object(func(field string) {
		switch field {
		case "cluster":
			a.cluster = r.text()
		case "name":
			name = r.text()
		case "parent":
			a.parent = r.text()
		case "partition":
			a.partition = r.text()
		case "shares":
			if a.shares = r.number(); !a.shares.set { // root
				a.shares.n = 1
			}
		case "type":
			r.array(func() { user = r.text() == "USER" || user })
		default:
			r.skip()
		}
	})
	if a.account = name; user {
		a.account, a.parent, a.user = a.parent, "", name
	}
	return a
}

// viaParent is slurmdbd's value for fairshare=parent.
const viaParent = math.MaxInt32

func (a association) translate() cluster.Account {
	out := cluster.Account{Name: a.account, Parent: a.parent, Shares: a.shares.n}
	if a.shares.n == viaParent {
		out.Shares, out.ViaParent = 0, true
	}
	return out
}
