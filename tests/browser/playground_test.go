package browser

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim/playground"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// history is two accounts in sacct's words: 600 jobs in six days, more than four GPUs can take.
func history() string {
	var b strings.Builder
	b.WriteString("JobID|User|Account|State|Restarts|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|ReqTRES|JobName\n")
	for i := range 600 {
		account, minutes := []string{"vision", "nlp<b>"}[i%7/4], 10+i*37%90
		at := func(m int) string {
			m += i * 14
			return "2026-01-0" + string(rune('1'+m/1440)) + "T" + two(m/60%24) + ":" + two(m%60) + ":00"
		}
		b.WriteString(strings.Join([]string{number(1000 + i), "u" + number(i%3), account, "COMPLETED", "0", at(0), at(5), at(5 + minutes), number(60 * minutes), "240",
			"cpu=4,gres/gpu=" + number(1+i%2), "cpu=4,gres/gpu=" + number(1+i%2), "train"}, "|") + "\n")
	}
	return b.String()
}

func number(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return number(n/10) + number(n%10)
}

func two(n int) string { return number(n/10) + number(n%10) }

// rows gives the table that the page shows first, as a browser's text has it.
func rows(t *testing.T, w *playground.World, c *playground.Choice) []string {
	t.Helper()
	var runs []score.Scores
	for _, name := range playground.Schedulers() {
		o, err := w.Run(context.Background(), c, name, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, o.Scores)
	}
	var b bytes.Buffer
	if err := report.Head(&b, runs); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range regexp.MustCompile(`(?s)<tr>(.*?)</tr>`).FindAllStringSubmatch(b.String(), -1)[1:] {
		text := regexp.MustCompile(`</td><td[^>]*>`).ReplaceAllString(line[1], "\t")
		out = append(out, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, ""))
	}
	return out
}

