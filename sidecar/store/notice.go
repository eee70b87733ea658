package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sql"
)

// Ways in which notices are sent.
const (
	Mail    = "mail"
	Webhook = "webhook"
)

// NoticeRules say which notices a site sends.
type NoticeRules struct {
	Kinds    []string
	Channels []string
	Rate     int // notices to a user within an hour; a digest has the others
	Quiet    notice.Quiet
	Zone     *time.Location // of quiet hours
}

// Outbox has the notices of a lead: they are written in the transactions of what causes them, and sent later. It is safe for concurrent use.
type Outbox struct {
	lead  *Leadership
	rules atomic.Pointer[NoticeRules] // nil = there are none
	// refused is why notices were not written last; nil = they were.
	refused atomic.Pointer[error]
}

// Notice is a notice in the outbox.
type Notice struct {
	ID      int64          `json:"id"`
	Kind    string         `json:"kind"`
	Job     cluster.JobKey `json:"-" db:"job_key"`
	Event   string         `json:"event"`
	User    string         `json:"user" db:"user_name"`
	Channel string         `json:"channel"`
	Facts   notice.Facts   `json:"facts"`
	Created time.Time      `json:"created,omitzero" db:"created_at"`
	Due     time.Time      `json:"due,omitzero" db:"due_at"`
	Tries   int            `json:"tries"`
	Error   string         `json:"error,omitempty"`
	Sent    *time.Time     `json:"sent,omitempty" db:"sent_at"`
	Dead    *time.Time     `json:"dead,omitempty" db:"dead_at"`
}

// NoticeChoice is what a user chose.
type NoticeChoice struct {
	User    string    `json:"user" db:"user_name"`
	Kinds   []string  `json:"kinds"` // nil = all of the site's
	Quiet   *string   `json:"quiet"` // nil = the site's
	Changed time.Time `json:"changed,omitzero" db:"changed_at"`
}

// NoticeCounts are the notices that need attention.
type NoticeCounts struct {
	Waiting int    // that were tried in vain, or are overdue
	Dead    int    // that were given up within a week
	Error   string // of the newest of them
}

var (
	noticeLock    = sql.Query("notice_lock")
	noticeReaders = query[noticeReader]("notice_readers")
	noticeKnown   = sql.Query("notice_known")
	noticePut     = sql.Query("notice_put")
	noticeDue     = query[Notice]("notice_due")
	noticeSent    = sql.Query("notice_sent")
	noticeFailed  = sql.Query("notice_failed")
	noticeCounts  = sql.Query("notice_counts")
	noticeList    = query[Notice]("notice_list")
	noticeChoice  = query[NoticeChoice]("notice_choice")
	noticeChoose  = sql.Query("notice_choose")
	noticeSlips   = sql.Query("notice_slips")
)

// noticeReader is a user, as the rules of notices see it.
type noticeReader struct {
	User   string `db:"user_name"`
	Kinds  []string
	Quiet  *string
	Recent int // notices within the last hour
	Now    time.Time
}

// noticeCause tells a notice apart from all others.
type noticeCause struct {
	User  string         `json:"user"`
	Kind  string         `json:"kind"`
	Job   cluster.JobKey `json:"job"`
	Event string         `json:"event"`
}

// noticeRow is a row of the outbox.
type noticeRow struct {
	User    string         `json:"user_name"`
	Kind    string         `json:"kind"`
	Job     cluster.JobKey `json:"job_key"`
	Event   string         `json:"event"`
	Channel string         `json:"channel"`
	Facts   notice.Facts   `json:"facts"`
	Due     time.Time      `json:"due_at"`
}

// digestAfter is how long after the end of its hour, or of the quiet hours, a digest is sent: a transaction that adds to it has ended by then.
const digestAfter = time.Minute

// Rule sets the rules of the notices that are caused from now on; nil = no notices.
func (o *Outbox) Rule(r *NoticeRules) { o.rules.Store(r) }

// of gives the notices that a round causes.
func (o *Outbox) of(s *cluster.Snapshot, p *cluster.Plan) []notice.Notice {
	if o.rules.Load() == nil {
		return nil
	}
	return notice.Of(s, p)
}

