package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// left gives what is ours in Slurm, or would be ours if users had not asked for it.
func (c *campaign) left(ctx context.Context) ([]string, error) {
	var out []string
	reservations, err := c.Exec(ctx, "root", "scontrol", "show", "reservation", "-o")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(reservations) {
		if strings.Contains(line, "fairlease") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	jobs, err := c.Exec(ctx, "root", "scontrol", "show", "job", "-o")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(jobs) {
		out = append(out, c.leftOn(word(line), time.Now())...)
	}
	factors, err := c.Exec(ctx, "root", "sprio", "-h", "-o", "%i %S")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(factors) {
		if f := strings.Fields(line); len(f) == 2 && f[1] != "0" {
			out = append(out, fmt.Sprintf("job %s has site factor %s", f[0], f[1]))
		}
	}
	return out, nil
}

// word gives a job's words in scontrol's line by their names.
func word(line string) map[string]string {
	words := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(w, "="); ok {
			words[name] = value
		}
	}
	return words
}

// leftOn gives what is ours on a job that waits.
func (c *campaign) leftOn(w map[string]string, now time.Time) []string {
	id := w["JobId"]
	job, known := c.users.find(id)
	if array := w["ArrayJobId"]; !known && array != "" {
		job, known = c.users.find(array)
	}
	var out []string
	left := func(format string, args ...any) { out = append(out, fmt.Sprintf("job "+id+" "+format, args...)) }
	if strings.HasPrefix(w["Reservation"], "fairlease_") {
		left("is in reservation %s", w["Reservation"])
	}
	if w["JobState"] == "SUSPENDED" {
		left("is suspended")
	}
	if w["JobState"] != "PENDING" {
		return out
	}
	if strings.Contains(w["TresPerNode"], "shard") { // no user asks for that
		left("asks for %s", w["TresPerNode"])
	}
	if strings.Contains(w["Licenses"], "fairlease") && !strings.Contains(w["Licenses"], "fairlease:0") {
		left("asks for licences %s", w["Licenses"])
	}
	f := Facts{Deeds: c.users.deeds}
	asked := func(what string) bool { return known && f.did(job.id, time.Time{}, what) }
	if n := w["ReqNodeList"]; n != "(null)" && (!known || !job.nodes) && !asked("node") {
		left("wants nodes %s", n)
	}
	begin, err := time.ParseInLocation(scontrolTime, w["EligibleTime"], time.Local)
	if err == nil && begin.After(now.Add(5*time.Second)) && !asked("begin") && (!known || !job.begin) && !heldOff(w, begin, now) {
		left("may not begin before %s, it is %s now", w["EligibleTime"], now.Format("15:04:05"))
	}
	if w["Priority"] == "0" && !asked("hold") && !strings.Contains(w["Reason"], "held") && w["Reason"] != "JobHeldAdmin" {
		left("is held (%s)", w["Reason"])
	}
	if feature := w["Features"]; feature != "(null)" && feature != "" {
		left("asks for features %s", feature)
	}
	return out
}

// scontrolTime is how scontrol writes times.
const scontrolTime = "2006-01-02T15:04:05"

// heldOff tells whether it is Slurm itself that lets a job begin so late: it puts off one that it requeued when its node had failed, by
// the lifetime of a credential, 120 s, and a second. So it does with a heterogeneous job if it could start one part only. That job keeps its submit time.
func heldOff(w map[string]string, begin, now time.Time) bool {
	if w["HetJobId"] != "" {
		return begin.Sub(now) <= 121*time.Second
	}
	submitted, err := time.ParseInLocation(scontrolTime, w["SubmitTime"], time.Local)
	return err == nil && w["Restarts"] != "0" && begin.Sub(submitted) >= 120*time.Second && begin.Sub(submitted) <= 122*time.Second
}

// collect reads what was recorded, when all is over.
func (c *campaign) collect(ctx context.Context, f *Facts) error {
	var err error
	if f.Attempts, err = c.attempts(ctx); err != nil {
		return err
	}
	c.users.mu.Lock()
	f.Deeds, f.Hostile = slices.Clone(c.users.deeds), maps.Clone(c.users.hostile)
	jobs := slices.Clone(c.users.jobs)
	c.users.mu.Unlock()
	waits, err := c.Exec(ctx, "root", "squeue", "-h", "-r", "-o", "%i %T %r")
	if err != nil {
		return err
	}
	still := map[string]string{}
	for line := range strings.Lines(waits) {
		id, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		still[id] = why
		c.tellOf(ctx, id)
	}
	for _, j := range jobs {
		for task := range max(j.array, 1) {
			id := j.id
			if j.array > 0 {
				id = fmt.Sprintf("%s_%d", j.id, task)
			}
			f.Jobs = append(f.Jobs, Job{ID: id, Account: j.account, Plain: j.plain(), Submitted: j.at, NoRequeue: j.noRequeue, Waits: still[id]})
		}
	}
	if err := c.journal(ctx, f); err != nil {
		return err
	}
	log, err := os.ReadFile(c.LogFile(testcluster.Slurmctld))
	if err != nil {
		return err
	}
	f.Over = completions(string(log))
	for _, x := range c.sidecars {
		f.Logged = append(f.Logged, forbidden(x.name, x.Log)...)
	}
	return nil
}

