package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// Seen is what the doctor's user can see.
type Seen struct {
	At       time.Time
	Accepted *config.Accepted // by the daemon of this host, last; nil = no configuration
	UID      int
	Parts    Parts
	Folders  []Folder
	Loose    []config.Loose
	Munge    error // why munged does not answer; only if reports are enabled
	Tokens   error // why users' tokens cannot be checked; only if they are taken
	Syslog   error // why syslog cannot be opened; only if audit.syslog is set
	Web      Web
	Reports  Reports
	Slurm    Slurm
	GPUs     *Gauged // nil = telemetry is off, or Slurm did not answer
	Database Database
}

// Folder is a folder that the daemon writes to.
type Folder struct {
	Check, Path string
	Means       string // consequence if it is not writable
	Err         error  // nil = it is
}

// Reports is the folder of jobs' reports.
type Reports struct {
	Err   error
	Mode  fs.FileMode
	Owner int
	Wrong []string // users' folders with faults
	Good  int      // number of users' folders without faults
}

// Slurm is the state of Slurm. After an error the later fields are empty.
type Slurm struct {
	SetupErr error // invalid configuration
	Err      error
	Facts    slurm.Facts
	LookErr  error
	Sighting *cluster.Observation
	Groups   []string // of partitions' AllowGroups that this host does not know
	Deserted []string // partitions whose AllowGroups have no user of a tenant
	Plugin   PluginFile
	Spank    Spank
	Notes    []string
}

// Look reads everything that a configuration names.
func Look(ctx context.Context, cfg *config.Config, clock func() time.Time) *Seen {
	now := clock()
	s := &Seen{At: now, UID: os.Getuid(), Loose: cfg.LooseFiles(), Accepted: config.ReadAccepted(cfg.AcceptedPath()), Parts: readParts(ctx)}
	for _, x := range []Folder{
		{Check: "heartbeats", Path: cfg.Files.Heartbeats, Means: "the submit plugin gates no job without a heartbeat, so jobs start before they are granted a lease"},
		{Check: "state", Path: filepath.Dir(cfg.Files.State), Means: "the daemon does not act if it cannot first record the values of jobs"},
	} {
		x.Err = writable(x.Path)
		s.Folders = append(s.Folders, x)
	}
	p := &cfg.Models.Progress
	if p.Listen != "" {
		s.Munge = askMunge(ctx, p.Munge)
	}
	if p.Folder != "" {
		s.Reports = readReports(p.Folder)
	}
	s.Tokens = askTokens(ctx, cfg)
	s.Syslog = askSyslog(ctx, cfg)
	s.Slurm = askSlurm(ctx, cfg)
	s.GPUs = gauge(ctx, cfg, s.Slurm.Sighting)
	s.Web = readWeb(ctx, cfg, now)
	if cfg.Database.URL != "" {
		s.Database = askDatabase(ctx, cfg, now)
	}
	return s
}

func writable(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// askMunge sends munged an invalid credential: if it is reachable, it says so.
func askMunge(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, connect.Limit)
	defer cancel()
	_, _, err := telemetry.Munge{Socket: socket}.Open(ctx, []byte("MUNGE::"))
	var refused *telemetry.Refused
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// askTokens tries whether Slurm refuses a token that nobody made.
func askTokens(ctx context.Context, cfg *config.Config) error {
	v, err := connect.Verifier(cfg)
	if v == nil || err != nil {
		return err
	}
	defer v.Close()
	ctx, cancel := context.WithTimeout(ctx, connect.Limit)
	defer cancel()
	return v.Checks(ctx)
}

func readReports(folder string) (r Reports) {
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", folder)
	}
	var users []os.DirEntry
	if err == nil {
		users, err = os.ReadDir(folder)
	}
	if err != nil {
		return Reports{Err: err}
	}
	r.Mode, r.Owner = info.Mode().Perm(), owner(info)
	for _, u := range users {
		if why := userFolder(filepath.Join(folder, u.Name()), u.Name()); why != "" {
			r.Wrong = append(r.Wrong, u.Name()+" "+why)
		} else {
			r.Good++
		}
	}
	return r
}

// userFolder says what is wrong with a user's folder of reports; "" = nothing.
func userFolder(path, name string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return failure.Cause(err)
	}
	if !info.IsDir() {
		return "is no folder"
	}
	u, err := user.Lookup(name)
	switch {
	case err != nil:
		return "is no user's name here"
	case u.Uid != strconv.Itoa(owner(info)):
		return fmt.Sprintf("belongs to user %d", owner(info))
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("has mode %#o", info.Mode().Perm())
	}
	dir, err := os.Open(path)
	if err != nil {
		return "cannot be read by this user"
	}
	_ = dir.Close()
	return ""
}

// owner gives the id of a file's owner.
func owner(info os.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

func askSlurm(ctx context.Context, cfg *config.Config) (s Slurm) {
	client, err := connect.Slurm(cfg)
	if err != nil {
		s.SetupErr = err
		return s
	}
	defer client.Close()
	if s.Facts, s.Err = client.Facts(ctx); s.Err != nil {
		return s
	}
	seen, err := client.Observe(ctx, 0)
	if err != nil {
		s.LookErr = err
		return s
	}
	s.Sighting, s.Notes = &seen, client.Notes()
	s.Groups = slurm.UnknownGroups(ctx, seen.Partitions)
	var users []string
	for i := range seen.Members {
		users = append(users, seen.Members[i].User)
	}
	s.Deserted = slurm.DesertedPartitions(ctx, seen.Partitions, users)
	s.Plugin, s.Spank = ReadPlugin(cfg, s.Facts.Conf), ReadSpank(s.Facts.Conf)
	return s
}
