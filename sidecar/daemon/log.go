package daemon

import (
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/config"
)

// NewLog makes the daemon's log. With format auto it is text if out is a terminal, else JSON.
// Colours are for terminals only. Lines that say the same come at most once a minute, with their number.
func NewLog(c *config.Log, out io.Writer, terminal, colours bool) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.DurationFieldUnit = time.Millisecond
	zerolog.DurationFieldInteger = true
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel // the configuration was validated
	}
	if c.Format == "console" || c.Format == "auto" && terminal {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.DateTime, NoColor: !terminal || !colours}
	}
	return zerolog.New(newRepeats(out, time.Now)).Level(level).With().Timestamp().Logger()
}
