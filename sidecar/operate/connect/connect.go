// Package connect opens the configured Slurm and journal. It adapts the journal to the daemon's
// interface, and words the errors of both, so that every command reports them alike.
package connect

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/build"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/slurm/certs"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Limit is the timeout for connecting to PostgreSQL.
const Limit = 10 * time.Second

// Slurm gives a client, which connects at its first use.
func Slurm(c *config.Config) (*slurm.Client, error) { return Measured(c, nil) }

// Measured is Slurm, and tells called of every request; see slurm.Config.
func Measured(c *config.Config, called func(call string, took time.Duration, err error)) (*slurm.Client, error) {
	s := &c.Slurm
	client, err := slurm.New(slurm.Config{
		Address: s.Address, User: s.User, TokenFile: s.TokenFile, APIVersion: s.APIVersion, Scontrol: s.Scontrol, License: c.Gate.License,
		TLS:     certs.Files(s.TLS),
		Timeout: s.Timeout.Span().Duration(), ListTimeout: s.ListTimeout.Span().Duration(), Retries: orNever(s.Retries),
		FullEvery: s.FullEvery.Span().Duration(), AccountsEvery: s.AccountsEvery.Span().Duration(),
		SmallList: orNever(s.SmallList), Singles: s.Singles, ArrayCap: s.ArrayCap, SiteFactor: c.Gate.SiteFactor, Called: called,
	})
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "slurm cannot be set up", Err: err, Next: "correct the keys under slurm in the configuration"}
	}
	return client, nil
}

// Verifier gives what checks users' tokens of auth/jwt; nil = none are taken (slurm.jwt).
func Verifier(c *config.Config) (*slurm.Verifier, error) {
	at := c.Slurm.Checker()
	if at == "" {
		return nil, nil
	}
	v, err := slurm.NewVerifier(slurm.Config{Address: at, APIVersion: c.Slurm.APIVersion, TLS: certs.Files(c.Slurm.TLS), Timeout: verifyLimit})
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "no tokens of users are taken", Err: err, Next: "correct slurm.jwt or slurm.tls in the configuration; the user of fairlease web must be able to read the files, too"}
	}
	return v, nil
}

// verifyLimit is the timeout of a question for a token.
const verifyLimit = 5 * time.Second

// orNever converts our 0 = never to the client's negative value, since its 0 means the default.
func orNever(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// Journal connects to the journal's database.
func Journal(ctx context.Context, c *config.Config) (*store.Store, error) {
	return journal(ctx, c, "")
}

// Commands that stay connected to the journal.
const (
	Serve = "serve"
	Web   = "web"
)

// Session is a process that stays connected to the journal.
type Session struct {
	Command string // Serve or Web
	Schema  string
	Version string
	Host    string // where it runs; its end may be missing
}

// String gives the session's name in PostgreSQL (application_name), which cuts it to 63 bytes.
func (s Session) String() string {
	return strings.Join([]string{"fairlease", s.Command, s.Schema, s.Version, s.Host}, " ")
}

// ParseSession reads a name of String; ok = it is one.
func ParseSession(name string) (s Session, ok bool) {
	words := strings.Split(name, " ")
	if len(words) < 4 || words[0] != "fairlease" {
		return s, false
	}
	return Session{Command: words[1], Schema: words[2], Version: words[3], Host: strings.Join(words[4:], " ")}, true
}

// JournalOf is Journal for a command that stays connected, Serve or Web. PostgreSQL shows its Session, by which `fairlease doctor`
// compares the versions of daemons and web servers.
func JournalOf(ctx context.Context, c *config.Config, command string) (*store.Store, error) {
	host, _ := os.Hostname() // for display
	return journal(ctx, c, Session{Command: command, Schema: c.Database.Schema, Version: build.Of().Version, Host: host}.String())
}

func journal(ctx context.Context, c *config.Config, name string) (*store.Store, error) {
	if c.Database.URL == "" {
		return nil, &failure.Error{Code: failure.Misuse, What: "no database is configured",
			Next: "set database.url in the configuration, FAIRLEASE_DATABASE_URL, or the standard PG* environment variables"}
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	s, err := store.Open(ctx, store.Config{DSN: c.Database.URL, Schema: c.Database.Schema, Name: name})
	if errors.Is(err, store.ErrSchema) {
		return nil, &failure.Error{Code: failure.Misuse, What: "the journal cannot be used", Err: err}
	}
	if err != nil {
		return nil, &failure.Error{Code: failure.Absent, What: "the journal cannot be reached at " + config.Mask(c.Database.URL), Err: err, Next: DatabaseNext(c, err)}
	}
	return s, nil
}

// DatabaseNext says what to do about an error of connecting to the journal's database.
func DatabaseNext(c *config.Config, err error) string {
	at := config.Mask(c.Database.URL)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return "start PostgreSQL at " + at + " (systemctl enable --now postgresql), or correct database.url in the configuration"
	}
	switch refused.Code {
	case "3D000": // invalid_catalog_name
		return "make the database, as PostgreSQL's administrator (runuser -u postgres -- createdb --owner fairlease fairlease), or correct database.url in the configuration"
	case "28P01": // invalid_password
		return "correct the password where it is written: ~/.pgpass of the daemon's user, FAIRLEASE_DATABASE_URL in /etc/default/fairlease, or database.url"
	case "28000": // invalid_authorization_specification
		return "run this as the daemon's user (runuser -u fairlease -- fairlease ...); make its user in PostgreSQL (runuser -u postgres -- createuser fairlease); pg_hba.conf must let it in at " + at
	case "42501": // insufficient_privilege
		return "the schema or the database belongs to another user: give it to the daemon's (alter database, alter schema ... owner to fairlease), or see \"Database users and roles\" in docs/database.md"
	}
	return "see PostgreSQL's log; database.url in the configuration says where it is: " + at
}