// tellOf says all that Slurm and fairlease know of a job that still waits: Slurm's reason alone may be older than the last change.
func (c *campaign) tellOf(ctx context.Context, id string) {
	record, err := c.Exec(ctx, "root", "scontrol", "show", "job", "-o", id)
	words, err2 := c.sidecars[0].Fairlease(ctx, nil, "explain", id)
	c.say("job %s still waits: %s%s%v", id, record, words, errors.Join(err, err2))
}

// attempts reads slurmdbd's own record, job by job: what sacct lists by time lacks jobs that were held while they ran.
func (c *campaign) attempts(ctx context.Context) ([]Attempt, error) {
	highest, err := c.Exec(ctx, "root", "sh", "-c", "sacct -a -X -n -P -S now-1days -o jobidraw | sort -n | tail -n 1")
	if err != nil {
		return nil, err
	}
	last, _ := strconv.Atoi(strings.TrimSpace(highest))
	ids := make([]string, 0, last+20)
	for id := range last + 20 {
		ids = append(ids, strconv.Itoa(id+1))
	}
	out, err := c.Exec(ctx, "root", "env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-D", "-X", "-n", "-P", "-j", strings.Join(ids, ","), "-o", "jobid,account,state,start,end,alloctres,nodelist")
	if err != nil {
		return nil, err
	}
	return parseAttempts(out, c.shards()), nil
}

// completed is slurmctld's line on a job whose script has succeeded: JobId=12, JobId=12_3(15) of a task, or JobId=12+1(13) of a part.
var completed = regexp.MustCompile(`(?m)^\[([^\]]+)\] _job_complete: JobId=([0-9_+]+)(?:\([0-9]+\))? WEXITSTATUS 0$`)

// completions reads when jobs completed from slurmctld's log.
func completions(log string) []Deed {
	var all []Deed
	for _, m := range completed.FindAllStringSubmatch(log, -1) {
		if at, err := time.ParseInLocation(scontrolTime, m[1], time.Local); err == nil {
			all = append(all, Deed{at, strings.TrimSuffix(m[2], "+0"), "over"})
		}
	}
	return all
}

// parseAttempts reads sacct's lines, where a GPU has so many shards.
func parseAttempts(text string, perGPU int) []Attempt {
	var all []Attempt
	moment := func(s string) time.Time {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n == 0 { // Unknown, None
			return time.Time{}
		}
		return time.Unix(n, 0)
	}
	for line := range strings.Lines(text) {
		w := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(w) != 7 {
			continue
		}
		a := Attempt{Job: strings.TrimSuffix(w[0], "+0"), Account: w[1], State: w[2], Start: moment(w[3]), End: moment(w[4])}
		for tres := range strings.SplitSeq(w[5], ",") {
			if n, ok := strings.CutPrefix(tres, "gres/gpu="); ok {
				a.GPUs, _ = strconv.ParseFloat(n, 64)
			} else if n, ok := strings.CutPrefix(tres, "gres/shard="); ok {
				shards, _ := strconv.ParseFloat(n, 64)
				a.GPUs = shards / float64(perGPU)
			}
		}
		if a.GPUs > 0 {
			a.Nodes, _ = hostlist.Expand(w[6])
		}
		// Tasks of an array that never had a record of their own are one row, 12_[3-5%2].
		list, bracket, whole := strings.Cut(a.Job, "_[")
		tasks, _, _ := strings.Cut(strings.TrimSuffix(bracket, "]"), "%")
		ids, err := hostlist.Expand(list + "_[" + tasks + "]")
		if !whole || err != nil {
			all = append(all, a)
			continue
		}
		for _, a.Job = range ids {
			all = append(all, a)
		}
	}
	return all
}

// plain gives the id by which Slurm itself knows a part of a heterogeneous job: 13 for 12+1.
func plain(id string) string {
	first, part, ok := strings.Cut(id, "+")
	a, err := strconv.Atoi(first)
	b, bad := strconv.Atoi(part)
	if !ok || err != nil || bad != nil {
		return id
	}
	return strconv.Itoa(a + b)
}

