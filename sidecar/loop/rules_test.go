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
		want cluster.Touch
		why  string
	}{
		{"an ordinary batch job", nil, nil, cluster.Act, ""},
		{"--no-requeue: granted, never reclaimed", func(j *cluster.Job) { j.Requeueable = false }, nil, cluster.Keep, "--no-requeue"},
		{"observe mode", nil, func(r *Rules) { r.Mode = Observe }, cluster.Watch, "mode observe"},
		{"no mode is observe", nil, func(r *Rules) { r.Mode = "" }, cluster.Watch, "recorded"},
		{"canary: another partition", nil, func(r *Rules) { r.Mode, r.Canary = Canary, []string{"test"} }, cluster.Watch, "mode canary"},
		{"canary: its partition", nil, func(r *Rules) { r.Mode, r.Canary = Canary, []string{"gpu"} }, cluster.Act, ""},
		{"canary: one of its partitions", func(j *cluster.Job) { j.Partitions = []string{"test", "gpu"} },
			func(r *Rules) { r.Mode, r.Canary = Canary, []string{"test"} }, cluster.Act, ""},
		{"observe comes before no-requeue", func(j *cluster.Job) { j.Requeueable = false }, func(r *Rules) { r.Mode = Observe }, cluster.Watch, "mode observe"},
		{"no GPUs", func(j *cluster.Job) { j.Request.GPUs = 0 }, nil, cluster.Leave, "no GPUs"},
		{"a shard of a GPU is held, none asked for", func(j *cluster.Job) {
			j.Request.GPUs, j.Holds = 0, []cluster.Holding{{Node: "n1", Model: "v100", GPUs: 1}}
		}, nil, cluster.Act, ""},
		{"interactive", func(j *cluster.Job) { j.Batch = false }, nil, cluster.Leave, "interactive"},
		{"heterogeneous", func(j *cluster.Job) { j.Het = true }, nil, cluster.Leave, "heterogeneous"},
		{"an account that is in no tree", func(j *cluster.Job) { j.Account = "unknown" }, nil, cluster.Leave, `"unknown" belongs to no tenant`},
		{"another partition", func(j *cluster.Job) { j.Partitions = []string{"cpu"} }, nil, cluster.Leave, "partition cpu"},
		{"a QOS that is not managed", func(j *cluster.Job) { j.QOS = "debug" }, func(r *Rules) { r.QOS = []string{"normal"} }, cluster.Leave, "QOS debug"},
		{"an excluded account", nil, func(r *Rules) { r.ExcludeAccounts = []string{"nlp"} }, cluster.Leave, "account nlp"},
		{"an excluded user", nil, func(r *Rules) { r.ExcludeUsers = []string{"alice"} }, cluster.Leave, "user alice"},
		{"an excluded QOS", func(j *cluster.Job) { j.QOS = "debug" }, func(r *Rules) { r.ExcludeQOS = []string{"debug"} }, cluster.Leave, "QOS debug"},
		{"a reservation of somebody's", func(j *cluster.Job) { j.Reservation = "course" }, nil, cluster.Leave, "reservation course"},
		{"a reservation of ours", func(j *cluster.Job) { j.Reservation = cluster.ReservationPrefix + "7_1" }, nil, cluster.Act, ""},
		{"a request that we cannot place", func(j *cluster.Job) { j.Request.Unplaceable = "gpus-per-socket" }, nil, cluster.Leave, "gpus-per-socket"},
		{"a constraint that we cannot place", func(j *cluster.Job) { j.Request.Features = "[rack1|rack2]" }, nil, cluster.Leave, "[rack1|rack2]"},
		{"a constraint that we can", func(j *cluster.Job) { j.Request.Features = "ib&nvme|tape" }, nil, cluster.Act, ""},
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
			r.touch(&x)
			if x.Touch != c.want || !strings.Contains(x.TouchWhy, c.why) || (x.TouchWhy == "") != (c.why == "") {
				t.Errorf("%s (%s), want %s (%s)", x.Touch, x.TouchWhy, c.want, c.why)
			}
		})
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
		{"no GPUs", func(j *cluster.Job) { j.Request.GPUs = 0 }, ""},
		{"salloc", func(j *cluster.Job) { j.Batch = false }, cluster.LeftOptOut},
		{"a heterogeneous job", func(j *cluster.Job) { j.Het = true }, cluster.LeftOptOut},
		{"--contiguous", func(j *cluster.Job) { j.Request.Unplaceable = "contiguous nodes" }, cluster.LeftOptOut},
		{"--constraint with brackets", func(j *cluster.Job) { j.Request.Features = "[rack1|rack2]" }, cluster.LeftOptOut},
		{"salloc in a reservation", func(j *cluster.Job) { j.Batch, j.Reservation = false, "course" }, cluster.LeftReservation},
		{"salloc in a partition that is not managed", func(j *cluster.Job) { j.Batch, j.Partitions = false, []string{"cpu"} }, cluster.LeftExcluded},
		{"salloc of no tenant", func(j *cluster.Job) { j.Batch, j.Account = false, "unknown" }, cluster.LeftNoTenant},
		{"salloc that is set aside", func(j *cluster.Job) { j.Batch, j.Aside = false, "it cannot be read" }, cluster.LeftAside},
	} {
		for _, optOut := range []OptOut{"", Charge, LeaveAlone, Refuse} {
			r := everything
			r.OptOut = optOut
			x := cluster.Case{Job: batch(1)}
			c.job(&x.Job)
			x.Record.Tenant = growTree(sight(noon).Accounts, 1).tenant(x.Job.Account)
			x.Record.Uncharged = true // by the earlier setting
			r.touch(&x)
			free := optOut == LeaveAlone && c.left == cluster.LeftOptOut
			if x.Left != c.left || x.Record.Uncharged != free || strings.Contains(x.TouchWhy, "charged to nobody") != free {
				t.Errorf("%s, opt_out %q: left for %q (%s), uncharged %v; want %q, %v", c.name, optOut, x.Left, x.TouchWhy, x.Record.Uncharged, c.left, free)
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
