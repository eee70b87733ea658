package telemetry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

func TestReportsLeftInAFolder(t *testing.T) {
	dir := t.TempDir()
	me := uint32(os.Getuid())
	now := cluster.Instant(1_700_000_100_000)
	write := func(user, name, text string, at int64) string {
		t.Helper()
		path := filepath.Join(dir, user, name)
		when := time.UnixMilli(at)
		for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".new", []byte(text), 0o644), os.Chtimes(path+".new", when, when), os.Rename(path+".new", path)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	holder := func(id int64, user string, uid uint32) telemetry.Holder {
		return telemetry.Holder{Job: cluster.JobID{ID: id}, User: user, UID: uid}
	}
	running := []telemetry.Holder{holder(1, "ann", me), holder(2, "ann", me), holder(3, "ann", me), holder(4, "ann", me), holder(5, "ann", me), holder(6, "ann", me),
		holder(7, "bob", me+1), holder(8, "../ann", me), holder(9, "nobody", me), holder(10, "link", me), holder(11, "ann", me), holder(12, "ann", me)}
	write("ann", "1.json", `{"steps":100}`, int64(now)-60_000)
	write("ann", "2.json", `{"job":"2","steps":5,"total":10}`, int64(now)+3_600_000) // from the future
	big := write("ann", "3.json", strings.Repeat(" ", telemetry.Most+1), int64(now))
	_ = big
	write("ann", "99.json", `{"steps":1}`, int64(now)) // not running
	secret := write("ann", "secret", `{"steps":1}`, int64(now))
	for _, err := range []error{os.Symlink(secret, filepath.Join(dir, "ann", "4.json")), os.Mkdir(filepath.Join(dir, "ann", "5.json"), 0o755),
		syscall.Mkfifo(filepath.Join(dir, "ann", "6.json"), 0o644), os.Symlink(filepath.Join(dir, "ann"), filepath.Join(dir, "link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write("bob", "7.json", `{"steps":7}`, int64(now)) // our file, another user's job
	write("ann", "8.json", `{"steps":1}`, int64(now))
	write("ann", "10.json", `{"steps":1}`, int64(now))
	write("ann", "11.json", `{"steps":-3}`, int64(now))
	write("ann", "12.json", ``, int64(now))

	d := &telemetry.Spool{Folder: dir}
	got, wrong := d.Read(running, now)
	want := []cluster.Progress{{Job: cluster.JobID{ID: 1}, Steps: 100, At: now - 60_000}, {Job: cluster.JobID{ID: 2}, Steps: 5, Total: 10, At: now}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	says := []string{"link: not a directory", "ann/3.json: has 1025 bytes", "ann/4.json: is a symbolic link", "ann/5.json: is no regular file", "ann/6.json: is no regular file",
		"bob/7.json: is a file of user", "ann/11.json: steps: -3 cannot be", "ann/12.json: the report cannot be read"}
	if len(wrong) != len(says) {
		t.Fatalf("%d are refused, want %d: %v", len(wrong), len(says), wrong)
	}
	for i := range says {
		if !strings.Contains(wrong[i].Error(), says[i]) {
			t.Errorf("refused: %v, want %q", wrong[i], says[i])
		}
	}

	// a changed file is read again
	if got, wrong = d.Read(running, now); len(got) > 0 || len(wrong) != 2 {
		t.Errorf("again: %+v, %v; want the symbolic links only", got, wrong)
	}
	write("ann", "1.json", `{"steps":200}`, int64(now)-30_000)
	if got, _ = d.Read(running, now); len(got) != 1 || got[0].Steps != 200 || got[0].At != now-30_000 {
		t.Errorf("after the next report: %+v", got)
	}
	if _, wrong = (&telemetry.Spool{Folder: filepath.Join(dir, "none")}).Read(running, now); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "the folder of reports") {
		t.Errorf("without the folder: %v", wrong)
	}
}

// Folders of more users than the limit of open files are read, and none stays open; one that
// cannot be opened is reported.
func TestManyUsersFolders(t *testing.T) {
	dir := t.TempDir()
	me := uint32(os.Getuid())
	const users = 60
	var running []telemetry.Holder
	for i := range users {
		user := fmt.Sprintf("u%02d", i)
		for _, err := range []error{os.Mkdir(filepath.Join(dir, user), 0o755), os.WriteFile(filepath.Join(dir, user, strconv.Itoa(i+1)+".json"), []byte(`{"steps":7}`), 0o644)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		running = append(running, telemetry.Holder{cluster.JobID{ID: int64(i + 1)}, user, me})
	}
	running = append(running, telemetry.Holder{cluster.JobID{ID: 100}, "..", me}, telemetry.Holder{cluster.JobID{ID: 101}, "u00", me})
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	before := open()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(before + 20)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	got, wrong := (&telemetry.Spool{Folder: dir}).Read(running, 1<<60)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if len(got) != users || len(wrong) > 0 {
		t.Errorf("%d reports of %d users, and %v", len(got), users, wrong)
	}
	for i := range got {
		if got[i].Job.ID != int64(i+1) {
			t.Fatalf("report %d is of job %s", i, got[i].Job)
		}
	}
	if after := open(); after != before {
		t.Errorf("%d files are open, %d were", after, before)
	}
	if _, wrong = (&telemetry.Spool{Folder: dir}).Read([]telemetry.Holder{{cluster.JobID{ID: 1}, strings.Repeat("x", 300), me}}, 1<<60); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "xxx: file name too long") {
		t.Errorf("of a folder that cannot be opened: %v", wrong)
	}
}