// TestPlayground simulates generated jobs and a history in a browser: the numbers are those of the program on this host, in a bright window and on
// a dark telephone. Rounds are replayed, a simulation is stopped, bad files are explained, and no request is made but for the page's own files.
func TestPlayground(t *testing.T) {
	needs(t)
	p, err := ServePlayground()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	keeps(t, p)
	const slow = 180
	text := history()
	generated, err := playground.Generate(playground.Recipe{Nodes: "2x8", Tenants: 3, Load: 1.2, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	own, err := playground.Read("history.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	shown := func(what string) string { return `document.body.innerText.includes("` + what + `")` }
	file := []Step{{Until: Ready, Seconds: slow}, {Click: "input[value=file]"}, {Into: "#file", Name: "history.txt", Text: text, Until: Ready, Seconds: slow}}
	bad := func(name, text, says string) Visit {
		return Visit{Name: "playground-" + name, Path: "/", NoAxe: true, Steps: []Step{{Until: Ready, Seconds: slow}, {Click: "input[value=file]"},
			{Into: "#file", Name: name, Text: text, Until: shown(says)}, {Until: `document.getElementById("run").disabled`}}}
	}
	visits := []Visit{
		{Name: "playground", Path: "/", Steps: []Step{
			{Until: Ready, Seconds: slow}, {Into: "#tenants", Text: "3"}, {Into: "#load", Text: "1.2"}, {Into: "#seed", Text: "7"},
			{Into: "#nodes", Text: "2x8"}, {Until: Ready + " && " + shown(number(generated.Facts().Jobs)+" jobs of 3 accounts"), Seconds: slow},
			{Click: "#run", Until: Done, Seconds: slow},
			{Click: "#record", Until: `!document.getElementById("record").disabled && !document.getElementById("film").hidden`, Seconds: slow},
			{Click: "#on"}, {Click: "#on", Until: `document.getElementById("round").value === "2"`},
			{Click: "#round"}, {Key: "Home", Until: `document.getElementById("round").value === "0"`},
			{Key: "ArrowRight", Until: `document.getElementById("round").value === "1" && document.querySelectorAll("#floor rect").length === 16 && document.querySelectorAll("#floor rect.held").length > 0`},
		}},
		{Name: "playground-phone", Path: "/", Width: 390, Height: 844, Scheme: "dark", Steps: append(slices.Clone(file), Step{Into: "#nodes", Text: "2x2"}, Step{Click: "#weighing summary"},
			Step{Into: "#weights tr:nth-child(2) input", Text: "3"}, Step{Click: "#run", Until: Done, Seconds: slow},
			Step{Click: "#record", Until: `!document.getElementById("record").disabled && !document.getElementById("film").hidden`, Seconds: slow})},
		{Name: "playground-stop", Path: "/", NoAxe: true, Steps: []Step{
			{Until: Ready, Seconds: slow}, {Into: "#nodes", Text: "64x8"}, {Until: Ready + " && " + shown(" GPUs on average, the largest 8"), Seconds: slow}, {Click: "#run"},
			{Click: "#stop", Until: shown("Stopped.") + " && " + Ready, Seconds: slow}, {Into: "#nodes", Text: "1x1"}, {Until: Ready, Seconds: slow}, {Click: "#run", Until: Done, Seconds: slow}}},
		bad("empty.txt", "", "the file is empty: look whether the command that wrote it had an error"),
		bad("picture.png", "\x89PNG", "is the start of no trace that can be read"),
		bad("noheader.txt", "1|a|b|COMPLETED\n", "is not the header of sacct -P (without -n)"),
		bad("nogpus.txt", strings.ReplaceAll(text, "gres/gpu", "gres/x"), "AccountingStorageTRES in slurm.conf has to name gres/gpu"),
		bad("rows.txt", strings.Split(text, "\n")[0]+"\n1|u|a|COMPLETED|0|never|never|never|x|60|gres/gpu=1|gres/gpu=1|t\n", "look at line 2"),
	}
	found := look(t, p.URL, visits)
	for i, want := range [][]string{
		rows(t, generated, &playground.Choice{Nodes: "2x8", Interval: "60s", Until: "7d"}),
		rows(t, own, &playground.Choice{Nodes: "2x2", Interval: "60s", Until: "6d", Weights: map[string]int64{"vision": 3, "nlp<b>": 1}}),
	} {
		for _, row := range want {
			if !strings.Contains(found[i].After, row) {
				t.Errorf("%s does not show %q, as on this host:\n%s", found[i].Name, row, found[i].After)
			}
		}
	}
	if !strings.Contains(found[1].After, "nlp<b>") {
		t.Error("the name of an account is not shown as it is")
	}
	files := []string{"GET /", "GET /charts.js", "GET /fairlease.wasm.gz", "GET /playground.css", "GET /playground.js", "GET /report.css", "GET /wasm_exec.js", "GET /worker.js"}
	asked := slices.Compact(slices.Sorted(slices.Values(p.Asked())))
	if !slices.Equal(asked, files) {
		t.Errorf("the page asked for %q, and has but %q", asked, files)
	}
}

// keeps tries what a page that leaks would do: neither the page nor a worker of it gets through to another host.
func keeps(t *testing.T, p *Playground) {
	t.Helper()
	var leaked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	t.Cleanup(other.Close)
	try := `fetch("` + other.URL + `/leak", {method: "POST", mode: "no-cors", body: "x"})`
	all, err := Look(".", p.URL, "", []Visit{{Name: "leak", Path: "/", NoAxe: true, Steps: []Step{
		{Until: "(" + try + `.catch(() => window.page = 1), window.tried = 1)`}, {Until: "window.page === 1"},
		{Until: "(() => { const w = new Worker(URL.createObjectURL(new Blob(['" + try + `.then(() => postMessage(2), () => postMessage(1))']))); w.onmessage = m => window.work = m.data; return true; })()`},
		{Until: "window.work === 1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := leaked.Load(); n > 0 {
		t.Errorf("another host got %d requests", n)
	}
	for _, e := range all[0].Errors {
		if strings.Contains(e, "never was true") {
			t.Error(e)
		}
	}
}
