package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// row is the outcome of a pairing.
type row struct {
	pairing
	strategist, opponent float64       // GPU-seconds that each tenant held in the measurement
	capacity             float64       // GPU-seconds that there were
	gain                 float64       // in percent
	busy                 float64       // of the machine's processors, in percent
	slowest              time.Duration // the longest time between two heartbeats; a daemon with nothing to do beats less often
	grants, failed       int           // leases that were granted in the measurement, and those that did not start
	err                  error
}

// key names the pairing in tables.
func (p pairing) key() string { return p.name + ", " + p.ground() }

// loss gives how much of its due, which is half of all, the honest tenant did not hold, in percent.
func (r *row) loss() float64 { return 100 * max(0, 1-r.opponent/(r.capacity/2)) }

// idle gives how much of all nobody held, in percent.
func (r *row) idle() float64 { return 100 * (1 - (r.strategist+r.opponent)/r.capacity) }

func (r *row) String() string {
	if r.err != nil {
		return fmt.Sprintf("%s: failed: %v", r.key(), r.err)
	}
	return fmt.Sprintf("%-38s gain %+6.1f %%  strategist %5.0f  honest %5.0f  honest below its due %4.1f %%  idle %4.1f %%  grants %d, failed %d  machine busy %3.0f %%  longest without a heartbeat %s",
		r.key(), r.gain, r.strategist, r.opponent, r.loss(), r.idle(), r.grants, r.failed, r.busy, r.slowest.Round(100*time.Millisecond))
}

// idleOn gives how many GPUs idle in the honest rows of a key, in percent.
func idleOn(rows []row, key string) float64 {
	sum, count := 0.0, 0.0
	for _, r := range rows {
		if r.key() == key && r.err == nil {
			sum, count = sum+r.idle(), count+1
		}
	}
	return sum / max(count, 1)
}

// judge sets the gain of all rows: over the mean of the honest rows with jobs as long on the same Slurm with the same gate. A row
// without such rows has failed.
func judge(rows []row) {
	sum, count := map[string]float64{}, map[string]float64{}
	for _, r := range rows {
		if r.isHonest() && r.err == nil {
			sum[r.key()] += r.strategist
			count[r.key()]++
		}
	}
	for i := range rows {
		r := &rows[i]
		switch k := r.base(); {
		case r.err != nil:
		case sum[k] > 0:
			r.gain = 100 * (r.strategist/(sum[k]/count[k]) - 1)
		default:
			r.err = fmt.Errorf("no row %q by which it is judged", k)
		}
	}
}

// cell is what a table says of a row: the gain, the honest tenant's loss and the idle GPUs.
func (r *row) cell() string {
	switch {
	case r.err != nil:
		return ""
	case r.isHonest():
		return fmt.Sprintf("(%.0f, %.0f)", r.loss(), r.idle())
	}
	return fmt.Sprintf("%+.0f (%.0f, %.0f)", r.gain, r.loss(), r.idle())
}

// cells gives the cells of a text that has the table, by the keys of their rows.
func cells(text string) map[string]string {
	out := map[string]string{}
	var grounds []string
	for line := range strings.Lines(text) {
		f := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if f[0] == "strategy" {
			grounds = f
		}
		if len(f) < 3 || len(f) != len(grounds) {
			grounds = nil
			continue
		}
		for i, g := range grounds {
			if slices.Contains(allGrounds(), g) && f[i] != "" && f[i] != g && f[i] != "---" {
				out[f[0]+", "+g] = f[i]
			}
		}
	}
	return out
}

// allGrounds are the columns of a table.
func allGrounds() []string {
	var out []string
	for _, suite := range testcluster.Suites {
		for _, gate := range gates {
			out = append(out, pairing{suite: suite, gate: gate}.ground())
		}
	}
	return out
}

// table writes cells as a table in Markdown: a row a strategy, a column a Slurm with a gate.
func table(cells map[string]string) string {
	var b strings.Builder
	grounds := allGrounds()
	fmt.Fprintf(&b, "| strategy | what the user does | %s | note |\n|---|---|%s---|\n", strings.Join(grounds, " | "), strings.Repeat("---|", len(grounds)))
	for _, s := range slices.Concat(references, strategies) {
		fmt.Fprintf(&b, "| %s | %s |", s.name, s.does)
		for _, g := range grounds {
			fmt.Fprintf(&b, " %s |", cells[s.name+", "+g])
		}
		fmt.Fprintf(&b, " %s |\n", s.note)
	}
	return b.String()
}

