package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Database is the state of PostgreSQL and of the journal. After an error the later fields are
// empty.
type Database struct {
	Err     error
	Version int // as server_version_num
	User    string
	Schema  int64  // version; 0 = none, or one that this user may not use
	Owner   string // of the schema, if this user may not use it
	Rights  bool   // the journal is writable
	Skew    time.Duration
	// Sessions are the daemons and web servers that are connected; Reader is the web server's user.
	Sessions []connect.Session
	Reader   Reader

	OpenErr   error             // as a journal
	Of        *cluster.Identity // nil = no cluster yet
	Tripped   *cluster.Trip     // of the breaker in the newest round; nil = it has not tripped
	Slow      []cluster.SlowNode
	SlowGPUs  []cluster.SlowGPU
	OfErr     error
	Leader    *store.Leader // nil = none
	LeaderErr error
	Standbys  []store.Standby
	Past      *store.Past         // the last days; nil = none
	InForce   []string            // settings of the leader's last round that differ from the configuration
	Remarks   []store.Remark      // on running jobs
	Kept      []forecast.Coverage // how many statements of forecasts kept their word
	Notices   store.NoticeCounts  // that need attention
	Syslog    *store.SyslogState  // nil = unknown
}

// Reader is a user of the database that reads the journal for the web page.
type Reader struct {
	User   string // "" = unknown
	Exists bool
	Reads  bool // whole rounds
	Writes bool
}

// askDatabase reads the state of the database, in part if the schema is unknown.
func askDatabase(ctx context.Context, cfg *config.Config, now time.Time) (d Database) {
	if d.Err = d.ask(ctx, cfg); d.Err != nil {
		return d
	}
	s, err := connect.Journal(ctx, cfg)
	if err != nil {
		d.OpenErr = err
		return d
	}
	defer s.Close()
	of, known, err := s.Identity(ctx)
	if d.OfErr = err; known {
		d.Of = &of
	}
	d.Leader, d.LeaderErr = s.Leader(ctx)
	d.Standbys, _ = s.Daemons.Standbys(ctx)
	if past, err := recent(ctx, s, now); err == nil {
		d.Past = &past
	}
	if _, plan, err := s.Rounds.Last(ctx); err == nil {
		d.Tripped, d.Slow, d.SlowGPUs = plan.State.Breaker.Trip, plan.State.NodeSpeeds.Slow, plan.State.NodeSpeeds.GPUs
	}
	if d.Leader != nil {
		d.InForce = differing(ctx, cfg, s, now)
	}
	d.Remarks, _ = s.GPUs.Remarks(ctx, 0, math.MaxInt32) // where they cannot be read, neither can what is checked above
	d.Kept, _ = s.Forecasts.Coverage(ctx)
	d.Notices, _ = s.Notices.Counts(ctx)
	if x, err := s.Administration.Syslog(ctx); err == nil {
		d.Syslog = &x
	}
	return d
}

// differing lists the settings, by their names in snapshots, that the last round of the leader had otherwise than the
// configuration has them now.
func differing(ctx context.Context, cfg *config.Config, s *store.Store, now time.Time) (names []string) {
	last, plan, err := s.Rounds.Last(ctx)
	tuning, err2 := s.Terms.Tuning(ctx)
	if err != nil || err2 != nil || plan.Round == 0 {
		return nil // no round yet, or no rights to read it
	}
	_, ours := cfg.At(now, tuning)
	was, is := fields(last.Settings), fields(ours)
	for name := range is {
		was[name] = cmp.Or(was[name], "") // a setting without a value is left out
	}
	for name, value := range was {
		if is[name] != value && name != "tuned" && name != "schedule" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fields gives the JSON of each setting.
func fields(s cluster.Settings) map[string]string {
	var raw map[string]json.RawMessage
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		panic(err) // our own type
	}
	out := map[string]string{}
	for name, value := range raw {
		out[name] = string(value)
	}
	return out
}

// webUser is the user of the unit fairlease-web, and of the web server in the database unless its environment says otherwise.
const webUser = "fairlease-web"

// ask queries the database without a journal, whatever the schema.
func (d *Database) ask(ctx context.Context, cfg *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connect.Limit)
	defer cancel()
	config, err := pgx.ParseConfig(cfg.Database.URL)
	if err != nil {
		return err
	}
	migrate.In(config, cfg.Database.Schema)
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	asked := time.Now()
	var there time.Time
	err = db.QueryRow(ctx, `select current_setting('server_version_num')::int, current_user, clock_timestamp(),
		coalesce(has_table_privilege(to_regclass('rounds'), 'insert'), false)`).Scan(&d.Version, &d.User, &there, &d.Rights)
	if err != nil {
		return err
	}
	d.Skew = asked.Add(time.Since(asked) / 2).Sub(there)
	if d.Schema, err = migrate.Version(ctx, db); err != nil {
		return err
	}
	err = db.QueryRow(ctx, `select coalesce(max(pg_get_userbyid(nspowner)), '') from pg_namespace
		where nspname = $1 and not has_schema_privilege(oid, 'usage')`, cfg.Database.Schema).Scan(&d.Owner)
	if err != nil {
		return err
	}
	d.Reader.User = webUser
	rows, err := db.Query(ctx, `select distinct application_name, usename::text from pg_stat_activity
		where datname = current_database() and application_name like 'fairlease %' order by 1, 2`)
	if err != nil {
		return err
	}
	var name, user string
	_, err = pgx.ForEachRow(rows, []any{&name, &user}, func() error {
		s, ok := connect.ParseSession(name)
		if !ok || s.Schema != cfg.Database.Schema {
			return nil
		}
		d.Sessions = append(d.Sessions, s)
		if s.Command == connect.Web {
			d.Reader.User = user
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := &d.Reader
	err = db.QueryRow(ctx, `select coalesce(has_table_privilege(oid, to_regclass('round_blobs'), 'select'), false),
		coalesce(has_table_privilege(oid, to_regclass('rounds'), 'insert'), false) from pg_roles where rolname = $1`, r.User).Scan(&r.Reads, &r.Writes)
	if r.Exists = err == nil; errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}
