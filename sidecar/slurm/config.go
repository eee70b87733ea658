package slurm

import (
	"cmp"
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/slurm/certs"
)

// Config says how to reach Slurm and how to use it. Zero values mean the defaults given beside
// the fields.
type Config struct {
	// Address of slurmrestd: unix:///run/slurmrestd/slurmrestd.socket, http://host:port or https://host:port.
	Address string
	TLS     certs.Files
	// User and TokenFile fill the X-SLURM-USER-NAME and X-SLURM-USER-TOKEN headers; leave them
	// empty if the socket's owner is sufficient proof. The file is read again whenever it
	// changes.
	User      string
	TokenFile string
	// APIVersion is e.g. "v0.0.44", or "" for the newest that both sides know.
	APIVersion string
	// License is the licence that gates jobs, if slurm.conf has it; "" = begin times are the only
	// gates.
	License string
	// Scontrol is the command line before scontrol's arguments ("scontrol").
	Scontrol []string

	Timeout     time.Duration // of a write or a small read (20 s: Slurm itself gives up after 10)
	ListTimeout time.Duration // of a full list (2 min)
	Retries     int           // of a read that failed (3; negative = none)

	FullEvery     time.Duration // how old the full job list may become (30 s)
	AccountsEvery time.Duration // how old the account tree may become (5 min)
	SmallList     int           // up to this many job records the full list is always read (200; negative = never)
	Singles       int           // up to this many changed records are read singly (64)
	ArrayCap      int           // maximum tasks of one waiting array that are told apart (1000)

	// SiteFactor is added to jobs with a new lease (gate.site_factor); 0 = site factors are
	// neither set nor read nor restored.
	SiteFactor int64

	// groupsOf and groupExists ask for the groups of users, and are replaced in tests.
	groupsOf    func(ctx context.Context, user string, uid uint32) (names []string, known bool)
	groupExists func(ctx context.Context, name string) bool
	groupTime   time.Duration // for all questions of a look

	// Now is the clock (time.Now).
	Now func() time.Time
	// Called is told of every request: its kind ("get_jobs", "post_job", "scontrol_update"), its duration, and its error; nil =
	// nobody is. It must be safe for concurrent use.
	Called func(call string, took time.Duration, err error)
}

func (c Config) withDefaults() Config {
	if len(c.Scontrol) == 0 {
		c.Scontrol = []string{"scontrol"}
	}
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.ListTimeout = cmp.Or(c.ListTimeout, 2*time.Minute)
	c.Retries = cmp.Or(c.Retries, 3)
	c.FullEvery = cmp.Or(c.FullEvery, 30*time.Second)
	c.AccountsEvery = cmp.Or(c.AccountsEvery, 5*time.Minute)
	c.SmallList = cmp.Or(c.SmallList, 200)
	c.Singles = cmp.Or(c.Singles, 64)
	c.ArrayCap = cmp.Or(c.ArrayCap, 1000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.groupTime == 0 {
		c.groupTime = groupTime
	}
	if c.groupsOf == nil {
		c.groupsOf, c.groupExists = hostGroups, hostHasGroup
	}
	if c.Called == nil {
		c.Called = func(string, time.Duration, error) {}
	}
	return c
}
