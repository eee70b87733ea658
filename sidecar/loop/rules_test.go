package loop

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Every way in which a job is not under our control, with the reason in words.
func TestWhomWeMayTouch(t *testing.T) {
	for _, c := range []struct {
		name string
		job  func(*cluster.Job)
		rule func(*Rules)
		want cluster.Control
		why  string
	}{
		{"an ordinary batch job", nil, nil, cluster.FullControl, ""},
		{"--no-requeue: granted, never reclaimed", func(j *cluster.Job) { j.Requeueable = false }, nil, cluster.NoReclaim, "--no-requeue"},
		{"observe mode", nil, func(r *Rules) { r.Mode = Observe }, cluster.ObserveOnly, "mode observe"},
		{"no mode is observe", nil, func(r *Rules) { r.Mode = "" }, cluster.ObserveOnly, "recorded"},
		{"canary: another partition", nil, func(r *Rules) { r.Mode, r.Canary = Canary, []string{"test"} }, cluster.ObserveOnly, "mode canary"},
		{"canary: its partition", nil, func(r *Rules) { r.Mode, r.Canary = Canary, []string{"gpu"} }, cluster.FullControl, ""},
		{"canary: one of its partitions", func(j *cluster.Job) { j.Partitions = []string{"test", "gpu"} },
			func(r *Rules) { r.Mode, r.Canary = Canary, []string{"test"} }, cluster.FullControl, ""},
		{"canary: its account", nil, canaryOf(Chosen{Accounts: []string{"nlp"}}), cluster.FullControl, ""},
		{"canary: another account", nil, canaryOf(Chosen{Accounts: []string{"vision"}}), cluster.Unmanaged, "not among the jobs of mode canary"},
		{"canary: its user", nil, canaryOf(Chosen{Users: []string{"alice"}}), cluster.FullControl, ""},
		{"canary: another user", nil, canaryOf(Chosen{Users: []string{"bob"}}), cluster.Unmanaged, "not among the jobs of mode canary"},
		{"canary: the user, and another account", nil, canaryOf(Chosen{Users: []string{"alice"}, Accounts: []string{"vision"}}), cluster.Unmanaged, "not among the jobs of mode canary"},
		{"mode act asks for no canary", nil, func(r *Rules) { r.Chosen = Chosen{Users: []string{"bob"}} }, cluster.FullControl, ""},
		{"observe comes before no-requeue", func(j *cluster.Job) { j.Requeueable = false }, func(r *Rules) { r.Mode = Observe }, cluster.ObserveOnly, "mode observe"},
		{"no GPUs", func(j *cluster.Job) { j.Request.Size = cluster.Size{} }, nil, cluster.Unmanaged, "no GPUs"},
		{"a shard of a GPU is held, none asked for", func(j *cluster.Job) {
			j.Request.Size, j.Holds = cluster.Size{}, []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(1)}}
		}, nil, cluster.FullControl, ""},
		{"interactive", func(j *cluster.Job) { j.Batch = false }, nil, cluster.NoReclaim, "interactive"},
		{"heterogeneous", func(j *cluster.Job) { j.Het, j.Parts = 1, 2 }, nil, cluster.NoReclaim, "heterogeneous"},
		{"another component of it", func(j *cluster.Job) { j.Het = 1 }, nil, cluster.Unmanaged, "heterogeneous"},
		{"scrontab", func(j *cluster.Job) { j.Request.Unplaceable = cluster.Cron }, nil, cluster.Unmanaged, "scrontab"},
		{"parts of GPUs", func(j *cluster.Job) { j.Request.Unplaceable = cluster.PartsOfGPUs }, nil, cluster.Unmanaged, "parts of GPUs"},
		{"an account that is in no tree", func(j *cluster.Job) { j.Account = "unknown" }, nil, cluster.Unmanaged, `"unknown" belongs to no tenant`},
		{"another partition", func(j *cluster.Job) { j.Partitions = []string{"cpu"} }, nil, cluster.Unmanaged, "partition cpu"},
		{"a QOS that is not managed", func(j *cluster.Job) { j.QOS = "debug" }, func(r *Rules) { r.QOS = []string{"normal"} }, cluster.Unmanaged, "QOS debug"},
		{"an excluded account", nil, func(r *Rules) { r.ExcludeAccounts = []string{"nlp"} }, cluster.Unmanaged, "account nlp"},
		{"an excluded user", nil, func(r *Rules) { r.ExcludeUsers = []string{"alice"} }, cluster.Unmanaged, "user alice"},
		{"an excluded QOS", func(j *cluster.Job) { j.QOS = "debug" }, func(r *Rules) { r.ExcludeQOS = []string{"debug"} }, cluster.Unmanaged, "QOS debug"},
		{"a reservation of somebody's", func(j *cluster.Job) { j.Reservation = "course" }, nil, cluster.Unmanaged, "reservation course"},
		{"a reservation of ours", func(j *cluster.Job) { j.Reservation = cluster.ReservationPrefix + "7_1" }, nil, cluster.FullControl, ""},
		{"a request that we cannot place", func(j *cluster.Job) { j.Request.Unplaceable = "gpus-per-socket" }, nil, cluster.NoReclaim, "gpus-per-socket"},
		{"a constraint that we cannot place", func(j *cluster.Job) { j.Request.Features = "[rack1|rack2]" }, nil, cluster.NoReclaim, "[rack1|rack2]"},
		{"a constraint that we can", func(j *cluster.Job) { j.Request.Features = "ib&nvme|tape" }, nil, cluster.FullControl, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, r := batch(1), everything
			if c.job != nil {
				c.job(&j)
			}
			if c.rule != nil {
				c.rule(&r)
			}
			x := cluster.Case{Job: j, Record: cluster.Record{Tenant: growTree(sight(noon).Accounts, 1).tenant(j.Account)}}
			r.touch(&x, nil)
			if x.Control != c.want || !strings.Contains(x.ControlWhy, c.why) || (x.ControlWhy == "") != (c.why == "") {
				t.Errorf("%s (%s), want %s (%s)", x.Control, x.ControlWhy, c.want, c.why)
			}
		})
	}
}

