package config

import "github.com/fairlease/fairlease/sidecar/cluster"

// Forecast says how often the daemon estimates when jobs start and end, and how.
type Forecast struct {
	Every   Duration `yaml:"every"` // 0 = never
	Runs    int      `yaml:"runs"`
	Horizon Duration `yaml:"horizon"`
	Last    Duration `yaml:"last"` // how much of the journal run times and arrivals are drawn from
}

// mostRuns bounds the memory of a forecast: 10,000 jobs in 1,000 runs take 80 MB.
const mostRuns = 1000

// forecast checks the section forecast.
func (k *checker) forecast() {
	f := &k.c.Forecast
	const minute, hour, day = Duration(cluster.Minute), Duration(cluster.Hour), Duration(cluster.Day)
	k.must(f.Every == 0 || f.Every >= minute, "forecast.every", "%v is too often: write at least 1m, or 0s for never", f.Every)
	k.must(f.Runs >= 10 && f.Runs <= mostRuns, "forecast.runs", "must be 10 to %d, got %d", mostRuns, f.Runs)
	k.must(f.Horizon >= hour && f.Horizon <= 30*day, "forecast.horizon", "must be 1h to 30d, got %v", f.Horizon)
	k.must(f.Last >= day && f.Last <= 365*day, "forecast.last", "must be 1d to 365d, got %v", f.Last)
}