// put writes notices in the transaction of what caused them. Where that fails or a lock is not free, the transaction goes on without: no round
// waits for letters.
func (o *Outbox) put(ctx context.Context, tx pgx.Tx, all []notice.Notice) error {
	rules := o.rules.Load()
	if rules == nil {
		return nil
	}
	var caused []notice.Notice
	for i := range all {
		if slices.Contains(rules.Kinds, all[i].Kind) {
			caused = append(caused, all[i])
		}
	}
	if len(caused) == 0 {
		return nil
	}
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '200ms'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, noticeLock); err != nil {
			return err
		}
		readers, err := readersOf(ctx, tx, caused)
		if err != nil {
			return err
		}
		known, err := knownOf(ctx, tx, caused)
		if err != nil {
			return err
		}
		text, err := rowsText(rules.rows(caused, readers, known))
		if err == nil {
			_, err = tx.Exec(ctx, noticePut, string(text))
		}
		if err == nil {
			_, err = tx.Exec(ctx, "set local lock_timeout = default")
		}
		return err
	})
	if err == nil || tx.Conn().IsClosed() {
		return err
	}
	o.refused.Store(&err)
	return nil
}

// readersOf reads what is known of the users of notices.
func readersOf(ctx context.Context, tx pgx.Tx, caused []notice.Notice) (map[string]*noticeReader, error) {
	out, users := map[string]*noticeReader{}, []string{}
	for i := range caused {
		if user := foreign(caused[i].User); out[user] == nil {
			out[user] = &noticeReader{}
			users = append(users, user)
		}
	}
	rows, err := tx.Query(ctx, noticeReaders, users)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[noticeReader])
	for _, r := range all {
		out[r.User] = r
	}
	return out, err
}

// knownOf reads which causes made notices before.
func knownOf(ctx context.Context, tx pgx.Tx, caused []notice.Notice) (map[noticeCause]bool, error) {
	causes := make([]noticeCause, len(caused))
	for i := range caused {
		causes[i] = causeOf(&caused[i])
	}
	text, err := rowsText(causes)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, noticeKnown, string(text))
	if err != nil {
		return nil, err
	}
	out := map[noticeCause]bool{}
	var c noticeCause
	_, err = pgx.ForEachRow(rows, []any{&c.User, &c.Kind, &c.Job, &c.Event}, func() error { out[c] = true; return nil })
	return out, err
}

func causeOf(n *notice.Notice) noticeCause {
	return noticeCause{foreign(n.User), n.Kind, n.Job, foreign(n.Event)}
}

// wants tells whether a user wants a kind of notices.
func (r *noticeReader) wants(kind string) bool {
	return r.Kinds == nil || slices.Contains(r.Kinds, kind)
}

// quiet gives the end of the quiet hours of a user in which it is now; false = it is in none.
func (r *noticeReader) quiet(rules *NoticeRules) (time.Time, bool) {
	quiet := rules.Quiet
	if r.Quiet != nil {
		if own, err := notice.ParseQuiet(*r.Quiet); err == nil {
			quiet = own
		}
	}
	return quiet.End(r.Now.In(rules.Zone))
}

// rows gives the rows for notices that are wanted, and not known: one for each channel, or digests of those that are too many or come in
// quiet hours.
func (rules *NoticeRules) rows(caused []notice.Notice, readers map[string]*noticeReader, known map[noticeCause]bool) []noticeRow {
	rows := []noticeRow{}
	put := func(c noticeCause, facts notice.Facts, due time.Time) {
		for _, channel := range rules.Channels {
			rows = append(rows, noticeRow{c.User, c.Kind, c.Job, c.Event, channel, facts, due})
		}
	}
	counts := map[noticeCause]map[string]int{} // of digests
	ends := map[noticeCause]time.Time{}
	for i := range caused {
		n, c := &caused[i], causeOf(&caused[i])
		r := readers[c.User]
		if known[c] || !r.wants(n.Kind) {
			continue
		}
		known[c] = true
		end, digest := r.quiet(rules)
		if !digest && r.Recent >= rules.Rate {
			end, digest = r.Now.Truncate(time.Hour).Add(time.Hour), true
		}
		if !digest {
			r.Recent++
			put(c, n.Facts, r.Now)
			continue
		}
		d := noticeCause{c.User, notice.Digest, 0, strconv.FormatInt(end.Unix(), 10)}
		if counts[d] == nil {
			counts[d], ends[d] = map[string]int{}, end
		}
		counts[d][n.Kind]++
	}
	for _, d := range slices.SortedFunc(maps.Keys(counts), func(a, b noticeCause) int { return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Event, b.Event)) }) {
		put(d, notice.Facts{Counts: counts[d]}, ends[d].Add(digestAfter))
	}
	return rows
}

