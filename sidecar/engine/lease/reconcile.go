package lease

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Workspace holds the leases of a round. The next round reuses its memory.
type Workspace struct {
	leases []cluster.Lease
	of     []int // the case of each
	byCase []*cluster.Lease
	fates  []fate
	record cluster.Record // of the case that is looked at
	fails  []round.Failure
	// begun and last are by case, now and in the last round: the start of a job that runs under its lease. Until the job changes, nothing
	// about the lease does. 0 = another one; noGPUs = a job without a lease that needs none.
	begun, last []cluster.Instant
}

const noGPUs cluster.Instant = -1

// Reconcile compares the leases with the snapshot. A granted lease whose job runs becomes active; one whose nodes are configured
// holds them, and has no timeout. A lease
// ends if its job finished, was requeued by others or did not start. A job that runs without a lease gets
// one. Reconcile returns every case's lease, or nil, the leases that ended, and what it found out about grants that failed, which the
// records by case do not have. All is valid until room is used again.
func Reconcile(s *cluster.Snapshot, records []cluster.Record, room *Workspace) (byCase []*cluster.Lease, ended []cluster.Lease, failures []round.Failure) {
	leases := slices.Grow(room.leases[:0], len(s.Leases)+8)
	of := slices.Grow(room.of[:0], len(s.Leases)+8)
	fates, failures := room.fates[:0], room.fails[:0]
	r := &room.record
	begun, last := slices.Grow(room.last[:0], len(s.Cases))[:len(s.Cases)], room.begun
	clear(begun)
	k := 0
	for i := range s.Cases {
		c, key := &s.Cases[i], records[i].Key
		for k < len(s.Leases) && s.Leases[k].Job < key {
			ended = append(ended, end(s.Leases[k], s.Now, "lost")) // its job is forgotten
			k++
		}
		leased := k < len(s.Leases) && s.Leases[k].Job == key
		if before := s.Before(i); before >= 0 {
			switch at := last[before]; {
			case leased && at > 0 && goesOn(&s.Leases[k], at) && records[i].SlurmSaid != cluster.RequeuedAtStart:
				l := &s.Leases[k]
				leases, of, begun[i] = append(leases, *l), append(of, i), at
				if first := at.Add(firstMinute(s)); first > s.Ledger.At && first <= s.Now {
					fates = append(fates, fate{i, lasted, l.Nodes})
				}
				k++
				continue
			case !leased && at == noGPUs:
				begun[i] = at
				continue
			}
		}
		again := !c.Gone && c.Job.Restarts > c.Record.Restarts
		starts := !c.Gone && c.Control != cluster.Unmanaged && c.Job.Started() && c.Job.GPUsHeld() > 0
		if !leased && !again && !starts {
			begun[i] = noGPUs
			continue
		}
		*r = records[i]
		var l *cluster.Lease
		if leased {
			l = &s.Leases[k]
			k++
		}
		if again {
			others(c, r, l, s)
		}
		stays := false
		if leased {
			leases, of = append(leases, *l), append(of, i)
			now := &leases[len(leases)-1]
			see(now, c, r, s)
			fates = append(fates, fatesOf(l, now, c, r, i, s)...)
			if stays = now.Job != 0 && now.State != cluster.Over; !stays {
				if now.State == cluster.Over {
					ended = append(ended, *now)
				}
				leases, of = leases[:len(leases)-1], of[:len(of)-1]
			} else if c.Job.State == cluster.Running && goesOn(now, c.Job.Start) {
				begun[i] = c.Job.Start
			}
		}
		switch {
		case stays:
		case starts:
			leases, of = append(leases, adopt(c, r, s)), append(of, i)
		case !leased:
			begun[i] = noGPUs
		}
		if now, was := round.TroubleOf(r), round.TroubleOf(&records[i]); !now.Same(&was) {
			failures = append(failures, round.Failure{Case: i, Trouble: now})
		}
	}
	takeTurns(leases, of, s)
	byCase = slices.Grow(room.byCase[:0], len(s.Cases))[:len(s.Cases)]
	clear(byCase)
	room.leases, room.of, room.byCase, room.fates, room.fails, room.begun, room.last = leases, of, byCase, fates, failures, begun, last
	for k, i := range of {
		byCase[i] = &leases[k]
	}
	for ; k < len(s.Leases); k++ {
		ended = append(ended, end(s.Leases[k], s.Now, "lost"))
	}
	return byCase, ended, failures
}

