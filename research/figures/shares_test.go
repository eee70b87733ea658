package figures

import (
	"context"
	"math"
	"testing"

	"github.com/fairlease/fairlease/tests/seeds"
)

// Users have GPUs by their tickets, and those of users who left (Gandiva_fair's Figures 4 to 7), within a gang for one of sixteen terms.
func TestShares(t *testing.T) {
	seeds.Slow(t)
	want := [][][]float64{{{4. / 3, 4. / 3, 4. / 3}, {0, 4, 0}}, {{8. / 3, 8. / 3, 8. / 3}, {0, 4, 4}},
		{{31, 3, 6, 8}, {62 * 0.6, 6 * 0.6, 12 * 0.6, 0}}, {{64. / 3, 64. / 3, 64. / 3}, {32, 32, 0}, {0, 64, 0}}}
	for i, c := range charts(t)(shares(context.Background())) {
		if len(c.Panels) != 2 {
			t.Fatalf("%s has %d panels, want that of each chooser", c.Name, len(c.Panels))
		}
		for _, p := range c.Panels {
			from := 0.
			for k, to := range gandivaSharing[i].moments {
				for of, curve := range p.Curves {
					got, due := mean(curve, from, to.Duration().Hours()), want[i][k][of]
					if math.Abs(got-due) > max(0.05*due, 0.2) {
						t.Errorf("%s, %s, phase %d: %s has %.2f GPUs, is due %.2f", c.Name, p.Title, k+1, curve.Name, got, due)
					}
				}
				from = to.Duration().Hours()
			}
		}
	}
}
