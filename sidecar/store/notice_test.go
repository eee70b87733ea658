package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
	"github.com/fairlease/fairlease/sql"
)

// office is a journal with an outbox.
type office struct {
	t     *testing.T
	db    *pgx.Conn
	store *store.Store
	lead  *store.Leadership
	j     *store.Journal
	story *journaltest.Story
}

func newOffice(t *testing.T) *office {
	t.Helper()
	dsn := storetest.Database(t)
	s := openStore(t, store.Config{DSN: dsn})
	o := &office{t: t, db: storetest.Connect(t, dsn), store: s, lead: takeLead(t, s), story: journaltest.NewStory(1, 2, 5)}
	o.j = o.lead.Journal()
	if _, err := o.j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

func rules(rate int, channels ...string) *store.NoticeRules {
	return &store.NoticeRules{Kinds: notice.Names(), Channels: channels, Rate: rate, Zone: time.UTC}
}

// starts gives the next round, in which n jobs of a user start.
func (o *office) starts(user string, n int) (cluster.Snapshot, cluster.Plan) {
	snap, plan := o.story.Next()
	for i := range snap.Cases {
		snap.Cases[i].Job.State = cluster.Waiting
	}
	for i := range n {
		snap.Cases = append(snap.Cases, cluster.Case{Control: cluster.FullControl,
			Job: cluster.Job{ID: cluster.JobID{ID: int64(9000 + i)}, Name: "train", User: user, State: cluster.Running, Restarts: int(plan.Round), Start: snap.Now,
				Request: cluster.Request{Size: cluster.Whole(2)}},
			Record: cluster.Record{Key: cluster.JobKey(1_000_000 + i), State: cluster.Waiting}})
	}
	return snap, plan
}

func (o *office) commit(user string, n int) {
	o.t.Helper()
	snap, plan := o.starts(user, n)
	if err := o.j.Commit(o.t.Context(), snap, plan); err != nil {
		o.t.Fatal(err)
	}
}

// list words all notices.
func (o *office) list() string {
	o.t.Helper()
	rows, err := o.db.Query(o.t.Context(), `select concat_ws(' ', user_name, kind, channel, case kind when 'digest' then facts ->> 'counts' else job_key || '/' || event end) from notices order by id`)
	if err != nil {
		o.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		o.t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func (o *office) must(text string, args ...any) {
	o.t.Helper()
	if _, err := o.db.Exec(o.t.Context(), text, args...); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) is(want ...string) {
	o.t.Helper()
	if d := cmp.Diff(strings.Join(want, "\n"), o.list()); d != "" {
		o.t.Errorf("the outbox:\n%s", d)
	}
}

// A round and its notices are written together, or neither; without rules there are none.
func TestNoticesAreOfTheirRound(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.commit("ann", 2)
	o.is()
	o.lead.Notices.Rule(rules(10, store.Mail, store.Webhook))
	o.commit("ann", 1)
	o.is("ann start mail 1000000/2", "ann start webhook 1000000/2")
	snap, plan := o.starts("bob", 1)
	o.must("alter table round_blobs rename to away") // it is written last
	if err := o.j.Commit(t.Context(), snap, plan); err == nil {
		t.Fatal("the round was written")
	}
	o.is("ann start mail 1000000/2", "ann start webhook 1000000/2")
}

// A user with 10,000 jobs has a few notices in an hour, and one digest that counts the others; other users are not affected.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(3, store.Mail))
	o.commit("ann", 10_000)
	o.commit("ann", 10)
	o.commit("bob", 1)
	o.is("ann start mail 1000000/1", "ann start mail 1000001/1", "ann start mail 1000002/1", `ann digest mail {"start": 10007}`, "bob start mail 1000000/3")
	var late int
	if err := o.db.QueryRow(t.Context(), "select count(*) from notices where kind = 'digest' and due_at > now() and due_at < now() + interval '62 minutes' and due_at - date_trunc('hour', due_at) = interval '1 minute'").Scan(&late); err != nil || late != 1 {
		t.Errorf("%d digests are sent after the end of the hour (%v)", late, err)
	}
	o.must("update notices set created_at = created_at - interval '61 minutes', due_at = due_at - interval '2 hours', event = event || 'x' where kind = 'digest'")
	o.must("update notices set created_at = created_at - interval '61 minutes', sent_at = now()")
	o.commit("ann", 4)
	if got := strings.Split(o.list(), "\n"); len(got) != 9 || got[8] != `ann digest mail {"start": 1}` {
		t.Errorf("in the next hour: %q", got)
	}
}

// A cause makes one notice, however often a look tells of it.
func TestACauseIsToldOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(1, store.Mail))
	for range 3 {
		snap, plan := o.starts("ann", 2)
		for i := range snap.Cases {
			snap.Cases[i].Job.Restarts = 7
		}
		if err := o.j.Commit(t.Context(), snap, plan); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Split(o.list(), "\n"); got[0] != "ann start mail 1000000/7" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// Users choose kinds and quiet hours, within what the site sends.
func TestChoicesOfUsers(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	r := rules(10, store.Mail)
	r.Kinds = []string{notice.Start}
	o.lead.Notices.Rule(r)
	always := time.Now().UTC().Add(-time.Hour).Format("15:04") + "-" + time.Now().UTC().Add(2*time.Hour).Format("15:04")
	for user, c := range map[string]store.NoticeChoice{"no": {Kinds: []string{notice.Stop}}, "none": {Kinds: []string{}}, "yes": {Kinds: []string{notice.Start, notice.Stop}}, "quiet": {Quiet: &always}} {
		c.User = user
		if err := o.store.Notices.Choose(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"no", "none", "yes", "quiet", "any"} {
		o.commit(user, 2)
	}
	o.is("yes start mail 1000000/3", "yes start mail 1000001/3", `quiet digest mail {"start": 2}`, "any start mail 1000000/5", "any start mail 1000001/5")
	none := ""
	if err := o.store.Notices.Choose(t.Context(), store.NoticeChoice{User: "quiet", Kinds: []string{notice.Idle}, Quiet: &none}); err != nil {
		t.Fatal(err)
	}
	got, err := o.store.Notices.Choice(t.Context(), "quiet")
	if err != nil || !slices.Equal(got.Kinds, []string{notice.Idle}) || got.Quiet == nil || *got.Quiet != "" {
		t.Errorf("it chose %+v (%v)", got, err)
	}
	for _, c := range []store.NoticeChoice{{}, {User: "x", Kinds: []string{"spam"}}, {User: "x", Kinds: slices.Repeat(r.Kinds, 6)}, {User: "x", Quiet: &r.Kinds[0]}} {
		if err := o.store.Notices.Choose(t.Context(), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// A tenant's transaction, whatever it locks, delays neither a round nor its notices.
func TestNoTenantDelaysARound(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(10, store.Mail))
	dsn := o.db.Config().ConnString()
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, func(string) {}); err != nil {
		t.Fatal(err)
	}
	tenant := storetest.Connect(t, storetest.As(dsn, storetest.Role(t, o.db, "ann", "fairlease_tenant")))
	for _, x := range []string{"begin", "select choose_notices(current_user, '{stop}', null)", "select pg_advisory_lock(hashtext('fairlease.notices'))",
		"lock table notice_choices in access exclusive mode", "lock table notices in share mode", "lock table identity in access exclusive mode"} {
		_, err := tenant.Exec(t.Context(), x)
		if strings.HasPrefix(x, "lock") {
			if err == nil {
				t.Errorf("%s: a tenant may", x)
			}
			_, err = tenant.Exec(t.Context(), "rollback to savepoint s")
		}
		if err == nil {
			_, err = tenant.Exec(t.Context(), "savepoint s")
		}
		if err != nil {
			t.Fatalf("%s: %v", x, err)
		}
	}
	o.commit("bob", 1)
	o.is("bob start mail 1000000/1")
}

// A lock that is not free, or a choice that cannot be read, costs a round its notices, and no more.
func TestARoundGoesOnWithoutNotices(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(10, store.Mail))
	o.must(`create table limits (lock text)`)
	o.must(`create function note() returns trigger language plpgsql as $$ begin insert into limits values (current_setting('lock_timeout')); return new; end $$`)
	o.must(`create trigger note before insert on round_blobs for each row execute function note()`) // it is written last
	refuses := func(why string) {
		t.Helper()
		o.commit("ann", 1)
		if err := o.lead.Notices.Refused(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("it says %v, not %s", err, why)
		}
	}
	for _, table := range []string{"notice_choices", "notices", "identity"} {
		o.must("begin")
		o.must("lock table " + table + " in access exclusive mode")
		refuses("lock timeout")
		o.must("rollback")
	}
	o.must("alter table notice_choices drop constraint notice_choices_kinds_check")
	o.must("insert into notice_choices (user_name, kinds) values ('ann', '{null}')")
	refuses("cannot scan")
	o.must("delete from notice_choices")
	o.commit("ann", 1)
	o.is("ann start mail 1000000/5")
	var limits string
	if err := o.db.QueryRow(t.Context(), "select string_agg(distinct lock, ' ') from limits").Scan(&limits); err != nil || limits != "0" {
		t.Errorf("after notices, the rest of a round waits for locks as long as %s (%v)", limits, err)
	}
}

// A choice has each kind once at most.
func TestChoicesAreBounded(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for kinds, may := range map[string]bool{"null": true, "'{}'": true, "'{stop,start,idle,budget,slip}'": true, "array_fill('stop'::text, array[2000000])": false,
		"'{{stop},{start}}'": false, "'{null}'": false} {
		if _, err := o.db.Exec(t.Context(), "select choose_notices('ann', "+kinds+", null)"); (err == nil) != may {
			t.Errorf("%s: %v", kinds, err)
		}
	}
}

// Counts of notices, which the daemon takes every ten seconds, use an index, however many were sent.
func TestCountsReadAnIndex(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.must(`insert into notices (kind, job_key, event, user_name, channel, facts, due_at, sent_at)
		select 'stop', n, '1', 'ann', 'mail', '{}', now(), case when n > 50 then now() end from generate_series(1, 20000) n`)
	o.must("analyze notices")
	rows, err := o.db.Query(t.Context(), "explain "+sql.Query("notice_counts"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, "notices_unsent") || strings.Contains(text, "Seq Scan") {
		t.Errorf("the plan is (%v):\n%s", err, text)
	}
}

// Texts of users are no part of a statement, and no name stops a round.
func TestHostileNamesOfUsers(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(2, store.Mail))
	for _, user := range []string{"ann\x00eve", "'; drop table notices; --", "\xff\xfe", `\u0000"}]`, strings.Repeat("x", 5000), ""} {
		o.commit(user, 4)
	}
	if got := strings.Count(o.list(), "\n") + 1; got != 15 {
		t.Errorf("%d notices of 5 users: %s", got, o.list())
	}
	o.must("alter table notices add constraint no_bob check (user_name <> 'bob')")
	o.commit("bob", 1)
	for _, want := range []bool{true, false} {
		if err := o.lead.Notices.Refused(); (err != nil) != want {
			t.Errorf("that PostgreSQL refused notices is told: %v", err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		user := rapid.StringN(0, 20, 60).Draw(rt, "user")
		snap, plan := o.starts(user, 1)
		snap.Cases[len(snap.Cases)-1].Job.Name = rapid.String().Draw(rt, "name")
		if err := o.j.Commit(context.Background(), snap, plan); err != nil {
			rt.Fatal(err)
		}
		if err := o.lead.Notices.Refused(); err != nil {
			rt.Fatal(err)
		}
	})
}

// A notice is due until it was sent or given up; a leader of before notes nothing.
func TestOutbox(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(10, store.Mail, store.Webhook))
	o.commit("ann", 2)
	due := func(channels ...string) (ids []int64) {
		t.Helper()
		list, err := o.lead.Notices.Due(t.Context(), channels, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			ids = append(ids, n.ID)
		}
		return ids
	}
	check := func(what string, got, want []int64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are due, want %v", what, got, want)
		}
	}
	check("all", due(store.Mail, store.Webhook), []int64{1, 2, 3, 4})
	check("mail", due(store.Mail), []int64{1, 3})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(o.lead.Notices.Sent(t.Context(), 1))
	must(o.lead.Notices.Failed(t.Context(), 3, "refused\x00", time.Hour, 2))
	check("sent, and failed", due(store.Mail), nil)
	o.must("update notices set due_at = now() where id = 3")
	check("tried again", due(store.Mail), []int64{3})
	must(o.lead.Notices.Failed(t.Context(), 3, "refused again", 0, 2))
	check("given up", due(store.Mail), nil)
	counts, err := o.store.Notices.Counts(t.Context())
	if err != nil || counts != (store.NoticeCounts{Dead: 1, Error: "refused again"}) {
		t.Errorf("counts are %+v (%v)", counts, err)
	}
	o.must("update notices set due_at = now() - interval '16 minutes' where id = 4")
	if counts, err = o.store.Notices.Counts(t.Context()); err != nil || counts.Waiting != 1 {
		t.Errorf("with one that is overdue, counts are %+v (%v)", counts, err)
	}
	list, err := o.store.Notices.List(t.Context(), "ann", 10)
	if err != nil || len(list) != 4 || list[3].Sent == nil || list[1].Dead == nil || list[1].Tries != 2 || list[0].Facts.ID != "9001" || list[0].Facts.GPUs != cluster.CountOf(2) {
		t.Errorf("the list is %+v (%v)", list, err)
	}
	must(o.lead.Resign(t.Context()))
	next := takeLead(t, o.store)
	if err := o.lead.Notices.Sent(t.Context(), 2); err == nil {
		t.Error("a leader of before notes that it sent a notice")
	}
	got, err := next.Notices.Due(t.Context(), []string{store.Webhook}, 10)
	must(err)
	if len(got) != 2 || got[1].ID != 2 {
		t.Errorf("the next leader finds %+v", got)
	}
}

// Notices are pruned after 30 days, or with the journal.
func TestNoticesArePruned(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(10, store.Mail))
	o.commit("ann", 3)
	o.must("update notices set created_at = now() - interval '31 days' where id = 1")
	o.must("update notices set created_at = now() - interval '29 days' where id = 2")
	for i, keep := range []time.Duration{365 * 24 * time.Hour, 10 * 24 * time.Hour} {
		if _, _, err := o.store.Prune(t.Context(), store.Keep{Blobs: keep, History: keep}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(o.list(), "start"); got != 2-i {
			t.Errorf("%d are left after %v", got, keep)
		}
	}
}

// A look at GPUs tells once that a job holds idle ones.
func TestIdleGPUsAreTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lead.Notices.Rule(rules(10, store.Mail))
	for i := range 3 {
		since := cluster.Instant(1000 + i/2)
		look := &store.Look{Report: &gpu.Report{At: 9}, Owners: func(*gpu.GPU) (cluster.JobKey, bool) { return 0, false },
			Remarks: []gpu.Remark{{Kind: gpu.HoldsIdle, Job: 7, ID: cluster.JobID{ID: 4711}, User: "ann", GPU: -1, Since: since, Text: "has held 4 idle GPUs for 30 min"},
				{Kind: remark.Stall, Job: 7, User: "ann", GPU: -1, Since: since, Text: "stands still"}}}
		if err := o.lead.Look(t.Context(), look); err != nil {
			t.Fatal(err)
		}
	}
	o.is("ann idle mail 7/1000", "ann idle mail 7/1001")
}

// A forecast that is an hour later than an earlier one said at the latest is told once, whether by a notice or by a digest.
func TestSlipsAreTold(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int]string{10: "ann slip mail 1/%d", 0: `ann digest mail {"slip": 1}`} {
		o := newOffice(t)
		o.lead.Notices.Rule(rules(rate, store.Mail))
		o.commit("bob", 0)
		o.must("update jobs set user_name = 'ann', tenant = 'nlp'")
		start := cluster.InstantOf(time.Now().Add(-2 * time.Hour))
		foresee := func(after, p50, p90 cluster.Span) {
			t.Helper()
			at := start.Add(after)
			from := forecast.Times{P10: start + 1, P50: start.Add(p50), P90: start.Add(p90)}
			f := &forecast.Forecast{At: at, Round: 1, Runs: 10, Horizon: cluster.Day, Jobs: []forecast.Job{{Key: 1, Waits: true, Start: from, RawStart: from}}}
			if err := o.lead.Forecast(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		foresee(0, cluster.Hour, 2*cluster.Hour)
		foresee(cluster.Minute, 2*cluster.Hour, 9*cluster.Hour)
		foresee(2*cluster.Minute, 3*cluster.Hour, 9*cluster.Hour)
		o.is()
		for i := range cluster.Span(3) {
			foresee((3+i)*cluster.Minute, (4+i)*cluster.Hour, 9*cluster.Hour)
		}
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, start)
		}
		o.is(want)
	}
}
