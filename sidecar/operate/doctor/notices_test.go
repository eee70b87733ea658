package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Notices that were given up, or wait, are a warning with their newest error.
func TestNoticesThatWereNotSent(t *testing.T) {
	for _, x := range []struct {
		kinds  string
		counts store.NoticeCounts
		want   string
	}{
		{"[]", store.NoticeCounts{Dead: 3}, ""},
		{"[stop]", store.NoticeCounts{}, "outbox ok 0 were given up within a week, and 0 wait although they were tried or overdue"},
		{"[stop]", store.NoticeCounts{Dead: 3, Waiting: 2, Error: "550 no such mailbox"}, "outbox warn 3 were given up within a week, and 2 wait although they were tried or overdue; the newest error: 550 no such mailbox"},
	} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte("notices: {kinds: "+x.kinds+", mail: {server: 'localhost:25', from: a@example.org, to: '{user}@example.org'}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range doctor.Check(cfg, &doctor.Seen{Database: doctor.Database{Notices: x.counts}}) {
			if f.Area == "notices" {
				got = append(got, f.Check+" "+f.Level+" "+f.Found)
			}
		}
		if strings.Join(got, "\n") != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}
