package monitoring

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const etc = "../../etc/"

// units are Grafana's names of the units that panels may have.
var units = []string{"none", "s", "bytes", "ops", "reqps"}

// exported lists the metrics that the daemon has, from the package's own test.
func exported(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../sidecar/daemon/metrics/testdata/round.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		names = append(names, name)
		if base, ok := strings.CutSuffix(name, "_count"); ok {
			names = append(names, base+"_bucket")
		}
	}
	return names
}

var metric = regexp.MustCompile(`\bfairlease_[a-z0-9_]+`)

func TestDashboards(t *testing.T) {
	all, err := Dashboards(etc + "grafana")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 {
		t.Fatalf("%d dashboards, want 3", len(all))
	}
	known, uids := exported(t), map[string]bool{}
	for _, d := range all {
		if d.UID == "" || uids[d.UID] || len(d.UID) > 40 || d.Title == "" || d.Description == "" || d.Schema < 36 {
			t.Errorf("dashboard %q: uid %q, description %q, schema %d", d.Title, d.UID, d.Description, d.Schema)
		}
		uids[d.UID] = true
		chosen := map[string]bool{"__rate_interval": true}
		for _, v := range d.Templating.List {
			chosen[v.Name] = true
			if v.Type == "query" && !regexp.MustCompile(`label_values\(`).Match(v.Query) {
				t.Errorf("%s: variable %s has the query %s", d.Title, v.Name, v.Query)
			}
		}
		if !chosen["datasource"] {
			t.Errorf("%s: no variable for the data source", d.Title)
		}
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.Description == "" || !slices.Contains([]string{"stat", "timeseries"}, p.Type) || !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
				t.Errorf("%s: panel %d %q of type %q has unit %q, description %q", d.Title, p.ID, p.Title, p.Type, p.FieldConfig.Defaults.Unit, p.Description)
			}
			ids[p.ID] = true
			if p.Place.W < 1 || p.Place.H < 1 || p.Place.X < 0 || p.Place.X+p.Place.W > 24 {
				t.Errorf("%s: panel %q lies at %+v", d.Title, p.Title, p.Place)
			}
			for _, q := range d.Panels[:i] {
				if p.Place.X < q.Place.X+q.Place.W && q.Place.X < p.Place.X+p.Place.W && p.Place.Y < q.Place.Y+q.Place.H && q.Place.Y < p.Place.Y+p.Place.H {
					t.Errorf("%s: panels %q and %q overlap", d.Title, p.Title, q.Title)
				}
			}
			if len(p.Targets) == 0 || p.Datasource != (Datasource{"prometheus", "${datasource}"}) {
				t.Errorf("%s: panel %q has %d queries of data source %v", d.Title, p.Title, len(p.Targets), p.Datasource)
			}
			for _, x := range p.Targets {
				if x.Datasource != p.Datasource || x.Ref == "" || x.Legend == "" {
					t.Errorf("%s: panel %q: a query without a legend, or of another data source", d.Title, p.Title)
				}
				for _, name := range metric.FindAllString(x.Expr, -1) {
					if !slices.Contains(known, name) {
						t.Errorf("%s: panel %q asks for %s, which the daemon does not have", d.Title, p.Title, name)
					}
				}
				for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(x.Expr, -1) {
					if !chosen[v[1]] {
						t.Errorf("%s: panel %q uses $%s, which is no variable", d.Title, p.Title, v[1])
					}
				}
			}
		}
	}
}

// Every alarm waits, says how bad it is and what to do, has a section in the runbook, and fires in a test.
func TestAlarms(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	text := read(etc + "prometheus/fairlease.rules.yml")
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	tested, runbook, known, n := read(etc+"prometheus/fairlease.rules.test.yml"), read("../../docs/runbook.md"), exported(t), 0
	var names []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			n++
			names = append(names, r.Alert)
			if r.For == "" || r.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) ||
				!strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbook.md#"+strings.ToLower(r.Alert)) {
				t.Errorf("alarm %s: %+v", r.Alert, r)
			}
			if !strings.Contains(runbook, "\n## "+r.Alert+"\n") {
				t.Errorf("docs/runbook.md has no section for %s", r.Alert)
			}
			if !strings.Contains(tested, "alertname: "+r.Alert+"\n        exp_alerts:\n") {
				t.Errorf("no test in which %s fires", r.Alert)
			}
			for _, name := range metric.FindAllString(r.Expr, -1) {
				if !slices.Contains(known, name) {
					t.Errorf("alarm %s asks for %s, which the daemon does not have", r.Alert, name)
				}
			}
		}
	}
	if n == 0 {
		t.Fatal("no alarms")
	}
	for _, section := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(runbook, -1) {
		if !slices.Contains(names, section[1]) {
			t.Errorf("docs/runbook.md has a section %q, which is no alarm", section[1])
		}
	}
}

// Prometheus itself accepts the alarms, and they fire when they should.
func TestAlarmsFire(t *testing.T) {
	promtool := Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", etc + "prometheus/fairlease.rules.yml"}, {"test", "rules", etc + "prometheus/fairlease.rules.test.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
