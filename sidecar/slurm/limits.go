package slurm

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Limits of associations and QOS come from slurmdbd, in the same form from both API ages. Their use is counted from
// the jobs.

// EnforcesLimits tells whether Slurm, with that configuration, holds jobs to limits at all (AccountingStorageEnforce).
func EnforcesLimits(conf map[string]string) bool {
	for word := range strings.SplitSeq(strings.ToLower(conf[ConfEnforce]), ",") {
		switch strings.TrimSpace(word) {
		case "limits", "safe", "all":
			return true
		}
	}
	return false
}

// unreadTRES are resources whose limits are not read.
type unreadTRES map[string]bool

// lookQOS reads the QOS: those with limits or flags, and which QOS each of them preempts.
func (c accounting) lookQOS(ctx context.Context, unread unreadTRES) ([]cluster.QOS, []cluster.PreemptingQOS, error) {
	var limited []cluster.QOS
	var all []cluster.PreemptingQOS
	_, err := c.list(ctx, c.dbPath("qos/"), "qos", 0, func(r *reader) error {
		q, preempts := readQOS(r, unread)
		if r.junk != "" || q.Name == "" {
			return nil
		}
		all = append(all, cluster.PreemptingQOS{Name: q.Name, Preempts: preempts})
		if len(q.Caps)+len(q.Flags) > 0 || q.Unread != 0 {
			limited = append(limited, q)
		}
		return nil
	}, func() { limited, all = nil, nil })
	byName(limited, func(q cluster.QOS) string { return q.Name })
	byName(all, func(q cluster.PreemptingQOS) string { return q.Name })
	return limited, all, err
}

// noteUnread says which limits are not read.
func (c accounting) noteUnread(unread unreadTRES) {
	if len(unread) == 0 {
		return
	}
	names := make([]string, 0, len(unread))
	for name := range unread {
		names = append(names, name)
	}
	slices.Sort(names)
	c.notes.add("limits on %s are not read: jobs that wait for them are found by grants that do not start", strings.Join(names, ", "))
}

// caps collects limits.
type caps struct {
	list   []cluster.Cap
	unread unreadTRES
	others uint64 // digest of limits that are not in list
}

// other adds a limit to the digest: a number above 0, or resources. An unlimited number is 0 in the API.
func (c *caps) other(r *reader, path string) {
	switch kind := r.kind(); kind {
	case '0', '[':
		if v := r.raw(); kind == '0' && strings.Trim(string(v), "0.") != "" || kind == '[' && strings.Trim(string(v), "[] \t\r\n") != "" {
			c.digest(path, v)
		}
	default:
		r.skip()
	}
}

func (c *caps) digest(path string, value []byte) {
	h := fnv.New64a()
	h.Write([]byte(path))
	h.Write(value)
	c.others ^= h.Sum64()
}

// number adds a limit on a number.
func (c *caps) number(r *reader, rule string) {
	if n := r.number(); n.set && !n.infinite && n.n >= 0 {
		c.list = append(c.list, cluster.Cap{Rule: rule, Max: min(n.n, mostMemory)})
	}
}

// tres adds limits on resources.
func (c *caps) tres(r *reader, rule string) {
	r.array(func() {
		var kind, name string
		count := number{}
		r.object(func(field string) {
			switch field {
			case "type":
				kind = r.text()
			case "name":
				name = r.text()
			case "count":
				count = r.number()
			default:
				r.skip()
			}
		})
		if name != "" {
			kind += "/" + name
		}
		switch {
		case !count.set || count.infinite || count.n < 0 || kind == "":
		case kind == "cpu", kind == "mem", kind == "node", kind == "gres/gpu", strings.HasPrefix(kind, "gres/gpu:"):
			c.list = append(c.list, cluster.Cap{Rule: rule, TRES: kind, Max: min(count.n, mostMemory)})
		case c.unread != nil:
			c.unread[rule+"="+kind] = true
			c.digest(rule+"="+kind, strconv.AppendInt(nil, count.n, 10))
		}
	})
}

// sorted gives the limits in order, each once.
func (c *caps) sorted() []cluster.Cap {
	slices.SortFunc(c.list, func(a, b cluster.Cap) int { return a.Compare(b) })
	return slices.Compact(c.list)
}

// readPath walks into nested objects: f is called with the names down to a value, as "tres/per/job", and reads it if it returns
// true. Other values below "max" count as unread limits.
func readPath(r *reader, at string, c *caps, f func(path string) bool) {
	r.object(func(name string) {
		here := at + name
		switch {
		case f(here):
		case r.kind() == '{':
			readPath(r, here+"/", c, f)
		case strings.HasPrefix(here, "max/"):
			c.other(r, here)
		default:
			r.skip()
		}
	})
}

// ruled is how a limit is read, and the rule that it sets.
type ruled struct {
	read func(*caps, *reader, string)
	rule string
}

