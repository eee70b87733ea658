package doctor_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The doctor says what does not reach syslog, since when and why; and that the socket cannot be opened before anything waits.
func TestSyslog(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "log")
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for _, x := range []struct {
		place string
		state *store.SyslogState
		want  []string
	}{
		{"off", &store.SyslogState{Waiting: 3, Error: "no"}, nil},
		{"udp://192.0.2.1:514", nil, []string{"syslog ok udp://192.0.2.1:514 can be opened"}},
		{"udp://192.0.2.1:514", &store.SyslogState{Waiting: 3, Since: ago(time.Minute)}, []string{"syslog ok", "record ok 3 changes wait"}},
		{"udp://192.0.2.1:514", &store.SyslogState{Waiting: 3, Since: ago(time.Hour)}, []string{"syslog ok", "record warn 3 changes wait to go there, the oldest since 2030-01-31"}},
		{"unix:" + socket, &store.SyslogState{Waiting: 1, Since: ago(0), Error: "dial: no such file"}, []string{"syslog warn", "record warn 1 changes wait to go there, the oldest since 2030-01-31"}},
		{"unix:" + socket, &store.SyslogState{}, []string{"syslog warn", "record ok all changes went to syslog"}},
	} {
		cfg, err := config.Parse("f.yaml", []byte("audit: {syslog: '"+x.place+"'}\nfiles: {heartbeats: "+t.TempDir()+", state: "+socket+".json}\nslurm: {address: 'http://127.0.0.1:1'}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := doctor.Look(t.Context(), cfg, func() time.Time { return now })
		seen.Database.Syslog = x.state
		var got []string
		for _, f := range doctor.Check(cfg, seen) {
			if f.Area == "audit" {
				got = append(got, f.Check+" "+f.Level+" "+f.Found)
			}
		}
		if len(got) != len(x.want) {
			t.Fatalf("%s: %q, want %q", x.place, got, x.want)
		}
		for i := range got {
			if !strings.HasPrefix(got[i], x.want[i]) {
				t.Errorf("%s: %q, want %q", x.place, got[i], x.want[i])
			}
		}
	}
}
