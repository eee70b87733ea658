package envy

import (
	"fmt"
	"math"
	"testing"
)

// Certified optima of the seeded instances.
func TestSeeded(t *testing.T) {
	for _, c := range []struct {
		n       int
		ordered bool
		want    float64
	}{
		{50, false, 975.943380}, {100, false, 1112.179442}, {200, false, 926.5011304963}, {500, false, 772.7468532502},
		{50, true, 388.614990}, {100, true, 324.123008}, {200, true, 438.719702},
	} {
		t.Run(fmt.Sprint(c.n, c.ordered), func(t *testing.T) {
			w, m := seeded(c.n, c.ordered)
			p := scaled(w, m)
			y, err := Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			got := 0.
			for i := range w {
				for j := range m {
					got += w[i][j] * y[i*len(m)+j] * m[j] / float64(c.n)
				}
			}
			if math.Abs(got-c.want) > 6e-7 {
				t.Errorf("got %.10f, want %.10f", got, c.want)
			}
		})
	}
}