// Limits of an association and of a QOS, by path.
var (
	ofAssociation = map[string]ruled{
		"max/jobs/per/count":         {(*caps).number, cluster.GrpJobs},
		"max/jobs/active":            {(*caps).number, cluster.MaxJobs},
		"max/jobs/per/wall_clock":    {(*caps).number, cluster.MaxWall},
		"max/tres/total":             {(*caps).tres, cluster.GrpTRES},
		"max/tres/per/job":           {(*caps).tres, cluster.MaxTRESPerJob},
		"max/tres/per/node":          {(*caps).tres, cluster.MaxTRESPerNode},
		"max/tres/group/minutes":     {(*caps).tres, cluster.GrpTRESMins},
		"max/tres/minutes/per/job":   {(*caps).tres, cluster.MaxTRESMins},
		"max/per/account/wall_clock": {(*caps).number, cluster.GrpWall},
	}
	ofQOS = map[string]ruled{
		"max/active_jobs/count":            {(*caps).number, cluster.GrpJobs},
		"max/jobs/active_jobs/per/user":    {(*caps).number, cluster.MaxJobsPerUser},
		"max/jobs/active_jobs/per/account": {(*caps).number, cluster.MaxJobsPerAccount},
		"max/wall_clock/per/job":           {(*caps).number, cluster.MaxWall},
		"max/tres/total":                   {(*caps).tres, cluster.GrpTRES},
		"max/tres/per/user":                {(*caps).tres, cluster.MaxTRESPerUser},
		"max/tres/per/account":             {(*caps).tres, cluster.MaxTRESPerAccount},
		"max/tres/per/job":                 {(*caps).tres, cluster.MaxTRESPerJob},
		"max/tres/per/node":                {(*caps).tres, cluster.MaxTRESPerNode},
		"max/tres/minutes/total":           {(*caps).tres, cluster.GrpTRESMins},
		"max/tres/minutes/per/job":         {(*caps).tres, cluster.MaxTRESMins},
		"max/wall_clock/per/qos":           {(*caps).number, cluster.GrpWall},
		"min/tres/per/job":                 {(*caps).tres, cluster.MinTRESPerJob},
	}
)

// read reads the limit at a path; false = there is none.
func (c *caps) read(r *reader, of map[string]ruled, path string) bool {
	l, ok := of[path]
	if ok {
		l.read(c, r, l.rule)
	}
	return ok
}

// readLimits reads "max" of an association; a user's has what it inherits.
func readLimits(r *reader, c *caps) {
	readPath(r, "max/", c, func(path string) bool { return c.read(r, ofAssociation, path) })
}

// readQOS reads a QOS with its limits, and the names of the QOS that it preempts.
func readQOS(r *reader, unread unreadTRES) (q cluster.QOS, preempts []string) {
	c := caps{unread: unread}
	members(r, func(name string) {
		switch name {
		case "name":
			q.Name = r.text()
		case "flags":
			for _, f := range readNames(r) {
				if f == cluster.OverPartQOS || f == cluster.PartitionMaxNodes || f == cluster.PartitionMinNodes || f == cluster.PartitionTimeLimit || f == cluster.RequiresReservation {
					q.Flags = append(q.Flags, f)
				}
			}
		case "preempt":
			r.object(func(name string) {
				if name == "list" {
					preempts = readNames(r)
				} else {
					r.skip()
				}
			})
		case "limits":
			readPath(r, "", &c, func(path string) bool { return c.read(r, ofQOS, path) })
		default:
			r.skip()
		}
	}, true, "name")
	q.Caps, q.Unread = c.sorted(), c.others
	return q, preempts
}

// use is what a running job that concerns no GPU node uses of limits.
func use(w *wireJob) *cluster.Use {
	got := parseTres(w.got)
	partition := ""
	if len(w.partition) > 0 {
		partition = w.partition[0]
	}
	return &cluster.Use{Account: w.account, User: w.user, QOS: w.qos, Partition: partition, Jobs: 1,
		CPUs: int64(got.cpus), MemoryMB: got.memoryMB, Nodes: int64(max(got.nodes, w.nodeCount))}
}

// others sums what jobs that concern no GPU node use, sorted.
func (s *seen) others() []cluster.Use {
	sums := map[cluster.Use]*cluster.Use{}
	var out []*cluster.Use
	for _, rec := range s.records {
		if rec.use == nil || len(rec.jobs) > 0 {
			continue
		}
		of := cluster.Use{Account: rec.use.Account, User: rec.use.User, QOS: rec.use.QOS, Partition: rec.use.Partition}
		sum := sums[of]
		if sum == nil {
			sum = &of
			sums[of] = sum
			out = append(out, sum)
		}
		sum.Jobs += rec.use.Jobs
		sum.CPUs += rec.use.CPUs
		sum.MemoryMB += rec.use.MemoryMB
		sum.Nodes += rec.use.Nodes
	}
	slices.SortFunc(out, func(a, b *cluster.Use) int { return a.Compare(b) })
	var list []cluster.Use
	for _, u := range out {
		list = append(list, *u)
	}
	return list
}
