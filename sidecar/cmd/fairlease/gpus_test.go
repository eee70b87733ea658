package main

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// An empty list of GPUs says whether their counters are not read at all, not yet, or not of what was asked for.
func TestNoGPUs(t *testing.T) {
	dsn := storetest.Database(t)
	for _, c := range []struct{ more, args, want string }{
		{"", "gpus", "No GPU is watched: telemetry.gpu is not set (docs/telemetry.md)."},
		{"", "gpus n1", "No GPU is watched: telemetry.gpu is not set (docs/telemetry.md)."},
		{"telemetry: {gpu: {exporters: 'http://{node}:9400/metrics'}}\n", "gpus", "telemetry.gpu is set, and nothing has been read yet: the daemon that leads reads every 30s."},
		{"telemetry: {gpu: {exporters: 'http://{node}:9400/metrics'}}\n", "gpus n1", "No GPU of n1 has been read"},
	} {
		file := t.TempDir() + "/f.yaml"
		write(t, file, "mode: observe\nfiles: {state: "+t.TempDir()+"/state.json}\n"+c.more)
		r := run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + file}, strings.Fields(c.args)...)
		if !strings.Contains(r.out, c.want) {
			t.Errorf("%s%s: %s%s", c.more, c.args, r.out, r.err)
		}
	}
}
