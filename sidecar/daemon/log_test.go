package daemon_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
)

// The log is JSON for programs and text for people; auto depends on the output.
func TestNewLog(t *testing.T) {
	for _, c := range []struct {
		format            string
		terminal, colours bool
		json, painted     bool
	}{
		{"auto", false, true, true, false}, {"auto", true, true, false, true}, {"auto", true, false, false, false},
		{"json", true, true, true, false}, {"console", false, true, false, false},
	} {
		var out bytes.Buffer
		log := daemon.NewLog(&config.Log{Level: "warn", Format: c.format}, &out, c.terminal, c.colours)
		log.Info().Msg("not told")
		log.Warn().Msg("told")
		got := out.String()
		if strings.HasPrefix(got, "{") != c.json || strings.Contains(got, "\x1b") != c.painted || !strings.Contains(got, "told") || strings.Contains(got, "not told") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
