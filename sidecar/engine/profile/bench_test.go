package profile

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// large gives a book of 40 references on 8 models and 50 tenants with 10 kinds each, known on
// half of the models.
func large() (b *Book, models []string, kinds []cluster.Kind) {
	b = New(Default(), nil, nil)
	for m := range 8 {
		models = append(models, fmt.Sprintf("m%d", m))
	}
	for r := range 40 {
		for m, model := range models {
			b.put(&cluster.Profile{Kind: cluster.Kind(fmt.Sprintf("ref%02d", r)), Model: model, Gang: 1, Rate: float64(r+1) * float64(m+1), Source: cluster.Declared, Basis: File})
		}
	}
	for i := range 500 {
		kind := cluster.KindOf(fmt.Sprintf("t%02d", i%50), fmt.Sprintf("k%d", i/50))
		kinds = append(kinds, kind)
		for m := 0; m < 8; m += 2 {
			b.put(&cluster.Profile{Kind: kind, Model: models[m], Gang: 1, Rate: float64(i+m+1) / 10, Source: cluster.Observed, Samples: 10, Spread: 0.05})
		}
	}
	return b, models, kinds
}

// All speedups of 500 kinds on 8 models, half of them estimated.
func BenchmarkSpeedups(b *testing.B) {
	book, models, kinds := large()
	for b.Loop() {
		for _, k := range kinds {
			book.Speedups(k, 1, models)
		}
	}
}

// A report of each of 10,000 jobs.
func BenchmarkReports(b *testing.B) {
	book, models, kinds := large()
	s := 0.0
	for b.Loop() {
		s += 60
		for i := range 10_000 {
			run := Run{Key: cluster.JobKey(i), Kind: kinds[i%len(kinds)], Model: models[0], Gang: 1, Since: began}
			if _, err := book.Report(run, cluster.Progress{Steps: s * 10, At: at(s)}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
