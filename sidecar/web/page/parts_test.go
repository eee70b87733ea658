package page

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

func TestWordsByHand(t *testing.T) {
	for _, c := range [][2]string{
		{count(1234567), "1,234,567"}, {count(-1234), "-1,234"}, {count(-123), "-123"},
		{count(999), "999"}, {gpus(12), "12"}, {gpus(12.34), "12.3"}, {gpus(0.04), "0"}, {gpus(1234.5), "1,235"}, {hours(99.96), "100"}, {hours(-123.4), "-123"}, {hours(0.0123), "0.012"}, {hours(2.34), "2.3"}, {hours(0), "0"},
		{ranges([]int{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8"}, {ranges(nil), ""},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

// Leases of a node get free GPUs, from the first one on, and never one of another lease at that time; a job stays where it was.
// The times at the axis are round ones after clocks were changed, too.
func TestTicksWhenClocksChange(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[time.Time][]string{
		time.Date(2026, 3, 28, 22, 0, 0, 0, zone):  {"03-29 00:00", "04:00", "08:00", "12:00", "16:00", "20:00"},
		time.Date(2026, 3, 29, 0, 30, 0, 0, zone):  {"04:00", "08:00", "12:00", "16:00", "20:00", "03-30 00:00"},
		time.Date(2026, 10, 24, 21, 0, 0, 0, zone): {"10-25 00:00", "04:00", "08:00", "12:00", "16:00"},
	} {
		l := &leases{From: from, To: from.Add(24 * time.Hour)}
		var texts []string
		for _, tick := range l.ticks(zone) {
			texts = append(texts, tick.Text)
		}
		if !slices.Equal(texts, want) {
			t.Errorf("from %s the axis has %q, want %q", from, texts, want)
		}
	}
}

func TestLanesByHand(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	l := lane{GPUs: 4, Spans: []span{{from: at(0), to: at(10), gpus: 2}, {from: at(0), to: at(5), gpus: 1}, {from: at(5), to: at(9), gpus: 2}, {from: at(6), to: at(8), gpus: 9}, {from: at(10), to: at(20), gpus: 4},
		{from: at(20), to: at(30), gpus: 2}, {from: at(20), to: at(30), gpus: 1, Job: "7"}, {from: at(30), to: at(40), gpus: 1, Job: "7"}}}
	l.place()
	var got []int
	for i := range l.Spans {
		got = append(got, l.Spans[i].slot, l.Spans[i].gpus)
	}
	// The fourth has more GPUs than there are: it covers others.
	if want := []int{0, 2, 2, 1, 2, 2, 0, 4, 0, 4, 0, 2, 2, 1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("slots and GPUs %v, want %v", got, want)
	}
}

// GPUs have the jobs that Slurm names, and other jobs the first free ones of their model; cells have owners.
func TestSlotsByHand(t *testing.T) {
	job := func(id string, gpus int, index ...int) scene.Holder {
		return scene.Holder{JobInCell: view.JobInCell{ID: id, Tenant: "t", GPUs: cluster.CountOf(gpus), Right: cluster.Shared}, Model: "a", Index: index}
	}
	s := &scene.Scene{Nodes: []scene.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "a", Count: 4}}, Drained: []int{4}, Jobs: []scene.Holder{job("7", 1, 2), job("8", 2), job("9", 5)}},
		{Name: "n2", GPUs: []cluster.GPUs{{Model: "a", Count: 1}}, Bad: "down"}},
		Cells: &view.Cells{Cluster: []view.Cell{{Name: "rack", Cells: []view.Cell{{Name: "n1", Uses: []view.Use{{GPUs: []int{0, 1, 77}, VC: "vc"}}}}}}}}
	got := ""
	for _, x := range slotsOf(s)["n1"] {
		got += fmt.Sprintf("%s/%s/%s ", x.Job, x.VC, x.Use())
	}
	if want := "8/vc/shared 8/vc/shared 7//shared 9//shared //drained "; got != want {
		t.Errorf("slots %s, want %s", got, want)
	}
	all := placesOf(s)
	if len(all) != 2 || all[0].Name != "rack" || all[0].Busy != cluster.CountOf(4) || all[0].Bad != 1 || all[1].Name != "n2" || all[1].Bad != 1 {
		t.Errorf("places %+v", all)
	}
}

// Steps without a row are like the ones before, pools add up, and the tenant that lacks most comes first.
func TestSharesByHand(t *testing.T) {
	since := time.Unix(0, 0)
	row := func(tenant, pool string, minute int, has, due float64) store.Share {
		return store.Share{Tenant: tenant, Pool: pool, At: since.Add(time.Duration(minute) * time.Minute), Holds: has, Due: due}
	}
	lines := tenantLines([]store.Share{row("a", "k80", 0, 1, 1), row("a", "k80", 2, 3, 1), row("a", "v100", 1, 10, 10), row("b", "k80", 0, 0, 4)}, since, since.Add(3*time.Minute), time.Minute)
	if len(lines) != 2 || lines[0].name != "b" || !slices.Equal(lines[1].has, []float64{1, 11, 13, 13}) || !slices.Equal(lines[1].due, []float64{1, 11, 11, 11}) {
		t.Errorf("lines %+v", lines)
	}
}

// A tenant's pools are summed, its rho is that of the worst pool that it wants, and those furthest behind come first.
func TestTenantsByHand(t *testing.T) {
	whole := cluster.WholeGPU
	rows := tenantRows([]store.Tenant{
		{Tenant: "a", Pool: "k80", Holds: cluster.CountOf(2), Entitlement: 4 * whole, Demand: 8 * whole, Rho: 900_000, Waiting: 3, Behind: store.BehindOf(2 * cluster.Hour)},
		{Tenant: "a", Pool: "v100", Holds: cluster.CountOf(1), Entitlement: 1 * whole, Rho: 100_000, Waiting: 2, Behind: store.BehindOf(-2 * cluster.Hour)},
		{Tenant: "b", Pool: "k80", Holds: cluster.CountOf(1), Behind: store.BehindOf(cluster.Minute), Owed: 3_600_000}})
	a, b := &rows[0], &rows[1]
	if len(rows) != 2 || b.Name != "b" || b.HasRho || b.Owed.Hours() != 1 || a.Has != cluster.CountOf(3) || a.Due != 5 || a.Wants != 8 || a.Rho != 900_000 || a.Behind != 2*cluster.Hour || a.Level() != Warn || b.Level() != Good {
		t.Errorf("rows %+v", rows)
	}
	got := colours([]store.Tenant{{Tenant: "x", Weight: 1}, {Tenant: "y", Weight: 5}, {Tenant: "x", Weight: 2}}, "")
	if got["y"] != 0 || got["x"] != 1 {
		t.Errorf("colours %v", got)
	}
}

// As many tenants as there are colours have one of their own, the largest; all others are grey, and last. One in focus has the only colour.
func TestColoursOfTenants(t *testing.T) {
	var tenants []store.Tenant
	for i := range 60 {
		tenants = append(tenants, store.Tenant{Tenant: fmt.Sprintf("t%02d", i), Pool: "a", Weight: int64(1 + i/59)})
	}
	v := &visit{colour: colours(tenants, "")}
	seen := map[int]int{}
	for name := range v.colour {
		seen[v.hue(name)]++
	}
	if len(seen) != chart.Hues || seen[grey] != 60-(chart.Hues-1) || v.hue("t59") != 0 || v.hue("t00") != 1 || v.hue("nobody") != grey {
		t.Errorf("tenants by colour: %v", seen)
	}
	keys := v.tenantKeys()
	if last := keys[len(keys)-1]; len(keys) != chart.Hues || last.Name != "41 other tenants" || last.Class != "k7" || keys[0].Name != "t59" {
		t.Errorf("%+v", keys)
	}
	v.colour = colours(tenants, "t58") // which has no colour of its own
	if keys = v.tenantKeys(); len(keys) != 2 || keys[0] != (legendKey{"k0", "t58"}) || keys[1].Name != "59 other tenants" {
		t.Errorf("%+v", keys)
	}
	if v.colour = colours(tenants, "t03"); v.hue("t03") != 4 || v.hue("t59") != grey {
		t.Errorf("t03 has colour %d, t59 %d", v.hue("t03"), v.hue("t59"))
	}
	if v.colour = colours(tenants[:8], "eve"); v.hue("t07") != grey+1 {
		t.Errorf("the eighth tenant has colour %d", v.hue("t07"))
	}
}

// Averages cover the time since the history of the journal begins, and not the time before.
func TestAveragesBeginWithTheJournal(t *testing.T) {
	since := time.Date(2027, 1, 15, 0, 0, 0, 0, time.UTC)
	until, step := since.Add(10*time.Hour), time.Hour
	var shares []store.Share
	for h := 6; h < 10; h++ { // the journal begins at six
		shares = append(shares, store.Share{Tenant: "nlp", Pool: "v100", At: since.Add(time.Duration(h) * time.Hour), Holds: 8, Due: 4})
	}
	lines := tenantLines(shares, since, until, step)
	if len(lines) != 1 || lines[0].meanHas != 8 || lines[0].meanDue != 4 {
		t.Errorf("%+v", lines)
	}
}

// Jobs that share a GPU have a part of it each, in numbers and on the map, where they lie one below the other.
func TestSharedGPUs(t *testing.T) {
	job := func(id, tenant string, gpus cluster.GPUCount, index ...int) scene.Holder {
		return scene.Holder{JobInCell: view.JobInCell{ID: id, Tenant: tenant, GPUs: gpus, Right: cluster.Shared}, Model: "a", Index: index}
	}
	s := &scene.Scene{Nodes: []scene.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "a", Count: 4}}, Jobs: []scene.Holder{
		job("1", "t", 500_000, 2), job("2", "u", 125_000, 2), job("3", "u", 500_000), job("4", "t", cluster.CountOf(1)), job("5", "t", 500_000)}}}}
	got := ""
	for _, x := range slotsOf(s)["n1"] {
		for u := range x.uses {
			got += u.Job + " " + u.PartOf() + ","
		}
		got += ";"
	}
	if want := "5 0.5 of a GPU,3 0.5 of a GPU,;4 ,;2 0.125 of a GPU,1 0.5 of a GPU,;;"; got != want {
		t.Errorf("GPUs are used by %s, want %s", got, want)
	}
	all := placesOf(s)
	if len(all) != 1 || all[0].Busy != 2_625_000 {
		t.Fatalf("%+v", all)
	}
	row := all[0].rows()[0]
	if row.GPUs != 4 || row.Busy != 2_625_000 || row.Tenants != "t 2, u 0.625" || row.Rights != "shared 2.625" {
		t.Errorf("%+v", row)
	}
	v := &visit{Scene: s}
	drawn := map[string]string{}
	for _, x := range v.tile(&all[0], "right").Shapes {
		drawn[x.Class] = x.D
	}
	if want := "M0 0h9v4.5h-9zM0 4.5h9v4.5h-9zM0 11h9v9h-9zM0 22h9v1.125h-9zM0 23.125h9v4.5h-9z"; drawn["k2"] != want || drawn["free"] != "M0 27.625h9v3.375h-9zM0 33h9v9h-9z" {
		t.Errorf("the map draws %v", drawn)
	}
	if text, err := anyCount(cluster.GPUCount(1234_500_000)); err != nil || text != "1,234.5" {
		t.Errorf("%s, %v", text, err)
	}
}