func canaryOf(jobs Chosen) func(*Rules) {
	return func(r *Rules) { r.Mode, r.Canary, r.Chosen = Canary, []string{"gpu"}, jobs }
}

// An account stands for those below it, where it is a tenant.
func TestTenantsOfTheCanary(t *testing.T) {
	c := Chosen{Accounts: []string{"nlp"}}
	for tenant, want := range map[string]bool{"nlp": true, "vision": false, "": false} {
		if c.has(&cluster.Job{Account: "students"}, tenant) != want {
			t.Errorf("a job of an account below %q is selected: %v", tenant, !want)
		}
	}
}

// A part of the jobs is that part of any thousand consecutive ids, more with a higher percentage, and the same jobs again; an array goes together.
func TestPartOfTheJobs(t *testing.T) {
	for _, first := range []int64{1, 5000, 1_000_000, 1 << 40} {
		before := map[int64]bool{}
		for _, percent := range []int{1, 5, 33, 99} {
			c, now := Chosen{Percent: percent}, map[int64]bool{}
			for id := first; id < first+1000; id++ {
				j := cluster.Job{ID: cluster.JobID{ID: id}}
				if now[id] = c.has(&j, "nlp"); before[id] && !now[id] {
					t.Errorf("%d percent take job %d, and %d percent do not", percent-1, id, percent)
				}
				for _, also := range []cluster.Job{{ID: cluster.TaskID(id, 7), Restarts: 3}, {ID: cluster.JobID{ID: id + 1}, Het: id}} {
					if c.has(&also, "nlp") != now[id] {
						t.Errorf("job %d goes another way than %v", id, also.ID)
					}
				}
			}
			n := 0
			for _, in := range now {
				if in {
					n++
				}
			}
			if off := n - 10*percent; off < -10 || off > 10 {
				t.Errorf("%d percent of the jobs from %d on are %d of 1000", percent, first, n)
			}
			before = now
		}
	}
}

// The kind of reason why a job is left alone, and whether its tenant pays, by opt_out.
func TestWhoPaysForJobsThatAreLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		job  func(*cluster.Job)
		left cluster.Left
	}{
		{"an ordinary job", func(*cluster.Job) {}, ""},
		{"no GPUs", func(j *cluster.Job) { j.Request.Size = cluster.Size{} }, ""},
		{"salloc", func(j *cluster.Job) { j.Batch = false }, cluster.LeftOptOut},
		{"a heterogeneous job", func(j *cluster.Job) { j.Het, j.Parts = 1, 2 }, cluster.LeftOptOut},
		{"--contiguous", func(j *cluster.Job) { j.Request.Unplaceable = "contiguous nodes" }, cluster.LeftOptOut},
		{"--constraint with brackets", func(j *cluster.Job) { j.Request.Features = "[rack1|rack2]" }, cluster.LeftOptOut},
		{"salloc in a reservation", func(j *cluster.Job) { j.Batch, j.Reservation = false, "course" }, cluster.LeftReservation},
		{"salloc in a partition that is not managed", func(j *cluster.Job) { j.Batch, j.Partitions = false, []string{"cpu"} }, cluster.LeftExcluded},
		{"salloc of no tenant", func(j *cluster.Job) { j.Batch, j.Account = false, "unknown" }, cluster.LeftNoTenant},
		{"salloc that is set aside", func(j *cluster.Job) { j.Batch, j.Aside = false, "it cannot be read" }, cluster.LeftAside},
	} {
		for _, optOut := range []OptOut{"", Charge, LeaveAlone, Refuse} {
			r := everything
			r.OptOut = AllOut(optOut)
			x := cluster.Case{Job: batch(1)}
			c.job(&x.Job)
			x.Record.Tenant = growTree(sight(noon).Accounts, 1).tenant(x.Job.Account)
			x.Record.Uncharged = true // by the earlier setting
			r.touch(&x, nil)
			left, free := c.left, optOut == LeaveAlone && c.left == cluster.LeftOptOut
			if left == cluster.LeftOptOut && !free { // it waits for a lease
				left = ""
			}
			if x.Left != left || x.Record.Uncharged != free || strings.Contains(x.ControlWhy, "charged to nobody") != free {
				t.Errorf("%s, opt_out %q: left for %q (%s), uncharged %v; want %q, %v", c.name, optOut, x.Left, x.ControlWhy, x.Record.Uncharged, left, free)
			}
		}
	}
}

