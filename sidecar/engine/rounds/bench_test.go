package rounds

import (
	"fmt"
	"testing"
)

// A round of jobs as in Figure 15's setup, the twentieth.
func BenchmarkGavel(b *testing.B) {
	for _, jobs := range []int{512, 2048, 8192} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			gpus, rows := figure15(1, jobs, true)
			for range 20 {
				rows = pass(rows, Gavel(gpus, rows, term))
			}
			for b.Loop() {
				Gavel(gpus, rows, term)
			}
		})
	}
}
