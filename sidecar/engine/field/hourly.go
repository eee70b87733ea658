package field

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// Hourly counts the GPUs whose jobs are stopped within an hour, against the limits of the settings. The first stops of an hour are within
// them however many GPUs they take, so that a gang of any size has its turn. Stops for the jobs of one tenant take at most half of the
// site's limit. It implements lease.Stops.
type Hourly struct {
	f       *Field
	most    cluster.MicroGPU            // of the site; < 0 = no limit
	site    cluster.MicroGPU            // GPUs that count
	owners  map[owner]*quota            // of tenants and users that have a limit
	favours map[string]cluster.MicroGPU // GPUs that count, by the tenant of the job that gets them; nil = there are no limits
	counted []bool                      // by case
	shut    bool                        // stops wait for room for a gang that is next
	held    []bool                      // by pool: leases go on only because no more may be stopped
	first   cluster.Instant             // when there is more room; 0 = not known
}

// owner is a tenant, or one of its users.
type owner struct{ tenant, user string }

// quota is how many GPUs may be taken from the jobs of one owner, and how many were.
type quota struct{ most, used cluster.MicroGPU }

// room reports whether so many more GPUs may be taken.
func (q *quota) room(gpus cluster.MicroGPU) bool { return q.used == 0 || q.used+gpus <= q.most }

// open counts the jobs that were stopped, and those that have their notice.
func (h *Hourly) open(f *Field) {
	rule := &f.In.Settings.StopsPerHour
	if *h = (Hourly{f: f, counted: h.counted, held: h.held}); rule.None() {
		return
	}
	h.held = slices.Grow(h.held[:0], len(f.In.Pools))[:len(f.In.Pools)]
	clear(h.held)
	gpus := cluster.GPUCount(0)
	for p := range f.In.Ledger.Pools {
		gpus += f.In.Ledger.Pools[p].GPUs
	}
	h.most, h.favours = -1, map[string]cluster.MicroGPU{}
	if percent := rule.Percent(f.In.Snapshot.Shadow, gpus); percent > 0 {
		h.most = cluster.MicroGPU(percent) * cluster.MicroGPU(gpus) / 100
	}
	h.counted = slices.Grow(h.counted[:0], len(f.In.Cases))[:len(f.In.Cases)]
	clear(h.counted)
	if rule.Tenant > 0 || rule.User > 0 {
		h.owners = quotas(f, rule)
	}
	for k := range f.In.Snapshot.Stops {
		s := &f.In.Snapshot.Stops[k]
		if s.At > 0 && f.In.Now.Sub(s.At) >= cluster.Hour {
			continue
		}
		if i := f.In.Find(s.Job); s.At == 0 && i >= 0 {
			h.counted[i] = true
		}
		if s.At > 0 && (h.first == 0 || s.At.Add(cluster.Hour) < h.first) {
			h.first = s.At.Add(cluster.Hour)
		}
		h.count(s.Tenant, s.User, cluster.MicroGPU(s.GPUs), s.For)
	}
}

// quotas returns those of tenants and users, by the GPUs that their jobs hold.
func quotas(f *Field, rule *cluster.StopsPerHour) map[owner]*quota {
	held, out := map[owner]cluster.MicroGPU{}, map[owner]*quota{}
	for i := range f.In.Cases {
		if st, r := &f.In.Cases[i], &f.In.Records[i]; st.Live && st.Held > 0 {
			gpus := cluster.MicroGPU(f.In.Settings.CountHeld(f.In.Snapshot.Cases[i].Job.Holds))
			held[owner{r.Tenant, ""}] += gpus
			held[owner{r.Tenant, r.User}] += gpus
		}
	}
	for o, gpus := range held {
		percent := rule.User
		if o.user == "" {
			percent = rule.Tenant
		}
		if percent > 0 {
			out[o] = &quota{most: gpus * cluster.MicroGPU(percent) / 100}
		}
	}
	return out
}

// each calls f with each quota that a tenant's user has a part in.
func (h *Hourly) each(tenant, user string, f func(*quota)) {
	for _, o := range [...]owner{{tenant, ""}, {tenant, user}} {
		if q := h.owners[o]; q != nil {
			f(q)
		}
	}
}

// count counts GPUs of a job that is stopped for a tenant's; "" = for nobody's.
func (h *Hourly) count(tenant, user string, gpus cluster.MicroGPU, favour string) {
	h.site += gpus
	if favour != "" {
		h.favours[favour] += gpus
	}
	h.each(tenant, user, func(q *quota) { q.used += gpus })
}

// limited reports whether there are limits.
func (h *Hourly) limited() bool { return h.favours != nil }

// Spent reports whether as many GPUs of the owner of a lease have been stopped as may be: it goes on for another term.
func (h *Hourly) Spent(i int) bool {
	if !h.limited() || h.counted[i] || h.f.Hand.Leases[i] == nil {
		return false
	}
	spent := false
	r := &h.f.In.Records[i]
	h.each(r.Tenant, r.User, func(q *quota) { spent = spent || !q.room(h.f.Hand.Leases[i].Size.Amount()) })
	return spent
}

