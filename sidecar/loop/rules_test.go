package loop

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// "Whom we may touch": every way in which a job is not ours, with the
// words that say so.
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
			tenant := growTree(sight(noon).Accounts, 1).tenant(j.Account)
			touch, why := r.touch(&j, tenant)
			if touch != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%s (%s), want %s (%s)", touch, why, c.want, c.why)
			}
		})
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
