package telemetry

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Holder is a running job. Its owner may have left a report.
type Holder struct {
	Job  cluster.JobID
	User string
	UID  uint32
}

// Spool is a folder in which every user has a folder, with a file for each job that reports:
// FOLDER/alice/123_4.json. Only root may make users' folders (the doctor checks the permissions).
// A report is written beside its final name and renamed, so that it is complete. Spool refuses
// symbolic links, other non-regular files, and files of another owner.
type Spool struct {
	Folder string

	seen map[cluster.JobID]version
	kept map[cluster.JobID]float64 // steps of the newest save
}

// version identifies the content of a file that was read before.
type version struct {
	inode   uint64
	written int64 // in nanoseconds
	size    int64
}

// Read gives the new reports of running jobs, in their order, each with the time of its file, at
// most now. It returns errors of single reports and of users' folders; a changed report is read
// again. A user may have no folder.
func (d *Spool) Read(running []Holder, now cluster.Instant) ([]cluster.Progress, []error) {
	root, err := syscall.Open(d.Folder, syscall.O_DIRECTORY|syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, []error{fmt.Errorf("the folder of reports %s: %w", d.Folder, err)}
	}
	defer func() { _ = syscall.Close(root) }()
	users := map[string][]int{} // indices in running
	var names []string
	for i, h := range running {
		if users[h.User] == nil {
			names = append(names, h.User)
		}
		users[h.User] = append(users[h.User], i)
	}
	found := make([]finding, len(running))
	var wrong []error
	for _, name := range names {
		if err := d.visit(root, name, running, users[name], found); err != nil {
			wrong = append(wrong, fmt.Errorf("%s/%s: %w", d.Folder, name, err))
		}
	}
	var out []cluster.Progress
	seen, kept := map[cluster.JobID]version{}, map[cluster.JobID]float64{}
	for i, h := range running {
		f := &found[i]
		if f.version != (version{}) {
			seen[h.Job] = f.version
		}
		if before, ok := d.kept[h.Job]; ok {
			kept[h.Job] = before
		}
		if f.err == nil && f.news {
			f.err = f.refused(d.kept[h.Job], now)
		}
		switch {
		case f.err != nil:
			wrong = append(wrong, fmt.Errorf("%s/%s/%s.json: %w", d.Folder, h.User, h.Job, f.err))
		case f.news:
			f.report.At = min(cluster.Instant(f.version.written/1e6), now)
			if f.saved {
				f.report.Saved, kept[h.Job] = f.report.At, f.report.Steps
			}
			out = append(out, f.report)
		}
	}
	d.seen, d.kept = seen, kept
	return out, wrong
}

// ahead is the maximum difference of the clocks of nodes and file servers.
const ahead = cluster.Minute

// refused says why the report of a save cannot be true: it is from the future, or the save has fewer steps than the
// newest. Other reports from the future count as of now.
func (f *finding) refused(saved float64, now cluster.Instant) error {
	switch at := cluster.Instant(f.version.written / 1e6); {
	case f.saved && at > now.Add(ahead):
		return fmt.Errorf("is from the future, %s ahead; is the node's clock right?", at.Sub(now))
	case f.saved && f.report.Steps < saved:
		return errors.New(backwards(f.report.Steps, saved))
	}
	return nil
}

// finding is the result for a job.
type finding struct {
	version version
	news    bool
	report  cluster.Progress
	saved   bool
	err     error
}

// visit reads a user's folder for some of the running jobs. One folder is open at a time.
func (d *Spool) visit(root int, user string, running []Holder, jobs []int, found []finding) error {
	if !plain(user) {
		return nil
	}
	folder, err := syscall.Openat(root, user, syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = syscall.Close(folder) }()
	for _, i := range jobs {
		f, h := &found[i], running[i]
		var text []byte
		if text, f.version, f.err = read(folder, h, d.seen[h.Job]); f.err == nil && text != nil {
			f.report, f.saved, f.err = Parse(text, h.Job.String())
			f.news = f.err == nil
		}
	}
	return nil
}

// plain tells whether a user's name is usable as a file name.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !slices.Contains([]byte(name), '/')
}

// read gives a job's file, or nil if it is the known version.
func read(folder int, h Holder, known version) ([]byte, version, error) {
	fd, err := syscall.Openat(folder, h.Job.String()+".json", syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil, version{}, nil
	case errors.Is(err, syscall.ELOOP):
		return nil, version{}, errors.New("is a symbolic link; write the report itself there")
	case err != nil:
		return nil, version{}, err
	}
	file := os.NewFile(uintptr(fd), h.Job.String())
	defer func() { _ = file.Close() }()
	var s syscall.Stat_t
	if err := syscall.Fstat(fd, &s); err != nil {
		return nil, version{}, err
	}
	v := version{s.Ino, s.Mtim.Nano(), s.Size}
	switch {
	case v == known:
		return nil, v, nil
	case s.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return nil, v, errors.New("is no regular file")
	case s.Uid != h.UID:
		return nil, v, fmt.Errorf("is a file of user %d, and the job one of user %d", s.Uid, h.UID)
	case s.Size > Most:
		return nil, v, fmt.Errorf("has %d bytes; %d is the most", s.Size, Most)
	}
	text, err := io.ReadAll(io.LimitReader(file, Most+1))
	if text == nil {
		text = []byte{}
	}
	return text, v, err
}
