package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
	"github.com/fairlease/fairlease/tests/monitoring"
)

// A real Prometheus that scrapes a real daemon fills every panel of the dashboards, and accepts the alarms. Users of its tenants ask its web
// server, and a real Chromium looks at the page.
func TestDashboards(t *testing.T) {
	t.Parallel()
	suite := "forky"
	accounts := tenants(1, 1)
	accounts[1].Users = []string{"bob", "carol"} // carol is of both
	r := newRig(t, suite, usual[suite], testcluster.Options{Accounts: accounts, Plugin: testcluster.PluginC})
	config := r.configure("budgets: {nlp: {gpu_hours: 1000}}\n")
	end := r.serve(config)
	r.heard()
	r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1", "--no-requeue") // binds its GPU
	for range 4 {
		r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
		r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
	}
	log, err := os.ReadFile(logOf(config))
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`"address":"([^"]+)"`).FindSubmatch(log)
	if said == nil {
		t.Fatalf("the daemon does not say where its metrics are:\n%s", log)
	}
	rules, err := filepath.Abs("../../etc/prometheus/fairlease.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	prometheus := monitoring.Prometheus(t, fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: fairlease, static_configs: [{targets: [%q]}]}]\n", rules, said[1]))
	dashboards, err := monitoring.Dashboards("../../etc/grafana")
	if err != nil || len(dashboards) == 0 {
		t.Fatalf("%d dashboards, %v", len(dashboards), err)
	}
	var empty []string
	full := func() bool {
		empty = empty[:0]
		for _, d := range dashboards {
			for _, p := range d.Panels {
				for i := range p.Targets {
					if err := answered(prometheus, p.Targets[i].Plain("30s")); err != nil {
						empty = append(empty, fmt.Sprintf("%s, %s: %s: %v", d.Title, p.Title, p.Targets[i].Expr, err))
					}
				}
			}
		}
		return len(empty) == 0
	}
	for deadline := time.Now().Add(3 * time.Minute); !full(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("panels that stayed empty:\n%s", strings.Join(empty, "\n"))
		}
	}
	var alarms struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := ask(prometheus+"/api/v1/rules", &alarms); err != nil || len(alarms.Data.Groups) == 0 {
		t.Fatalf("the alarms: %v, %v", alarms, err)
	}
	for _, rule := range alarms.Data.Groups[0].Rules {
		if rule.Health != "ok" {
			t.Errorf("alarm %s is %s: %s", rule.Name, rule.Health, rule.LastError)
		}
	}
	r.rights()
	r.page(config, "nlp")
	end(syscall.SIGTERM)
}

// answered tells why a query has no number as its answer; nil = it has.
func answered(prometheus, query string) error {
	var reply struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := ask(prometheus+"/api/v1/query?query="+url.QueryEscape(query), &reply); err != nil {
		return err
	}
	if reply.Status != "success" {
		return fmt.Errorf("%s", reply.Error)
	}
	for _, row := range reply.Data.Result {
		if row.Value[1] != "NaN" {
			return nil
		}
	}
	return fmt.Errorf("%d rows, none with a number", len(reply.Data.Result))
}

func ask(address string, into any) error {
	res, err := http.Get(address)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(into)
}
