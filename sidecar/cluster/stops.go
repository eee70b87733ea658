package cluster

// StopsPerHour limits what fairlease stops within any hour, in percent of GPUs. Zero values limit nothing.
type StopsPerHour struct {
	// Site is of all GPUs. Auto sets it to four times what fairlease would have stopped while it only observed, and at least to LeastPerHour.
	Site int  `json:"site,omitempty"`
	Auto bool `json:"auto,omitempty"`
	// Tenant and User are of the GPUs that the jobs of a tenant or a user hold.
	Tenant int `json:"tenant,omitempty"`
	User   int `json:"user,omitempty"`
}

// LeastPerHour is the smallest limit of StopsPerHour.Auto, in percent.
const LeastPerHour = 25

// None tells whether there is no limit.
func (s *StopsPerHour) None() bool { return *s == StopsPerHour{} }

// Percent gives the limit for the site in percent of its GPUs; 0 = none. gpus are all its GPUs.
func (s *StopsPerHour) Percent(shadow Shadow, gpus GPUCount) int {
	if !s.Auto {
		return s.Site
	}
	return max(LeastPerHour, 4*shadow.PerHour(gpus))
}

// Stopped is a job that fairlease has stopped, or is about to stop.
type Stopped struct {
	Job    JobKey   `json:"job"`
	Tenant string   `json:"tenant"`
	User   string   `json:"user"`
	GPUs   GPUCount `json:"gpus"`
	At     Instant  `json:"at,omitzero"`   // 0 = it has its notice, and still runs
	For    string   `json:"for,omitempty"` // tenant of the job that gets the GPUs; "" = nobody waits for them, or it is not known
}

// Shadow sums up what fairlease would have stopped while it only observed.
type Shadow struct {
	Observed Span     `json:"observed,omitempty"` // how long it did
	GPUs     GPUCount `json:"gpus,omitempty"`     // of the jobs that it would have stopped then
}

// shadowFor is how much of the past counts in a Shadow.
const shadowFor = 14 * Day

// Add counts GPUs of jobs that would have been stopped in a span.
func (s *Shadow) Add(span Span, gpus GPUCount) {
	if s.Observed+span > shadowFor {
		s.Observed, s.GPUs = s.Observed/2, s.GPUs/2
	}
	s.Observed, s.GPUs = s.Observed+span, s.GPUs+gpus
}

// PerHour gives the percentage of a site's GPUs that would have been stopped in an hour, rounded up. It is 0 before an hour was observed.
func (s *Shadow) PerHour(gpus GPUCount) int {
	if s.Observed < Hour || gpus <= 0 {
		return 0
	}
	all := MulDiv(int64(s.Observed), int64(gpus), int64(Hour)) // GPUs, times hours
	return int((100*int64(s.GPUs) + all - 1) / max(all, 1))
}