// idle gives the notices of remarks that jobs hold idle GPUs.
func idle(list []gpu.Remark) (out []notice.Notice) {
	for i := range list {
		if r := &list[i]; r.Kind == gpu.HoldsIdle && r.User != "" {
			out = append(out, notice.Notice{Kind: notice.Idle, Job: r.Job, Event: strconv.FormatInt(int64(r.Since), 10), User: r.User,
				Facts: notice.Facts{ID: r.ID.String(), Text: notice.Clean(r.Text)}})
		}
	}
	return out
}

// slips gives the notices of a forecast that was written: of jobs that start later than was said.
func (o *Outbox) slips(ctx context.Context, tx pgx.Tx, at cluster.Instant) (out []notice.Notice, err error) {
	if rules := o.rules.Load(); rules == nil || !slices.Contains(rules.Kinds, notice.Slip) {
		return nil, nil
	}
	rows, err := tx.Query(ctx, noticeSlips, at)
	if err != nil {
		return nil, err
	}
	n := notice.Notice{Kind: notice.Slip}
	f := &n.Facts
	var said, latest time.Time
	var start *time.Time
	_, err = pgx.ForEachRow(rows, []any{&n.Job, &f.ID, &f.Name, &n.User, &f.Tenant, &f.GPUs, &start, &said, &latest}, func() error {
		one := n
		one.Event, one.Facts.Name, one.Facts.Tenant = strconv.FormatInt(said.UnixMilli(), 10), notice.Clean(f.Name), notice.Clean(f.Tenant)
		one.Facts.At, one.Facts.Was = instantOf(start), cluster.InstantOf(latest)
		out = append(out, one)
		return nil
	})
	return out, err
}

// Due gives at most limit notices for some channels whose time has come.
func (o *Outbox) Due(ctx context.Context, channels []string, limit int) ([]Notice, error) {
	return collect[Notice](ctx, o.lead.store.base, "reading the notices that are due", noticeDue, channels, limit)
}

// Sent notes that a notice was sent. It fails with ErrDeposed when the lead is lost, as Failed does.
func (o *Outbox) Sent(ctx context.Context, id int64) error {
	return o.note(ctx, noticeSent, id)
}

// Failed notes why a notice was not sent, and when it is tried again; after most tries it is given up.
func (o *Outbox) Failed(ctx context.Context, id int64, why string, again time.Duration, most int) error {
	return o.note(ctx, noticeFailed, id, foreign(why), again, most)
}

func (o *Outbox) note(ctx context.Context, query string, args ...any) error {
	err := o.lead.inTerm(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("noting what became of a notice: %w", err)
	}
	return nil
}

// Refused gives, once, why notices were not written.
func (o *Outbox) Refused() error {
	if why := o.refused.Swap(nil); why != nil {
		return fmt.Errorf("notices were not written down: %w", *why)
	}
	return nil
}

// Counts gives the notices that need attention.
func (s Notices) Counts(ctx context.Context) (c NoticeCounts, err error) {
	if err = s.pool.QueryRow(ctx, noticeCounts).Scan(&c.Waiting, &c.Dead, &c.Error); err != nil {
		err = fmt.Errorf("counting the notices: %w", denied(err))
	}
	return c, err
}

// List gives the newest notices of a user.
func (s Notices) List(ctx context.Context, user string, limit int) ([]Notice, error) {
	return collect[Notice](ctx, s.base, "reading the notices of "+user, noticeList, user, limit)
}

// Choice gives what a user chose; nothing if it did not choose.
func (s Notices) Choice(ctx context.Context, user string) (NoticeChoice, error) {
	all, err := collect[NoticeChoice](ctx, s.base, "reading which notices "+user+" wants", noticeChoice, user)
	if err != nil || len(all) == 0 {
		return NoticeChoice{User: user}, err
	}
	return all[0], nil
}

// Choose writes down what a user chose.
func (s Notices) Choose(ctx context.Context, c NoticeChoice) error {
	if c.User == "" {
		return errors.New("a choice of notices without its user: name one")
	}
	if _, err := s.pool.Exec(ctx, noticeChoose, c.User, c.Kinds, c.Quiet); err != nil {
		return fmt.Errorf("writing down which notices %s wants: %w", c.User, denied(err))
	}
	return nil
}
