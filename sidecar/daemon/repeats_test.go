package daemon

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Lines that say the same come once a minute, with their number; others come at once.
func TestRepeatedLines(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1_000_000, 0)
	log := zerolog.New(newRepeats(&out, func() time.Time { return now }))
	for i := range 300 { // five minutes
		log.Warn().Int("round", i).Str("job", "7").Dur("took_ms", time.Duration(i)).Msg("requeue failed")
		if i%100 == 0 {
			log.Info().Int("n", i).Msg("another")
		}
		now = now.Add(time.Second)
	}
	now = now.Add(time.Minute)
	log.Info().Msg("stopped")
	var same, times, others int
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "requeue failed") {
			others++
			continue
		}
		same++
		n := 1
		if _, after, ok := strings.Cut(line, `"times":`); ok {
			if _, err := fmt.Sscanf(after, "%d}", &n); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		times += n
	}
	if same > 6 || times != 300 || others != 4 {
		t.Errorf("%d lines stand for %d of 300, and %d of 4 others came:\n%s", same, times, others, out.String())
	}
}

// A log without repetitions is as it was, and a line is written whole.
func TestLinesOfTheirOwn(t *testing.T) {
	var out, plain bytes.Buffer
	for _, log := range []zerolog.Logger{zerolog.New(newRepeats(&out, time.Now)), zerolog.New(&plain)} {
		for n := range 3 * mostLines {
			log.Info().Int("job", n).Str("nested", `{"a":{}}`).Msg("granted")
		}
	}
	if out.String() != plain.String() {
		t.Error("lines were lost or changed")
	}
}

// An administrator who reloads twice gets two answers.
func TestAnswersAreNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	log := zerolog.New(newRepeats(&out, time.Now))
	for range 3 {
		log.Info().Str("mode", "act").Msg("configuration taken over")
		log.Error().Str("error", "x").Msg("the new configuration is not taken over, the old one stays")
		log.Info().Msg("leadership acquired")
		log.Info().Int("failures", 3).Msg("rounds succeed again")
	}
	if n := strings.Count(out.String(), "\n"); n != 12 {
		t.Errorf("%d of 12 lines:\n%s", n, out.String())
	}
}
