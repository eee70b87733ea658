package report

import (
	"bytes"
	"testing"
)

func TestVerdict(t *testing.T) {
	runs := drawn().Runs
	runs[0].Scheduler, runs[1].Scheduler = "astraea", plainSlurm
	runs[0].Loss.Share, runs[1].Loss.Share = 0.08, 0.125
	var b bytes.Buffer
	verdicts(&b, runs)
	const want = "astraea against plain Slurm\n  better: fewer sharing-loss jobs (8.0, 12.5 %), shorter completion times (2.00, 4.00 h)\n  worse:  nothing\n"
	if got := b.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	runs[1].Completion.Mean = hour
	b.Reset()
	verdicts(&b, runs)
	if got := b.String(); got != "astraea against plain Slurm\n  better: fewer sharing-loss jobs (8.0, 12.5 %)\n  worse:  longer completion times (2.00, 1.00 h)\n" {
		t.Errorf("one better, one worse: %s", got)
	}
	runs[1].Jobs.Unfinished = 100
	b.Reset()
	verdicts(&b, runs)
	if got := b.String(); got != "astraea against plain Slurm\n  not to be compared: 0 jobs did not end, and 100 with plain Slurm\n" {
		t.Errorf("one that does not end: %s", got)
	}
	runs[1].CutShort = true
	b.Reset()
	verdicts(&b, runs)
	if got := b.String(); got != "astraea against plain Slurm\n  not to be compared: not both ran to the end\n" {
		t.Errorf("one that was cut short: %s", got)
	}
	runs[1].Scheduler = "fifo"
	b.Reset()
	if verdicts(&b, runs); b.Len() > 0 {
		t.Errorf("without plain Slurm: %s", b.String())
	}
}