// hold notes that a case's lease goes on only because no more may be stopped.
func (h *Hourly) hold(i int) {
	if p := slices.Index(h.f.In.Pools, h.f.Hand.Leases[i].Pool); p >= 0 {
		h.held[p] = true
	}
}

// May implements lease.Stops. If a job has to wait for room at the site, nothing else is stopped meanwhile: smaller jobs would take the room again and
// again.
func (h *Hourly) May(who int, leases []int) bool {
	may := h.may(who, leases)
	for _, i := range leases {
		if !may && h.f.Hand.Leases[i] != nil {
			h.hold(i)
		}
	}
	return may
}

func (h *Hourly) may(who int, leases []int) bool {
	fresh, fits := cluster.MicroGPU(0), true
	if !h.limited() {
		return true
	}
	sums := map[*quota]cluster.MicroGPU{}
	for _, i := range leases {
		if l := h.f.Hand.Leases[i]; l != nil && !h.counted[i] {
			fresh += l.Size.Amount()
			h.each(h.f.In.Records[i].Tenant, h.f.In.Records[i].User, func(q *quota) { sums[q] += l.Size.Amount() })
		}
	}
	if fresh == 0 {
		return true
	}
	for q, gpus := range sums {
		fits = fits && q.room(gpus)
	}
	if h.most < 0 || !fits {
		return fits
	}
	if all := (quota{h.most, h.site}); h.shut || !all.room(fresh) {
		h.shut = true
		return false
	}
	favour := quota{h.most / 2, h.favours[h.nameOf(who)]}
	return who < 0 || len(h.f.In.Tenants) < 2 || favour.room(fresh)
}

// nameOf returns the tenant of a case; "" = there is none.
func (h *Hourly) nameOf(i int) string {
	if i < 0 {
		return ""
	}
	return h.f.In.Records[i].Tenant
}

// Count implements lease.Stops.
func (h *Hourly) Count(who int, leases []int) {
	if !h.limited() {
		return
	}
	for _, i := range leases {
		if l := h.f.Hand.Leases[i]; l != nil && !h.counted[i] {
			h.counted[i] = true
			h.count(h.f.In.Records[i].Tenant, h.f.In.Records[i].User, l.Size.Amount(), h.nameOf(who))
		}
	}
}

// Shut implements lease.Stops.
func (h *Hourly) Shut() bool { return h.shut }

// Held implements lease.Stops.
func (h *Hourly) Held(pool int) bool { return h.limited() && h.held[pool] }

// Until implements lease.Stops.
func (h *Hourly) Until() cluster.Instant { return h.first }

var _ lease.Stops = (*Hourly)(nil)

// Stopped returns the jobs that were stopped within the hour or are about to be, and what would have been stopped of observed jobs. getter
// returns the job that gets the GPUs of a case's lease; 0 = unknown.
func Stopped(f *Field, getter func(i int) cluster.JobKey) ([]cluster.Stopped, cluster.Shadow) {
	var out []cluster.Stopped
	was := map[cluster.JobKey]*cluster.Stopped{} // with their notice
	for k := range f.In.Snapshot.Stops {
		if s := &f.In.Snapshot.Stops[k]; s.At == 0 {
			was[s.Job] = s
		} else if f.In.Now.Sub(s.At) < cluster.Hour {
			out = append(out, *s)
		}
	}
	shadow, observed := f.In.Snapshot.Shadow, cluster.GPUCount(0)
	for i, l := range f.Hand.Leases {
		if l == nil || l.State != cluster.Noticed && l.State != cluster.Ending {
			continue
		}
		if f.In.Cases[i].Control != cluster.FullControl {
			if l.State == cluster.Ending {
				observed += l.Size.Count()
			}
			continue
		}
		if before := f.Found.Leases[i]; before != nil && before.State == cluster.Ending { // stopped in an earlier round
			continue
		}
		r := &f.In.Records[i]
		s := cluster.Stopped{Job: r.Key, Tenant: r.Tenant, User: r.User, GPUs: l.Size.Count()}
		if to := f.In.Find(getter(i)); to >= 0 {
			s.For = f.In.Records[to].Tenant
		} else if known := was[r.Key]; known != nil {
			s.For = known.For
		}
		if l.State == cluster.Ending {
			s.At = f.In.Now
		}
		out = append(out, s)
	}
	if f.In.Any(cluster.ObserveOnly) && f.In.Snapshot.Ledger.At > 0 {
		shadow.Add(max(f.In.Now.Sub(f.In.Snapshot.Ledger.At), 0), observed)
	}
	slices.SortStableFunc(out, func(a, b cluster.Stopped) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.At, b.At)) })
	return out, shadow
}
