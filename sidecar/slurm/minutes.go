package slurm

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Limits on minutes need the minutes that were used, which only scontrol tells.

// enforcesSafe tells whether Slurm starts only jobs whose whole time limit is left of limits on minutes.
func enforcesSafe(conf map[string]string) bool {
	for word := range strings.SplitSeq(strings.ToLower(conf[ConfEnforce]), ",") {
		if word = strings.TrimSpace(word); word == "safe" || word == "all" {
			return true
		}
	}
	return false
}

// lookMinutes fills in the minutes of limits that are set. Where they are not known the limits are left out: jobs that wait for
// them are found by grants that do not start.
func (c accounting) lookMinutes(ctx context.Context, limits *cluster.Limits) {
	limits.Safe = c.seen.safe
	var accounts, qos []string
	for i := range limits.Associations {
		if a := &limits.Associations[i]; slices.ContainsFunc(a.Caps, cluster.Cap.Minutes) && !slices.Contains(accounts, a.Account) {
			accounts = append(accounts, a.Account)
		}
	}
	for i := range limits.QOS {
		if q := &limits.QOS[i]; slices.ContainsFunc(q.Caps, cluster.Cap.Minutes) {
			qos = append(qos, q.Name)
		}
	}
	if len(accounts)+len(qos) == 0 {
		return
	}
	args, flags := []string{"show", "assoc_mgr"}, []string{}
	if len(accounts) > 0 {
		args, flags = append(args, "accounts="+strings.Join(accounts, ",")), append(flags, "assoc")
	}
	if len(qos) > 0 {
		args, flags = append(args, "qos="+strings.Join(qos, ",")), append(flags, "qos")
	}
	out, err := c.scontrol(ctx, append(args, "flags="+strings.Join(flags, ","))...)
	if err != nil {
		c.notes.add("the minutes used of limits could not be read: jobs that wait for them are found by grants that do not start: %v", err)
	}
	used := usedMinutes(out, c.seen.cluster)
	limits.Associations, limits.QOS = slices.Clone(limits.Associations), slices.Clone(limits.QOS)
	for i := range limits.Associations {
		a := &limits.Associations[i]
		a.Caps = used.fill(a.Caps, minutesOf{account: a.Account, user: a.User, partition: a.Partition}, &a.Unread)
	}
	for i := range limits.QOS {
		q := &limits.QOS[i]
		q.Caps = used.fill(q.Caps, minutesOf{qos: q.Name}, &q.Unread)
	}
}

// minutesOf names an association or a QOS.
type minutesOf struct{ account, user, partition, qos string }

// minutesBook is the minutes of all rules and resources of associations and QOS. Names of lines are those of scontrol.
type minutesBook map[minutesOf]map[string]int64

// fill gives limits with the minutes that were used, and those that running jobs may still use. Those without go to the digest of
// limits that are not read.
func (b minutesBook) fill(list []cluster.Cap, of minutesOf, unread *uint64) []cluster.Cap {
	if !slices.ContainsFunc(list, cluster.Cap.Minutes) {
		return list
	}
	book, known := b[of]
	var out []cluster.Cap
	var lacks caps
	for _, c := range list {
		switch {
		case !c.Minutes():
		case !known:
			lacks.digest(c.String(), nil)
			continue
		case c.Rule == cluster.GrpWall:
			c.Used = book["GrpWall"]
		default:
			c.Used, c.Promised = book["GrpTRESMins="+c.TRES], book["GrpTRESRunMins="+c.TRES]
		}
		out = append(out, c)
	}
	*unread ^= lacks.others
	return out
}

// usedMinutes reads the answer of scontrol show assoc_mgr: records that begin with a line of the association's or QOS's name, and
// have "GrpWall=500(1.08)" and "GrpTRESMins=cpu=N(1),gres/gpu=10(2)". The number in parentheses is used; N = there is no limit.
func usedMinutes(text, ours string) minutesBook {
	book := minutesBook{}
	var now map[string]int64
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "ClusterName="):
			of, named := minutesOf{}, ""
			for word := range strings.FieldsSeq(line) {
				key, value, _ := strings.Cut(word, "=")
				switch key {
				case "ClusterName":
					named = value
				case "Account":
					of.account = value
				case "UserName":
					of.user, _, _ = strings.Cut(value, "(")
				case "Partition":
					of.partition = value
				}
			}
			if now = nil; of.account != "" && (named == ours || ours == "") {
				now = map[string]int64{}
				book[of] = now
			}
		case strings.HasPrefix(line, "QOS="):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "QOS="), "(")
			if now = nil; name != "" {
				now = map[string]int64{}
				book[minutesOf{qos: name}] = now
			}
		case strings.HasSuffix(line, " Limits"): // of the users and accounts of a QOS
			now = nil
		case now != nil:
			usedOf(line, now)
		}
	}
	return book
}

// usedOf reads the used minutes of one line.
func usedOf(line string, into map[string]int64) {
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "GrpWall":
			into[key] = inParentheses(value)
		case "GrpTRESMins", "GrpTRESRunMins":
			for item := range strings.SplitSeq(value, ",") {
				if name, count, ok := strings.Cut(item, "="); ok {
					into[key+"="+name] = inParentheses(count)
				}
			}
		}
	}
}

// inParentheses reads the number in "10(2.5)", rounded down as slurmctld does; 0 = there is none.
func inParentheses(s string) int64 {
	_, s, _ = strings.Cut(s, "(")
	s, _, _ = strings.Cut(s, ")")
	s, _, _ = strings.Cut(s, ".")
	n, _ := strconv.ParseInt(s, 10, 64) // too many digits give the maximum
	return bounded(n, mostMemory)
}