// fatesOf returns what became of a grant, by a case's lease at the last look and now. It notes a start that failed in the record.
func fatesOf(was, now *cluster.Lease, c *cluster.Case, r *cluster.Record, i int, s *cluster.Snapshot) (out []fate) {
	switch over := now.State == cluster.Over; {
	case over && brief(was, c, r, s):
		out = append(out, fate{i, requeued, now.Nodes})
		fail(r, cluster.RequeuedAtStart, now, s)
	case was.State == cluster.Granted && c.Record.State != cluster.Configuring && began(now, &c.Job):
		out = append(out, fate{i, started, now.Nodes})
	case over && r.Failed > c.Record.Failed:
		out = append(out, fate{i, unstarted, now.Nodes})
	}
	if lasts(now, c, s) {
		out = append(out, fate{i, lasted, now.Nodes})
	}
	return out
}

// goesOn reports whether a lease is that of a running job's present attempt, which began at a moment.
func goesOn(l *cluster.Lease, begun cluster.Instant) bool {
	return l.State == cluster.Active && (l.Start == 0 || begun <= max(l.Start, l.Granted))
}

// began reports whether the job of a granted lease has begun, or its nodes are configured.
func began(l *cluster.Lease, j *cluster.Job) bool {
	return l.State == cluster.Active || l.State == cluster.Granted && j.State == cluster.Configuring || j.State == cluster.Done && j.Start > 0 && j.End > j.Start
}

// see updates one lease to the present state of its job.
func see(l *cluster.Lease, c *cluster.Case, r *cluster.Record, s *cluster.Snapshot) {
	j := &c.Job
	switch {
	case c.Gone:
		*l = end(*l, s.Now, "lost")
	case c.Control == cluster.Unmanaged:
		*l = end(*l, s.Now, "let go")
	case j.State == cluster.Done:
		*l = end(*l, max(min(j.End, s.Now), min(l.Start, l.Granted)), "finished") // maybe before it began
	case l.State == cluster.Granted && j.Restarts > c.Record.Restarts && (!j.Started() || c.Record.State == cluster.Configuring):
		*l = end(*l, s.Now, "requeued by others") // it had started
	case l.State == cluster.Granted:
		*l = seeGranted(*l, c, r, s)
	case j.Started():
		if j.Start > l.Start && l.Start > 0 && j.Start > l.Granted { // requeued and already running again
			switch {
			case l.State == cluster.Ending && !r.RequeuedByOthers():
				*l = end(*l, s.Now, cmp.Or(l.Why, "reclaimed"))
				return
			case r.Basis != nil && r.Basis.Forced && !l.Adopted, j.State == cluster.Configuring:
				*l = end(*l, s.Now, "requeued by others")
				return
			}
		}
		if j.State == cluster.Configuring && l.State == cluster.Active {
			l.State, l.Start = cluster.Granted, 0
		}
		l.Nodes, l.Size = j.Holds, s.Settings.Counted(r.Slice.Has(j.Holds))
		if r.SlurmSaid == cluster.RequeuedAtStart && s.Now >= Lasts(l, j, s) {
			r.Failed, r.AvoidUntil, r.AvoidNodes, r.SlurmSaid = 0, 0, nil, ""
		}
	case j.State == cluster.Completing:
	case (l.State == cluster.Ending || l.State == cluster.Noticed) && !r.RequeuedByOthers(): // some frameworks requeue themselves at the notice
		if s.Settings.StopAllowance == 0 && s.Settings.StopOverheadMilli == 0 { // else only stops of ours cost its budget
			r.Lost += lost(l, s.Now, l.NoticedAt)
			r.MostLost += lost(l, s.Now, max(c.Record.Saved, min(l.Start, cmp.Or(c.Record.HeldSince, l.Start))))
		}
		*l = end(*l, s.Now, cmp.Or(l.Why, "reclaimed"))
	default:
		*l = end(*l, s.Now, "requeued by others")
	}
}

// lost returns the GPU time of a reclaimed lease since a moment; 0 = since its start.
func lost(l *cluster.Lease, now, since cluster.Instant) cluster.GPUTime {
	if since == 0 {
		since = l.Start
	}
	return l.Size.Over(max(min(now, l.End).Sub(since), 0))
}

