package api_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// large is a site with 10,000 jobs and 2,000 nodes.
var large = scenetest.Site{Nodes: 2_000, Jobs: 10_000, Counters: true}

// BenchmarkJobs answers one question about 100 jobs.
func BenchmarkJobs(b *testing.B) {
	d := newDesk(large)
	for i := 0; b.Loop(); i++ {
		if w := d.ask(operator, fmt.Sprintf("/api/v1/jobs?limit=100&after=%d", i*7919%9000)); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}

// BenchmarkScene makes a Scene of a round, as for every new one.
func BenchmarkScene(b *testing.B) {
	f := large.Facts()
	for b.Loop() {
		scene.Of(f)
	}
}

// BenchmarkPart makes the part of a Scene that a user sees.
func BenchmarkPart(b *testing.B) {
	f := large.Facts()
	for b.Loop() {
		s := scene.Of(f)
		s.For(scene.Scope{Tenants: []string{"t003"}})
	}
}
