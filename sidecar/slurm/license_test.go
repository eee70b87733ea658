package slurm

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const siteLicenses = `{"licenses":[{"LicenseName":"fairlease","Total":1000000,"Used":3,"Free":999997,"Remote":false,"Reserved":1000000},` +
	`{"LicenseName":"matlab","Total":4,"Used":1,"Free":3,"Remote":false,"Reserved":2,"LastConsumed":0,"LastDeficit":0,"LastUpdate":0,"Nodes":""},` +
	`{"LicenseName":"ansys","Total":10,"Used":7,"Free":3,"Remote":false,"Reserved":0},` +
	`{"LicenseName":"cooling","Total":10,"Used":7,"Free":3,"Remote":false,"Reserved":0,"Nodes":"v1"},` +
	`{"LicenseName":"abaqus@flex","Total":5,"Used":1,"Free":0,"Remote":true,"Reserved":0,"LastConsumed":9,"LastDeficit":4,"LastUpdate":1795721644}],"errors":[]}`

// The counts of licences that waiting jobs ask for are read at every look, with what reservations keep of them, and no others.
func TestLicensesThatJobsAskFor(t *testing.T) {
	const read = "GET /slurm/v0.0.45/licenses/"
	f := newRecorded(t, 45)
	f.on("GET /slurm/v0.0.45/reservations/", text(`{"reservations":[{"name":"lic","licenses":"matlab:2","node_list":"","users":"bob","start_time":{"set":true,"number":1000000},"end_time":{"set":true,"number":1009000}},`+
		`{"name":"fairlease_gate","licenses":"fairlease:1000000","start_time":{"set":true,"number":1000000},"end_time":{"set":true,"number":1009000}}],"last_update":900,"errors":[]}`))
	f.on(read, text(siteLicenses))
	f.on("GET /slurm/v0.0.45/jobs/", jobs(1, waitingJob(1, ""), runningJob(2, `"licenses":"matlab:1"`), waitingJob(3, `"licenses":""`)))
	c := f.client()
	if s := f.see(c); len(s.Limits.Licenses) > 0 || f.count(read) > 0 {
		t.Errorf("no waiting job asks for a licence, %d requests: %+v", f.count(read), s.Limits.Licenses)
	}
	f.on("GET /slurm/v0.0.45/jobs/", jobs(2, waitingJob(1, `"licenses":"matlab:1,abaqus@flex:2"`), waitingJob(3, `"licenses":"cooling(v1):1"`)))
	s := f.see(c)
	want := []cluster.LicenseCount{{Name: "abaqus@flex", Total: 5, Used: 1, Remote: true, Deficit: 4},
		{Name: "matlab", Total: 4, Used: 1, Reserved: []cluster.ReservedLicenses{{Reservation: "lic", Count: 2, Start: instant(1000000), End: instant(1009000)}}}}
	if !reflect.DeepEqual(s.Limits.Licenses, want) || f.count(read) != 1 {
		t.Errorf("after %d requests: %+v", f.count(read), s.Limits.Licenses)
	}
	all := f.all()
	if k := len(all) - 1; all[k].what != read && all[k-1].what != read {
		t.Errorf("the licences were not read after the jobs: %+v", all[len(all)-4:])
	}
	f.on(read, text(strings.Replace(siteLicenses, `"ansys","Total":10,"Used":7`, `"ansys","Total":10,"Used":8`, 1)))
	if s := f.see(c); !s.Unchanged {
		t.Error("a licence that no job asks for counts as a change")
	}
	f.on(read, text(strings.Replace(siteLicenses, `"matlab","Total":4,"Used":1`, `"matlab","Total":4,"Used":0`, 1)))
	if s := f.see(c); s.Unchanged || s.Limits.Licenses[1].Used != 0 {
		t.Errorf("a licence is free: %+v", s.Limits.Licenses)
	}
	f.on("GET /slurm/v0.0.45/jobs/", jobs(3, waitingJob(1, "")))
	if s := f.see(c); len(s.Limits.Licenses) > 0 {
		t.Errorf("no job waits for a licence: %+v", s.Limits.Licenses)
	}
}

// The licence of gates is not among them, and both come from one request.
func TestTheLicenceOfGatesIsNoneOfTheSite(t *testing.T) {
	f := newRecorded(t, 45)
	f.on("GET /slurm/v0.0.45/licenses/", text(siteLicenses))
	f.on("GET /slurm/v0.0.45/jobs/", jobs(1, waitingJob(1, `"licenses":"ansys:1,fairlease:1"`)))
	s := f.see(f.client(func(c *Config) { c.License = "fairlease" }))
	if len(s.Limits.Licenses) != 1 || s.Limits.Licenses[0].Name != "ansys" || s.License.Reserved != 1000000 || f.count("GET /slurm/v0.0.45/licenses/") != 1 {
		t.Errorf("%+v, %+v", s.License, s.Limits.Licenses)
	}
}

// Where slurmrestd does not tell, the look goes on without.
func TestLicencesThatSlurmDoesNotTell(t *testing.T) {
	f := newRecorded(t, 45)
	f.on("GET /slurm/v0.0.45/licenses/", status(http.StatusForbidden, text(`{"errors":[{"error_number":2010,"error":"Access/permission denied"}]}`)))
	f.on("GET /slurm/v0.0.45/jobs/", jobs(1, waitingJob(1, `"licenses":"ansys:1"`)))
	c := f.client()
	if s := f.see(c); len(s.Limits.Licenses) > 0 || len(c.Notes()) != 1 || !strings.Contains(c.Notes()[0], "licences in use are not known") {
		t.Errorf("%+v, %q", s.Limits.Licenses, c.Notes())
	}
}
