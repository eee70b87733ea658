package explain_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// codes reads all reasons' codes from the vocabulary's source.
func codes(t *testing.T) []cluster.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../cluster/reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []cluster.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Code" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, cluster.Code(value))
		}
		return true
	})
	if len(out) < 25 {
		t.Fatalf("only %d codes found", len(out))
	}
	return out
}

// Every code has a sentence of its own, with and without numbers.
func TestSentences(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000)
	w := explain.Words{Now: now, Job: func(k cluster.JobKey) string { return map[cluster.JobKey]string{7: "4711_3"}[k] }}
	var b strings.Builder
	for _, code := range codes(t) {
		full := cluster.Reason{Code: code, Pool: "v100", Need: cluster.CountOf(4), Free: cluster.CountOf(3), Behind: 2 * cluster.Minute, Other: "vision",
			OtherBehind: cluster.Hour, Rank: 2, Until: now.Add(5 * cluster.Minute), For: 7, Note: "a note",
			Cell: "rack", Chain: "h100-rack", Right: cluster.Guaranteed, Spent: cluster.Hour, Fits: 20 * cluster.Minute,
			Budget: &cluster.TenantBudget{Since: now.Add(-cluster.Hour)},
			Bound:  &cluster.BindLimit{Tenant: "nlp", Kept: 7_500_000, Held: 500_000, Max: 800_000, Until: now.Add(cluster.Hour)}}
		bare, third := cluster.Reason{Code: code}, full
		third.OtherJob, third.Time = 7, 666_667
		list := []cluster.Reason{full, bare}
		if code == cluster.ReasonTurn || code == cluster.ReasonPaused {
			list = append(list, third)
		}
		for _, r := range list {
			said := w.Reason(r)
			b.WriteString(string(code) + ": it " + said + "\n")
			if said == string(code) || said == string(code)+": a note" {
				t.Errorf("%s has no sentence: add one to explain.go, and a few words to short.go", code)
			}
		}
	}
	const golden = "testdata/sentences.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("sentences changed (run with -rewrite if that is meant):\n%s", d)
	}
}

// Where Slurm starts no jobs of a kind, the sentence says who can change that.
func TestWhoCanChangeIt(t *testing.T) {
	for reason, want := range map[string]string{
		"AssocGrpGRES": "an administrator can change it (sacctmgr)", "QOSMaxJobsPerUser": "an administrator can change it (sacctmgr)",
		"MaxGRESPerAccount": "an administrator can change it (sacctmgr)", "AccountNotAllowed": "an administrator can change it (scontrol update partition)",
		"PartitionTimeLimit": "its owner can shorten the time limit (scontrol update job)", "Licenses": "an administrator can change their number (Licenses in slurm.conf)",
		"BadConstraints": "its owner can change its request (scontrol update job)", "Resources": "its owner can change its request (scontrol update job)",
	} {
		said := explain.Words{}.Reason(cluster.Reason{Code: cluster.ReasonRefused, Note: reason})
		if !strings.Contains(said, "(Slurm says: "+reason+"); ") || !strings.Contains(said, want+"; one is tried again") {
			t.Errorf("%s: %q does not say %q", reason, said, want)
		}
	}
}

