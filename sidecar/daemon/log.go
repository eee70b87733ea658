package daemon

import (
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/config"
)

// NewLog makes the daemon's log. Its format auto is for people where out is a terminal, and JSON elsewhere; colours
// are for terminals only.
func NewLog(c *config.Log, out io.Writer, terminal, colours bool) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.DurationFieldUnit = time.Millisecond
	zerolog.DurationFieldInteger = true
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel // the configuration was checked
	}
	if c.Format == "console" || c.Format == "auto" && terminal {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.DateTime, NoColor: !terminal || !colours}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}
