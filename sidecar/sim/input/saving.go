package input

import (
	"os"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// Saving holds the flags for how jobs save.
type Saving struct {
	Saves, By, Every string // a mixture; drawn by kind or job; interval of periodic saves
	Reported         bool
}

// Into sets how the jobs of a setup save.
func (s *Saving) Into(setup *experiment.Setup) error {
	var every cluster.Span
	if err := Length("--every", s.Every, &every); err != nil {
		return err
	}
	m, err := experiment.ParseMixture(s.Saves, every)
	if err != nil {
		return failure.Usage("--saves: %v", err)
	}
	if s.By != "kind" && s.By != "job" {
		return failure.Usage("--saves-by %s is not known; write kind or job", s.By)
	}
	m.ByJob = s.By == "job"
	if m.File != "" {
		if m.Habits, err = readHabits(m.File); err != nil {
			return &failure.Error{Code: failure.Misuse, What: "--saves: the habits cannot be used", Err: err,
				Next: "name a file that fairlease habits --json wrote, or lines like alice,train.sh,8,periodic,1h; or a manner such as never"}
		}
	}
	setup.Saves, setup.Reported = m, s.Reported
	return nil
}

func readHabits(path string) ([]experiment.Habit, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return experiment.ReadHabits(f, path)
}