// A start whose job was requeued at once is no word of Slurm's: the sentences say so, when the next try is, and what ends the wait.
func TestRequeuedAtTheStart(t *testing.T) {
	for code, want := range map[cluster.Code]string{
		cluster.ReasonFailed:  "was requeued right after its start, not by fairlease; it is tried again at 2027-01-15 08:05:00; the wait doubles with each such requeue, up to an hour, until a start lasts for a minute",
		cluster.ReasonRefused: "waits: jobs of its kind were requeued right after their start, not by fairlease; one is tried again at 2027-01-15 08:05:00, or when the cause may be gone; until one stays for a minute, the others are due nothing",
	} {
		at := cluster.InstantOf(time.Date(2027, 1, 15, 8, 5, 0, 0, time.UTC))
		if got := (explain.Words{}).Reason(cluster.Reason{Code: code, Note: cluster.RequeuedAtStart, Until: at}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Where jobs queue instead of tenants, they appear by their ids.
func TestWhoQueues(t *testing.T) {
	w := explain.Words{Job: func(k cluster.JobKey) string { return map[cluster.JobKey]string{7: "4711_3"}[k] }}
	r := cluster.Reason{Code: cluster.ReasonBehind, Need: cluster.CountOf(1), Behind: cluster.Minute, Other: "vision", OtherBehind: cluster.Hour}
	job, ranked := r, r
	job.Queue, job.OtherJob = cluster.JobQueues, 7
	ranked.Rank = 2
	for _, c := range []struct {
		r    cluster.Reason
		want string
	}{
		{r, "tenant vision went first: it is 1 h behind its due, this job's tenant is 1 min behind its due"},
		{job, "job 4711_3 of tenant vision went first: it is 1 h behind its due, this job is 1 min behind its due"},
		{ranked, "tenant vision went first: it is 1 h behind its due, this job's tenant is 1 min behind its due; it is number 2 in its tenant's queue"},
		{cluster.Reason{Code: cluster.ReasonHolding, Queue: cluster.JobQueues, Behind: cluster.Minute}, "; it is 1 min behind"},
		{cluster.Reason{Code: cluster.ReasonBurst}, "its tenant holds its maximum"},
	} {
		if got := w.Reason(c.r); !strings.Contains(got, c.want) {
			t.Errorf("%s\nis not in  %s", c.want, got)
		}
	}
}

// The explanation of a job that lacks a cell names the holder.
func TestRights(t *testing.T) {
	w := explain.Words{}
	for _, c := range []struct {
		r    cluster.Reason
		want string
	}{
		{cluster.Reason{Code: cluster.ReasonCells, Need: cluster.CountOf(8), Cell: "node", Chain: "rack", For: 7, Right: cluster.Opportunistic},
			"no cell of type node (chain rack) is free; job #7 has one, lent to it; that lease is recalled, and this job starts when the GPUs are free"},
		{cluster.Reason{Code: cluster.ReasonCells, Need: cluster.CountOf(8), Cell: "rack", Chain: "rack", For: 7, Right: cluster.Shared},
			"no cell of type rack is free; job #7 has one, by its tenant's share; when that lease ends"},
		{cluster.Reason{Code: cluster.ReasonCells, Need: cluster.CountOf(8), Cell: "rack", For: 7}, "job #7 has one, without a lease that could be ended; when that job ends, the cell is free"},
		{cluster.Reason{Code: cluster.ReasonCells, Need: cluster.CountOf(8), Cell: "rack", Until: 1_800_000_000_000}, "is free; the next lease that could serve it ends at 2027-01-15 08:00:00"},
		{cluster.Reason{Code: cluster.ReasonCells, Need: cluster.CountOf(8), Cell: "rack", Cut: true}, "no cell of type rack is free; its gang fits into cells in too many ways to try all, so there may be one"},
		{cluster.Reason{Code: cluster.ReasonLost, Need: cluster.CountOf(8), Cell: "rack", Note: "n3 is down"}, "no cell of type rack is left, since hardware is bad: n3 is down; it can start when that is repaired"},
		{cluster.Reason{Code: cluster.ReasonRecalled, Right: cluster.Opportunistic, For: 7}, "its GPUs were lent, and their owner needs them; they go to job #7"},
	} {
		if got := w.Reason(c.r); !strings.Contains(got, c.want) {
			t.Errorf("%s\nis not in  %s", c.want, got)
		}
	}
	seen := map[string]bool{}
	for _, class := range []cluster.LeaseClass{cluster.Guaranteed, cluster.Shared, cluster.Opportunistic, "of_tomorrow"} {
		said := explain.Right(class)
		if !strings.HasPrefix(said, string(class)) || seen[said] {
			t.Errorf("%s is said as %q", class, said)
		}
		seen[said] = true
	}
}

// Every code has a few words of its own for tables.
func TestShort(t *testing.T) {
	seen := map[string]cluster.Code{}
	for _, code := range codes(t) {
		words := explain.Short(code)
		if other := seen[words]; words == "" || words == strings.ReplaceAll(string(code), "_", " ") || other != "" {
			t.Errorf("%s is %q in short, and %q too", code, words, other)
		}
		seen[words] = code
	}
	if got := explain.Short("of_tomorrow"); got != "of tomorrow" {
		t.Error(got)
	}
}

func TestUnknownCode(t *testing.T) {
	if got := (explain.Words{}).Reason(cluster.Reason{Code: "of_tomorrow", Note: "n"}); got != "of_tomorrow: n" {
		t.Error(got)
	}
}

func TestTimes(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000) // 2027-01-15 08:00:00 UTC
	w := explain.Words{Now: now}
	for at, want := range map[cluster.Instant]string{
		now:                          "08:00:00 (now)",
		now.Add(90 * cluster.Second): "08:01:30 (in 1 min 30 s)",
		now.Add(-cluster.Minute):     "07:59:00 (1 min ago)",
		now.Add(2 * cluster.Day):     "2027-01-17 08:00:00 (in 2 d)",
	} {
		if got := w.Time(at); got != want {
			t.Errorf("%v is said as %s, want %s", at, got, want)
		}
	}
	if got := (explain.Words{}).Time(now); got != "2027-01-15 08:00:00" {
		t.Error(got)
	}
	// A moment that is not known has no distance; one to come that has passed is awaited now.
	if got := w.Time(0) + "|" + w.Off(0) + "|" + w.Ahead(0) + "|" + (explain.Words{}).Off(now); got != "a time not known|a time not known|a time not known yet|a time not known" {
		t.Error(got)
	}
	for at, want := range map[cluster.Instant]string{now: "at 08:00:00 (now)", now.Add(cluster.Minute): "at 08:01:00 (in 1 min)", now.Add(-21 * cluster.Second): "now (due since 07:59:39)", 0: "at a time not known yet"} {
		if got := w.Reason(cluster.Reason{Code: cluster.ReasonClaim, Need: cluster.CountOf(2), Until: at}); !strings.HasSuffix(got, "it starts when the leases there end, "+want) {
			t.Errorf("%d: %s", at, got)
		}
	}
	if got := w.Reason(cluster.Reason{}); got == "" {
		t.Error("a job without a reason is told nothing")
	}
}