// journal reads what fairlease wrote down, and puts slurmdbd's record beside it.
func (c *campaign) journal(ctx context.Context, f *Facts) error {
	db, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	rows, err := db.Query(ctx, "select recorded_at from rounds order by 1")
	if err != nil {
		return err
	}
	if f.Rounds, err = pgx.CollectRows(rows, pgx.RowTo[time.Time]); err != nil {
		return err
	}
	rows, err = db.Query(ctx, "select at from events where kind = 'journal_restored' order by 1")
	if err != nil {
		return err
	}
	if f.Told, err = pgx.CollectRows(rows, pgx.RowTo[time.Time]); err != nil {
		return err
	}
	rows, err = db.Query(ctx, `select slurm_id, tenant, sum(ms)::float8 / 1000, array(select started_at from leases l where l.slurm_id = x.slurm_id and started_at is not null)
		from (select slurm_id, tenant, alloc_gpu_ms as ms from jobs
			union all select l.slurm_id, j.tenant, l.gpu_ms from losses l join jobs j on j.key = l.job_key) x
		group by 1, 2`)
	if err != nil {
		return err
	}
	f.Books, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Book, err error) {
		err = row.Scan(&b.Job, &b.Tenant, &b.Ours, &b.Leases)
		b.Moments = slices.Clone(b.Leases)
		return b, err
	})
	if err != nil {
		return err
	}
	parts := map[string]string{} // names by plain id
	for _, a := range f.Attempts {
		parts[plain(a.Job)] = a.Job
	}
	for i := range f.Books {
		f.Books[i].Job = cmp.Or(parts[f.Books[i].Job], f.Books[i].Job)
	}
	for _, a := range f.ran() {
		// A slurmctld that forgot a job gives its id to another one, perhaps of another tenant.
		i := slices.IndexFunc(f.Books, func(b Book) bool { return b.Job == a.Job && b.Tenant == a.Account })
		if i < 0 {
			i = slices.IndexFunc(f.Books, func(b Book) bool { return b.Job == a.Job })
		}
		if i < 0 {
			i = len(f.Books)
			f.Books = append(f.Books, Book{Job: a.Job, Tenant: a.Account})
		}
		b := &f.Books[i]
		b.Slurmdb += a.End.Sub(a.Start).Seconds() * a.GPUs
		b.Cut += a.GPUs / 2
		b.Moments = append(b.Moments, a.Start, a.End)
	}
	err = db.QueryRow(ctx, `select (coalesce((select sum(tenants_gpu_ms + untouchable_gpu_ms) from pools), 0) + coalesce((select sum(gpu_ms) from losses), 0))::float8 / 1000`).Scan(&f.Ledger)
	if err != nil {
		return err
	}
	var unaccounted int64
	if err := db.QueryRow(ctx, "select coalesce(sum(abs(unaccounted_gpu_ms)), 0)::bigint from pool_balance").Scan(&unaccounted); err != nil {
		return err
	}
	if unaccounted != 0 {
		f.Logged = append(f.Logged, fmt.Sprintf("%d GPU-ms are unaccounted for in pool_balance", unaccounted))
	}
	return nil
}

// never is what a sidecar must not log, whatever fails.
var never = regexp.MustCompile(`panic:|fatal error:|the engine broke down|the policy broke down|the policy or a scheduler failed|DATA RACE`)

func forbidden(name, path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if never.MatchString(line) {
			out = append(out, fmt.Sprintf("sidecar %s: %.300s", name, strings.TrimSpace(line)))
		}
	}
	return out
}

// logs gives the ends of the sidecars' logs.
func (c *campaign) logs() string {
	var b strings.Builder
	for _, x := range c.sidecars {
		text, _ := os.ReadFile(x.Log)
		fmt.Fprintf(&b, "%s:\n%s\n", x.name, text[max(0, len(text)-6000):])
	}
	return b.String()
}

// keep copies the sidecars' logs, slurmctld's, and what slurmdbd and the journal have, to a folder.
func (c *campaign) keep(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, path := range map[string]string{"a.log": c.sidecars[0].Log, "b.log": c.sidecars[1].Log, "slurmctld.log": c.LogFile(testcluster.Slurmctld)} {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	out, err := c.Exec(ctx, "root", "sacct", "-a", "-D", "-X", "-P", "-S", "now-1days", "-o", "jobid,jobidraw,account,user,state,submit,eligible,start,end,alloctres,nodelist,restarts")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "sacct.txt"), []byte(out), 0o644); err != nil {
		return err
	}
	dump := exec.CommandContext(ctx, "pg_dump", c.db.DSN(), "--file="+filepath.Join(dir, "journal.sql"))
	if out, err := dump.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_dump: %w: %s", err, out)
	}
	return nil
}