func TestActing(t *testing.T) {
	r := Rules{Mode: Observe, Partitions: []string{"gpu", "big"}, Canary: []string{"big"}}
	for mode, want := range map[Mode]string{Observe: "", "": "", Canary: "big", Act: "gpu big"} {
		r.Mode = mode
		if got := strings.Join(r.Acting(), " "); got != want {
			t.Errorf("mode %q acts on %q, want %q", mode, got, want)
		}
	}
}

// Every way out, with every word: who controls the job, and who pays.
func TestWaysOut(t *testing.T) {
	for way, job := range map[cluster.Way]func(*cluster.Job){
		cluster.WayNoRequeue:  func(j *cluster.Job) { j.Requeueable = false },
		cluster.WayContiguous: func(j *cluster.Job) { j.Request.Unplaceable = cluster.Contiguous },
		cluster.WaySession:    func(j *cluster.Job) { j.Batch, j.Requeueable = false, false },
		cluster.WayHet:        func(j *cluster.Job) { j.Het, j.Parts, j.Request.Unplaceable = 1, 2, cluster.Contiguous },
		cluster.WayOther:      func(j *cluster.Job) { j.Request.Unplaceable = "gpus-per-socket" },
		cluster.WayNoGPUs:     func(j *cluster.Job) { j.Request.Size = cluster.Size{} },
	} {
		for _, word := range []OptOut{"", Charge, LeaveAlone, Refuse, Override} {
			r := everything
			for w, at := range map[cluster.Way]*OptOut{cluster.WayNoRequeue: &r.OptOut.NoRequeue, cluster.WayContiguous: &r.OptOut.Contiguous, cluster.WaySession: &r.OptOut.Session,
				cluster.WayHet: &r.OptOut.Het, cluster.WayOther: &r.OptOut.Other, cluster.WayNoGPUs: &r.OptOut.NoGPUs} {
				if *at = LeaveAlone; word == LeaveAlone { // the words of other ways do not count
					*at = Charge
				}
				if w == cluster.WayNoRequeue {
					*at = Charge
				}
				if w == way {
					*at = word
				}
			}
			x := cluster.Case{Job: batch(1)}
			job(&x.Job)
			x.Record.Tenant = growTree(sight(noon).Accounts, 1).tenant(x.Job.Account)
			r.touch(&x, nil)
			want, control := way, cluster.Unmanaged
			switch {
			case (way == cluster.WayNoRequeue || way == cluster.WayContiguous) && word == Override:
				want, control = "", cluster.FullControl
			case way != cluster.WayNoGPUs && word != LeaveAlone:
				control = cluster.NoReclaim
			}
			if x.Way != want || x.Control != control || x.Record.Uncharged != (word == LeaveAlone) {
				t.Errorf("%s, %q: way %q, control %s (%s), uncharged %v", way, word, x.Way, x.Control, x.ControlWhy, x.Record.Uncharged)
			}
			if scatters := way == cluster.WayContiguous && word == Override; x.Scatters() != scatters {
				t.Errorf("%s, %q: its grant takes --contiguous away: %v", way, word, x.Scatters())
			}
		}
	}
}

func TestOneWordForAllWays(t *testing.T) {
	for _, word := range []OptOut{Charge, LeaveAlone, Refuse} {
		all := AllOut(word)
		for _, way := range []cluster.Way{"", cluster.WayNoRequeue, cluster.WayContiguous, cluster.WaySession, cluster.WayHet, cluster.WayOther, cluster.WayNoGPUs, cluster.WayExpedite} {
			want := word
			if way == "" || way == cluster.WayNoRequeue || way == cluster.WayNoGPUs || way == cluster.WayExpedite {
				want = Charge
			}
			if got := all.Of(way); got != want {
				t.Errorf("%s for all: %q has %s, want %s", word, way, got, want)
			}
		}
	}
}