// The table stands between these lines of a text.
const tableBegins, tableEnds = "<!-- gains -->\n", "<!-- end of gains -->\n"

// merged puts rows into the table of a text; cells of rows that were not played stay. A text without a table gets one at its end.
func merged(text string, rows []row) string {
	all := cells(text)
	for _, r := range rows {
		if c := r.cell(); c != "" {
			all[r.key()] = c
		}
	}
	before, rest, found := strings.Cut(text, tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		before, after = text, ""
	}
	return before + tableBegins + table(all) + tableEnds + after
}

// worstOf gives the keys of the count highest gains in a text's table, the highest first. Of a table without gains it gives the first
// strategies, on the newest Slurm with the licence gate.
func worstOf(text string, count int) []string {
	gains := map[string]float64{}
	var keys []string
	for key, c := range cells(text) {
		gain, _, _ := strings.Cut(c, " ")
		if n, err := strconv.ParseFloat(gain, 64); err == nil {
			gains[key] = n
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		for _, s := range strategies[:count] {
			keys = append(keys, pairing{"forky", "licence", s}.key())
		}
		return keys
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(gains[b], gains[a]), cmp.Compare(a, b)) })
	return keys[:min(count, len(keys))]
}

// granted counts the leases of GPUs that were granted between two moments, and those whose jobs did not start. A lease behind another one
// has no GPUs of its own.
func granted(ctx context.Context, dsn string, from, to time.Time) (grants, failed int, err error) {
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, 0, err
	}
	defer db.Close(ctx)
	err = db.QueryRow(ctx, `select count(*) filter (where verb = 'grant'), count(*) filter (where verb = 'take_back')
		from (select verb, done_at, reason->>'code' as code, lag(reason->>'code') over (partition by slurm_id order by round, ordinal) as before
			from fairlease.actions where ok and not skipped and not suppressed and verb in ('grant', 'take_back')) as a
		where done_at between $1 and $2 and (verb = 'grant' and code = 'granted' or code = 'no_start' and before = 'granted')`, from, to).Scan(&grants, &failed)
	return grants, failed, err
}

// held gives the GPU-seconds that each account held between two moments, as slurmdbd has them. A suspended job holds its GPUs.
func held(ctx context.Context, c *testcluster.Cluster, from, to time.Time) (map[string]float64, error) {
	out, err := c.Exec(ctx, "root", "env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-D", "-X", "-n", "-P", "-S", from.Add(-time.Hour).Format("2006-01-02T15:04:05"),
		"-o", "account,start,end,alloctres")
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 {
			continue
		}
		start, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue // it never started
		}
		end, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			end = to.Unix() // it runs
		}
		if lasted := min(end, to.Unix()) - max(start, from.Unix()); lasted > 0 {
			sums[f[0]] += float64(lasted) * float64(testcluster.GPUsOf(f[3]))
		}
	}
	return sums, nil
}

// heldInTurns divides the time of the only GPU between two accounts whose jobs take turns on it and ran for so long: one of these is the strategist's. While all
// of them ran, each had an equal part of it.
func heldInTurns(ran map[string]time.Duration, length time.Duration, jobs int) map[string]float64 {
	more := -length.Seconds()
	for _, r := range ran {
		more += r.Seconds()
	}
	each := max(more, 0) / float64(jobs)
	return map[string]float64{strategistsOwn: ran[strategistsOwn].Seconds() - each, opponents: ran[opponents].Seconds() - float64(jobs-1)*each}
}

// work gives the time that all processors together were busy, and the time that they had, since the machine began, in ticks.
func work() (busy, all float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(first)[1:] {
		n, _ := strconv.ParseFloat(f, 64)
		if i >= 8 { // guests are counted in user
			break
		}
		all += n
		if i != 3 && i != 4 { // idle, iowait
			busy += n
		}
	}
	return busy, all
}
