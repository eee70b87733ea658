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

// idleOn gives how many GPUs idle in the honest rows of a ground, in percent.
func idleOn(rows []row, ground string) float64 {
	sum, count := 0.0, 0.0
	for _, r := range rows {
		if r.name == honest.name && r.ground() == ground && r.err == nil {
			sum, count = sum+r.idle(), count+1
		}
	}
	return sum / max(count, 1)
}

// judge sets the gain of all rows: over the mean of the honest rows of the same Slurm and gate.
func judge(rows []row) {
	sum, count := map[string]float64{}, map[string]float64{}
	for _, r := range rows {
		if r.name == honest.name && r.err == nil {
			sum[r.ground()] += r.strategist
			count[r.ground()]++
		}
	}
	for i := range rows {
		r := &rows[i]
		if k := r.ground(); sum[k] > 0 && r.err == nil {
			r.gain = 100 * (r.strategist/(sum[k]/count[k]) - 1)
		}
	}
}

// table writes rows as a table in Markdown, a row a strategy with its gains on each Slurm with each gate.
func table(rows []row) string {
	var grounds, names []string
	does, cells := map[string]string{}, map[string]string{}
	for _, r := range rows {
		if !slices.Contains(grounds, r.ground()) {
			grounds = append(grounds, r.ground())
		}
		if r.name == honest.name || r.name == day.name || r.name == thousand.name {
			continue
		}
		if !slices.Contains(names, r.name) {
			names = append(names, r.name)
			does[r.name] = r.does
		}
		cells[r.key()] = fmt.Sprintf("%+.0f (%.0f, %.0f)", r.gain, r.loss(), r.idle())
		if r.err != nil {
			cells[r.key()] = "failed"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n| strategy | what the user does | %s |\n|---|---|%s\n", strings.Join(grounds, " | "), strings.Repeat("---|", len(grounds)))
	for _, n := range names {
		fmt.Fprintf(&b, "| %s | %s |", n, does[n])
		for _, g := range grounds {
			fmt.Fprintf(&b, " %s |", cells[n+", "+g])
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "\nEach cell: the gain in percent (the honest tenant below its due, GPUs idle; both in percent).\n")
	for _, g := range grounds {
		fmt.Fprintf(&b, "Both honest, %s:", g)
		for _, r := range rows {
			if r.name == honest.name && r.ground() == g && r.err == nil {
				fmt.Fprintf(&b, " %.0f and %.0f GPU-s (%.0f, %.0f)", r.strategist, r.opponent, r.loss(), r.idle())
			}
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// worstOf reads a text with a table of table, and gives the keys of its count highest gains, the highest first.
func worstOf(text string, count int) []string {
	type cell struct {
		key  string
		gain float64
	}
	var grounds []string
	var cells []cell
	for line := range strings.Lines(text) {
		f := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		switch {
		case len(f) < 3:
			grounds = nil
		case f[0] == "strategy":
			grounds = f[2:]
		case len(f) == 2+len(grounds):
			for i, g := range grounds {
				gain, _, _ := strings.Cut(f[2+i], " ")
				if n, err := strconv.ParseFloat(gain, 64); err == nil {
					cells = append(cells, cell{f[0] + ", " + g, n})
				}
			}
		}
	}
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(b.gain, a.gain) })
	var out []string
	for _, c := range cells[:min(count, len(cells))] {
		out = append(out, c.key)
	}
	return out
}

// granted counts the leases that were granted between two moments, and those whose jobs did not start.
func granted(ctx context.Context, dsn string, from, to time.Time) (grants, failed int, err error) {
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, 0, err
	}
	defer db.Close(ctx)
	err = db.QueryRow(ctx, `select count(*) filter (where verb = 'grant'), count(*) filter (where verb = 'take_back')
		from fairlease.actions where ok and not skipped and not suppressed and done_at between $1 and $2`, from, to).Scan(&grants, &failed)
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
			sums[f[0]] += float64(lasted) * float64(gpus(f[3]))
		}
	}
	return sums, nil
}

// gpus gives the GPUs of a list of TRES.
func gpus(tres string) int {
	for t := range strings.SplitSeq(tres, ",") {
		if n, ok := strings.CutPrefix(t, "gres/gpu="); ok {
			n, _ := strconv.Atoi(n)
			return n
		}
	}
	return 0
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
