package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/study"
)

// saving is what flags say of how simulated jobs save.
type saving struct {
	saves, by, every string
	reported         bool
}

const assumedSaves = "never"

func (s *saving) flags(f *pflag.FlagSet) {
	f.StringVar(&s.saves, "saves", assumedSaves, "how jobs save: `MIXTURE` like never:60,periodic=1h:30,notice:10, of never, notice, term, at-end, each-term,\n"+
		"an interval, ideal; and a FILE of habits, as fairlease habits --json writes, for the jobs that it lists")
	f.StringVar(&s.by, "saves-by", "kind", "draw how jobs save for each `kind|job`; a kind is a user, a number of GPUs and a name, but for numbers in it")
	f.StringVar(&s.every, "every", "", "`TIME` between two saves, where --saves says periodic without one")
	f.BoolVar(&s.reported, "reported", false, "jobs that save on their own report each save, and their progress, to the scheduler")
}

// into sets how the jobs of a setup save.
func (s *saving) into(setup *study.Setup) error {
	var every cluster.Span
	if err := lengths(timeFlag{"--every", s.every, &every}); err != nil {
		return err
	}
	m, err := study.ParseMixture(s.saves, every)
	if err != nil {
		return failure.Usage("--saves: %v", err)
	}
	if s.by != "kind" && s.by != "job" {
		return failure.Usage("--saves-by %s is not known; write kind or job", s.by)
	}
	m.ByJob = s.by == "job"
	if m.File != "" {
		if m.Habits, err = readHabits(m.File); err != nil {
			return &failure.Error{Code: failure.Misuse, What: "--saves: the habits cannot be used", Err: err,
				Next: "name a file that fairlease habits --json wrote, or lines like alice,train.sh,8,periodic,1h; or a manner such as never"}
		}
	}
	setup.Saves, setup.Reported = m, s.reported
	return nil
}

func readHabits(path string) ([]study.Habit, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return study.ReadHabits(f, path)
}

// tellSaves says how the jobs of a setup are taken to save, and how many of them habits speak of.
func tellSaves(out io.Writer, s *study.Setup) {
	reported := ""
	if s.Reported {
		reported = "; each save of those that save on their own is reported"
	}
	fmt.Fprintf(out, "  jobs are taken to save: %s%s\n", s.Saves, reported)
	if len(s.Saves.Habits) > 0 {
		known, all := 0, 0
		for j := range s.Load.Jobs {
			all++
			if s.Saves.Habit(&j) != nil {
				known++
			}
		}
		fmt.Fprintf(out, "  %d of %d jobs have a habit there\n", known, all)
	} else if s.Saves.String() == assumedSaves {
		fmt.Fprintf(out, "  (the pessimistic assumption: a requeue starts a job from the beginning; if some of yours save, say so with --saves)\n")
	}
}
