package telemetry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A save comes with its duration; one of fewer steps than the newest, or from the future, is refused.
func TestSavesThatCannotBe(t *testing.T) {
	b, now, post := asking(t)
	report := func(steps int, more string) (int, string) {
		*now = now.Add(20 * time.Second)
		w := post("/v1/progress", fmt.Sprintf(`alice {"job":"1","steps":%d%s}`, steps, more))
		return w.Code, w.Body.String()
	}
	for _, x := range []struct {
		steps int
		more  string
		code  int
	}{{100, `,"saved":true,"took":30`, 202}, {100, `,"saved":true,"took":20`, 202}, {140, "", 202}, {90, `,"saved":true`, 409}, {80, "", 202}, {200, `,"saved":true,"took":9`, 202}} {
		if code, text := report(x.steps, x.more); code != x.code || code == 409 && !strings.Contains(text, "a save after 90 steps follows one after 100") {
			t.Errorf("%d steps%s: %d %s, want %d", x.steps, x.more, code, text, x.code)
		}
	}
	report(210, "") // does not hide the save
	reports, _ := b.Take()
	if len(reports) != 1 || reports[0].Steps != 210 || reports[0].Took != 9*cluster.Second || reports[0].Saved != cluster.InstantOf(now.Add(-20*time.Second)) {
		t.Errorf("reports %+v", reports)
	}

	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "alice"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := &Spool{Folder: dir}
	at := time.UnixMilli(1_700_000_000_000)
	leave := func(text string, written, read time.Duration) (reports []cluster.Progress, said string) {
		t.Helper()
		path := filepath.Join(dir, "alice", "7.json")
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path+".new", at.Add(written), at.Add(written)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		reports, wrong := d.Read([]Holder{{Job: cluster.JobID{ID: 7}, User: "alice", UID: uint32(os.Getuid())}}, cluster.InstantOf(at.Add(read)))
		return reports, fmt.Sprint(wrong)
	}
	for k, x := range []struct {
		text          string
		written, read time.Duration
		want          string
	}{
		{`{"steps":100,"saved":true,"took":30}`, 0, time.Second, "[]"},
		{`{"steps":90,"saved":true}`, time.Minute, 2 * time.Minute, "a save after 90 steps follows one after 100"},
		{`{"steps":120,"saved":true}`, time.Hour, 3 * time.Minute, "is from the future, 57 min ahead; is the node's clock right?"},
		{`{"steps":120}`, time.Hour, 4 * time.Minute, "[]"},
		{`{"steps":120,"saved":true}`, 5*time.Minute + 30*time.Second, 5 * time.Minute, "[]"}, // clocks may differ a little
	} {
		reports, said := leave(x.text, x.written, x.read)
		if !strings.Contains(said, x.want) || (x.want == "[]") != (len(reports) == 1) || len(reports) == 1 && reports[0].At > cluster.InstantOf(at.Add(x.read)) {
			t.Errorf("report %d: %+v, %s; want %s", k, reports, said, x.want)
		}
	}
	d.Read(nil, 0) // the job has been requeued: its next attempt may be behind
	if reports, said := leave(`{"steps":10,"saved":true}`, 6*time.Minute, 7*time.Minute); len(reports) != 1 || reports[0].Saved == 0 {
		t.Errorf("a save of the next attempt: %+v, %s", reports, said)
	}
}
