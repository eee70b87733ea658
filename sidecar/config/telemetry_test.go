package config

import (
	"strings"
	"testing"
)

func TestTelemetryIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"telemetry: {gpu: {exporters: 'http://{node}:9400/metrics', prometheus: 'http://p:9090'}}": "telemetry.gpu.prometheus: conflicts with telemetry.gpu.exporters",
		"telemetry: {gpu: {exporters: 'http://gpu:9400/metrics'}}":                                 "telemetry.gpu.exporters: \"http://gpu:9400/metrics\" is no URL of exporters",
		"telemetry: {gpu: {prometheus: 'p:9090'}}":                                                 "telemetry.gpu.prometheus: \"p:9090\" is no URL",
		"telemetry: {gpu: {every: 1s}}":                                                            "telemetry.gpu.every: 1s is too short",
		"telemetry: {gpu: {every: 1m}}":                                                            "telemetry.gpu.max_age: 2m is shorter than three times telemetry.gpu.every",
		"telemetry: {gpu: {match: 'a=\"b\"'}}":                                                     "telemetry.gpu.match: selects series",
		"telemetry: {gpu: {prometheus: 'http://p', match: '{a=\"b\"}'}}":                           "telemetry.gpu.match: \"{a=\\\"b\\\"}\" has braces",
		"telemetry: {gpu: {user: me}}":                                                             "telemetry.gpu.password_file: telemetry.gpu.user and",
		"telemetry: {gpu: {token_file: t}}":                                                        "telemetry.gpu.token_file: must be an absolute path",
		"telemetry: {gpu: {prometheus: 'http://p:9090', token_file: /t}}":                          "telemetry.gpu.prometheus: the password or token would cross the network in clear",
		"telemetry: {gpu: {exporters: 'http://{node}/', token_file: /t}}":                          "telemetry.gpu.exporters: the password or token would cross the network in clear",
		"telemetry: {gpu: {tls: {key_file: /k}}}":                                                  "telemetry.gpu.tls.cert_file: telemetry.gpu.tls.cert_file and",
		"telemetry: {gpu: {counters: [{meaning: speed, name: a, unit: W}]}}":                       "telemetry.gpu.counters: \"speed\" is no meaning",
		"telemetry: {gpu: {counters: [{meaning: power, name: a, unit: MiB}]}}":                     "telemetry.gpu.counters: power: a cannot be in \"MiB\"",
		"idle: {tell_after: 1m}":                                                                   "idle.tell_after: 1m is shorter than three looks",
		"idle: {reclaim_after: 1m}":                                                                "idle.reclaim_after: 1m is too short",
		"idle: {reclaim_after: 1h}":                                                                "idle.reclaim_after: needs the counters of GPUs",
	} {
		if _, err := Parse("f", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	c, err := Parse("f", []byte("telemetry: {gpu: {exporters: 'http://{node}:9400/metrics', counters: [{meaning: util, name: nvidia_gpu_duty_cycle, unit: percent}]}}\nidle: {reclaim_after: 1h}\n"), nil)
	if err != nil || !c.Telemetry.GPU.On() || c.Settings().IdleReclaim == 0 || c.Telemetry.GPU.Counters[0].Name != "nvidia_gpu_duty_cycle" {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := c.Telemetry.GPU.Open(); err != nil {
		t.Error(err)
	}
}
