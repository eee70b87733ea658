package page_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// Charts have the time of the site on both sides of a change of summer time, whatever the zone of the reader.
func TestChartsOverAChangeOfSummerTime(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 20})
	d.pages = (&page.Pages{Source: d, Zone: zone}).Handler()
	_, text := d.ask(rights.Person{Operator: true}, "/")
	m := regexp.MustCompile(`data-offsets="([^"]+)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the page has no offsets")
	}
	last := time.Now().Year() - 1
	var moments []time.Time
	for _, month := range []time.Month{time.March, time.October} {
		change := time.Date(last, month, 31, 1, 0, 0, 0, time.UTC)
		change = change.AddDate(0, 0, -int(change.Weekday())) // the last Sunday
		moments = append(moments, change.Add(-time.Second), change, change.Add(time.Hour), change.AddDate(0, 0, 7))
	}
	script, err := os.ReadFile("../../show/chart/draw.js")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(script), "\tconst offsets = ")
	body, _, ok2 := strings.Cut(after, "\n\t};\n")
	if !ok || !ok2 {
		t.Fatal("draw.js has no clock any more")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	var asks, want []string
	for _, at := range moments {
		asks = append(asks, fmt.Sprint(at.Unix()))
		want = append(want, at.In(zone).Format("2006-1-2 15:4"))
	}
	program := fmt.Sprintf(`const document = {body: {dataset: {offsets: %q}}}; const offsets = %s
	}; for (const s of [%s]) { const t = clock(s); console.log(t.getFullYear() + "-" + (t.getMonth() + 1) + "-" + t.getDate() + " " + String(t.getHours()).padStart(2, "0") + ":" + t.getMinutes()); }`,
		m[1], body, strings.Join(asks, ","))
	for _, reader := range []string{"UTC", "Asia/Tokyo", "America/New_York"} {
		c := exec.CommandContext(t.Context(), node, "-e", program)
		c.Env = append(os.Environ(), "TZ="+reader)
		out, err := c.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != strings.Join(want, "\n") {
			t.Errorf("a reader in %s: %v\n%s\nwant\n%s", reader, err, got, strings.Join(want, "\n"))
		}
	}
}
