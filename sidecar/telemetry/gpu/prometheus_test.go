package gpu

import (
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
	"github.com/fairlease/fairlease/tests/monitoring"
)

// A real Prometheus that scrapes exporters of three versions tells the same as the exporters themselves. A node that is no
// longer scraped is not believed after a while.
func TestARealPrometheus(t *testing.T) {
	versions := map[string]gputest.Version{"old": gputest.V3, "middle": gputest.V46, "new": gputest.V49}
	var nodes []Node
	var targets []string
	servers := map[string]*httptest.Server{}
	for _, name := range []string{"old", "middle", "new"} {
		s := httptest.NewServer(text((&gputest.Node{Version: versions[name], Host: name, Devices: devices()}).Text()))
		t.Cleanup(s.Close)
		servers[name] = s
		nodes = append(nodes, Node{Name: name, Host: name, Address: strings.TrimPrefix(s.URL, "http://")})
		targets = append(targets, fmt.Sprintf("%q", strings.TrimPrefix(s.URL, "http://")))
	}
	url := monitoring.Prometheus(t, "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: dcgm, static_configs: [{targets: ["+strings.Join(targets, ", ")+"]}]}]\n")
	read := func(maxAge cluster.Span) []Reading {
		src, err := NewPrometheus(url, `job="dcgm"`, DefaultTable(), Web{}, PrometheusLimits, maxAge, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := src.Read(t.Context(), nodes)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	until := func(what string, holds func(got []Reading) bool, maxAge cluster.Span) []Reading {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			got := read(maxAge)
			if holds(got) {
				return got
			}
			if time.Now().After(deadline) {
				t.Fatalf("not within a minute: %s: %+v", what, got)
			}
		}
	}
	all := func(got []Reading) bool { return got[0].Err == nil && got[1].Err == nil && got[2].Err == nil }
	through := until("all nodes are seen", all, 2*cluster.Minute)
	direct, err := source(t, "http://{address}/", Web{}, ExporterLimits).Read(t.Context(), nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		if len(direct[i].Rows) == 0 || len(direct[i].Rows) != len(through[i].Rows) {
			t.Fatalf("%s: %d GPUs, and %d through Prometheus (%v)", nodes[i].Name, len(direct[i].Rows), len(through[i].Rows), direct[i].Err)
		}
		for k := range direct[i].Rows {
			a, b := direct[i].Rows[k], through[i].Rows[k]
			for m := range a.Values {
				if a.Values[m] != b.Values[m] && !(math.IsNaN(float64(a.Values[m])) && math.IsNaN(float64(b.Values[m]))) {
					t.Errorf("%s, GPU %d, %s: %v, and %v through Prometheus", nodes[i].Name, a.Index, meaningNames[m], a.Values[m], b.Values[m])
				}
			}
			if a.Index != b.Index || a.Instance != b.Instance || a.Model != b.Model || a.Job != b.Job {
				t.Errorf("%s: %+v, and %+v through Prometheus", nodes[i].Name, a, b)
			}
		}
	}
	servers["middle"].Close()
	until("only the middle one is lost", func(got []Reading) bool { return got[0].Err == nil && got[1].Err != nil && got[2].Err == nil }, 5*cluster.Second)
}