func seeGranted(l cluster.Lease, c *cluster.Case, r *cluster.Record, s *cluster.Snapshot) cluster.Lease {
	j := &c.Job
	switch j.State {
	case cluster.Running, cluster.Suspended, cluster.Configuring:
		l.Nodes, l.Size, l.Pool = j.Holds, s.Settings.Counted(r.Slice.Has(j.Holds)), cmp.Or(poolOf(j.Holds), l.Pool) // Slurm chose the nodes of a loose request
		if j.State != cluster.Configuring {
			l.State, l.Start = cluster.Active, j.Start
		}
		if r.SlurmSaid != cluster.RequeuedAtStart { // that ends with a start that lasts
			r.Failed, r.AvoidUntil, r.AvoidNodes, r.SlurmSaid = 0, 0, nil, ""
		}
		if r.Basis != nil && r.Basis.Forced { // it holds more than its turn was for, and stays only if its turn comes for all of it
			l.Adopted, l.End = true, s.Now
		}
		return l
	case cluster.Waiting:
		if j.Inactive != "" {
			r.SlurmSaid = j.PendingReason
			return end(l, s.Now, "taken back: "+j.Inactive)
		}
		l.Size = s.Settings.Counted(l.Nodes) // the worth of a device may have changed
		late := s.Now.Sub(l.Granted) >= s.Settings.GrantTimeout
		if l.Behind != 0 || !late && !stuck(j, l.Granted, s) {
			return l
		}
		if away := s.Now.Sub(s.Ledger.At); away >= s.Settings.GrantTimeout && away > 2*s.Settings.Interval {
			return end(l, s.Now, "taken back: nobody was there to see it start") // nor to carry it out, perhaps
		}
		if of, ok := scopeOf(j); ok && of.lasting { // the class waits, see Learn
			r.Failed++
			r.SlurmSaid, r.AvoidUntil, r.AvoidNodes = j.PendingReason, 0, nil
			return end(l, s.Now, fmt.Sprintf("taken back: Slurm does not start it (%s)", j.PendingReason))
		}
		fail(r, j.PendingReason, &l, s)
		return end(l, s.Now, fmt.Sprintf("taken back: not started within %s (%s)", s.Settings.GrantTimeout.Exact(), j.PendingReason))
	}
	return l
}

// fail notes a failed grant of a job, and keeps the job from grants for a while, and from these nodes.
func fail(r *cluster.Record, why string, l *cluster.Lease, s *cluster.Snapshot) {
	r.Failed++
	r.SlurmSaid, r.AvoidUntil, r.AvoidNodes = why, s.Now.Add(backOff(r.Failed, s.Settings.GrantTimeout)), nil
	for _, h := range l.Nodes {
		r.AvoidNodes = append(r.AvoidNodes, h.Node)
	}
}

// backOff returns a time that doubles with every failure in a row, from the timeout to an hour.
func backOff(failed int, timeout cluster.Span) cluster.Span {
	return min(timeout<<min(failed-1, 10), max(cluster.Hour, timeout))
}

// MayDisplace returns the time from which leases of other jobs may be ended for a job; 0 = always. One failed
// grant may be the fault of the nodes. After a second in a row, the job displaces no others for a term beyond
// its back-off. That time doubles with every failure, up to a day. The job may have idle GPUs sooner.
func MayDisplace(r *cluster.Record, term cluster.Span) cluster.Instant {
	if r.Failed < 2 || r.AvoidUntil == 0 {
		return 0
	}
	return r.AvoidUntil.Add(min(term<<min(r.Failed-2, 10), max(cluster.Day, term)))
}

// adopt returns a lease for a job that runs without one. The job ran before the sidecar did, or Slurm started
// it when its gate expired.
func adopt(c *cluster.Case, r *cluster.Record, s *cluster.Snapshot) cluster.Lease {
	j := &c.Job
	r.Terms++
	end := Next(s.Now, &s.Settings)
	if r.Basis != nil && r.Basis.Forced {
		end = s.Now // its turn has not come: it may stay only if it comes now
	}
	state, start := cluster.Active, j.Start
	if j.State == cluster.Configuring {
		state, start = cluster.Granted, 0
	}
	return cluster.Lease{
		Job: r.Key, Term: r.Terms, State: state, Class: cluster.Shared, Pool: poolOf(j.Holds),
		Size: s.Settings.Counted(r.Slice.Has(j.Holds)), Nodes: j.Holds, Granted: s.Now, Start: start, End: end, Adopted: true,
	}
}

// poolOf returns the model of most of the GPUs. Grants have one model only, but a job that Slurm started may
// hold several.
func poolOf(holds []cluster.Holding) string {
	pool, most := "", 0
	for _, h := range holds {
		if h.Size.Devices > most || h.Size.Devices == most && h.Model < pool {
			pool, most = h.Model, h.Size.Devices
		}
	}
	return pool
}

func end(l cluster.Lease, at cluster.Instant, why string) cluster.Lease {
	l.State, l.Ended, l.Why = cluster.Over, at, why
	return l
}
