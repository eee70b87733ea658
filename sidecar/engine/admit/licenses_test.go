package admit

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

const now = cluster.Instant(cluster.Hour)

// licensed makes the book of a site with licences and these cases. The first of them are granted.
func licensed(granted int, counts []cluster.LicenseCount, waiting ...*cluster.Job) *Book {
	s := &cluster.Snapshot{Now: now, Admission: cluster.Admit(nil, accounts, cluster.Limits{Licenses: counts})}
	x, leases := &round.Facts{Snapshot: s}, make([]*cluster.Lease, len(waiting))
	for i, j := range waiting {
		s.Cases = append(s.Cases, cluster.Case{Job: *j})
		x.Cases = append(x.Cases, round.Status{Live: true, Waits: true})
		if i < granted {
			leases[i] = &cluster.Lease{State: cluster.Granted}
		}
	}
	var b Book
	b.Open(now, s.Admission, nil)
	b.Count(x, leases, func(int) bool { return false })
	return &b
}

// asks makes a waiting job of one hour.
func asks(licenses string) *cluster.Job {
	j := job("nlp")
	j.State, j.Licenses = cluster.Waiting, licenses
	return j
}

func TestLicencesInUse(t *testing.T) {
	held := func(n int64, start, end cluster.Instant) []cluster.ReservedLicenses {
		return []cluster.ReservedLicenses{{Reservation: "lic", Count: n, Start: start, End: end}}
	}
	ever := cluster.Instant(10 * cluster.Day)
	for _, c := range []struct {
		name    string
		count   cluster.LicenseCount // of matlab; ansys has 1 of 10 free
		granted int                  // grants of two each
		request string
		why     string // "" = it may start
	}{
		{"free", cluster.LicenseCount{Total: 4, Used: 3}, 0, "matlab", ""},
		{"none free", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab", "licence matlab: 4 of 4 in use; your job asks for 1; an administrator can change their number (Licenses in slurm.conf)"},
		{"too few", cluster.LicenseCount{Total: 4, Used: 3}, 0, "matlab:2", "licence matlab: 3 of 4 in use; your job asks for 2; an"},
		{"none at all", cluster.LicenseCount{Used: 0}, 0, "matlab:1", "licence matlab: 0 of 0 in use; your job asks for 1; an"},
		{"granted", cluster.LicenseCount{Total: 4, Used: 1}, 1, "matlab:2", "licence matlab: 3 of 4 in use or granted; your job asks for 2; an"},
		{"another one is granted", cluster.LicenseCount{Total: 4}, 1, "matlab:2", ""},
		{"in use elsewhere", cluster.LicenseCount{Total: 5, Used: 1, Remote: true, Deficit: 4}, 0, "matlab:1",
			"licence matlab: 1 of 5 in use, 4 in use outside of Slurm; your job asks for 1; an administrator can change it (sacctmgr)"},
		{"reserved", cluster.LicenseCount{Total: 4, Used: 2, Reserved: held(2, 0, ever)}, 0, "matlab:1", "licence matlab: 2 of 4 in use, 2 reserved; your job asks for 1; an"},
		{"were reserved", cluster.LicenseCount{Total: 4, Used: 2, Reserved: held(2, 0, now)}, 0, "matlab:1", ""},
		{"reserved from the job's end on", cluster.LicenseCount{Total: 4, Used: 2, Reserved: held(2, now.Add(cluster.Hour), ever)}, 0, "matlab:1", ""},
		{"reserved before the job's end", cluster.LicenseCount{Total: 4, Used: 2, Reserved: held(2, now.Add(cluster.Hour-1), ever)}, 0, "matlab:1", "licence matlab: 2 of 4 in use, 2 reserved; your job asks for 1; an"},
		{"both", cluster.LicenseCount{Total: 4, Used: 3}, 0, "matlab:1,ansys:1", ""},
		{"one of two is missing", cluster.LicenseCount{Total: 4, Used: 3}, 0, "matlab:1,ansys:2", "licence ansys: 9 of 10 in use; your job asks for 2; an"},
		{"both are missing", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab:1,ansys:2", "licence matlab: 4 of 4 in use; licence ansys: 9 of 10 in use; your job asks for 1 and 2; an"},
		{"an alternative", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab|ansys", ""},
		{"no alternative", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab|ansys:2", "licence matlab: 4 of 4 in use; licence ansys: 9 of 10 in use; your job asks for matlab|ansys:2; an"},
		{"an unknown alternative", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab|other", ""},
		{"an unknown one besides", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab,other", "licence matlab: 4 of 4 in use; your job asks for 1; an"},
		{"of nodes", cluster.LicenseCount{Total: 4, Used: 4}, 0, "matlab(v1):1", ""},
	} {
		c.count.Name = "matlab"
		b := licensed(c.granted, []cluster.LicenseCount{{Name: "ansys", Total: 10, Used: 9}, c.count}, asks("matlab:2"), asks(c.request))
		for range 2 { // the second answer comes from the cache
			gate, why := b.Of(asks(c.request))
			if c.why == "" && why != "" || c.why != "" && (gate != nil || !strings.HasPrefix(why, c.why)) {
				t.Errorf("%s: %q, want %q", c.name, why, c.why)
			}
		}
		if free := b.Room(1) == lease.Now; free != (c.why == "") {
			t.Errorf("%s: there is room: %v", c.name, free)
		}
		if due := b.Wants(asks(c.request)); due != (c.why == "") {
			t.Errorf("%s: it is due: %v", c.name, due)
		}
		if short := asks(c.request); strings.HasSuffix(c.name, "before the job's end") {
			short.MinLimit = cluster.Hour - 1
			if _, why := b.Of(short); why != "" {
				t.Errorf("%s: it may end before: %q", c.name, why)
			}
		}
		running := asks(c.request)
		running.State = cluster.Running
		if _, why := b.Of(running); why != "" {
			t.Errorf("%s: a job that runs has its licences: %q", c.name, why)
		}
	}
}

// Licences taken in a round are no longer free, and as many jobs are due as licences are free.
func TestLicencesAreTakenOnce(t *testing.T) {
	list := []*cluster.Job{asks("matlab"), asks("matlab|ansys"), asks("matlab"), asks("matlab:1"), asks("ansys|matlab")}
	counts := func() []cluster.LicenseCount {
		return []cluster.LicenseCount{{Name: "ansys", Total: 10, Used: 9}, {Name: "matlab", Total: 4, Used: 2}}
	}
	b, taken, due := licensed(0, counts(), list...), 0, 0
	for i := range list {
		if b.Room(i) == lease.Now {
			taken++
			b.Take(i, true)
		}
	}
	b = licensed(0, counts(), list...)
	for i := range list {
		if b.Wants(list[i]) {
			due++
		}
	}
	if taken != 3 || due != 3 {
		t.Errorf("%d have room, %d are due; want 3, as many as are free", taken, due)
	}
}

// Licences cost a job nothing.
func TestLicencesCostNoMemory(t *testing.T) {
	b := licensed(0, []cluster.LicenseCount{{Name: "matlab", Total: 4, Used: 4}})
	j := asks("matlab:2")
	b.Of(j)
	if n := testing.AllocsPerRun(100, func() { b.Of(j); b.Wants(j) }); n > 0 {
		t.Errorf("a job that is like others costs %v allocations", n)
	}
}
