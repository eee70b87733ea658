package config_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
)

func TestSyslogPlace(t *testing.T) {
	for _, x := range []struct{ value, network, address string }{
		{"off", "", ""}, {"local", "unixgram", "/dev/log"}, {"unix:/run/log", "unixgram", "/run/log"}, {"unix:///run/log", "unixgram", "/run/log"},
		{"udp://192.0.2.1:514", "udp", "192.0.2.1:514"}, {"udp://[2001:db8::1]:514", "udp", "[2001:db8::1]:514"}, {"udp://log.example.org:514", "udp", "log.example.org:514"},
	} {
		c, err := config.Parse("f.yaml", []byte("audit: {syslog: '"+x.value+"'}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if network, address, err := config.SyslogPlace(c.Output.Audit.Syslog); network != x.network || address != x.address || err != nil {
			t.Errorf("%s: %s %s, %v", x.value, network, address, err)
		}
	}
	for _, value := range []string{"", "on", "true", "192.0.2.1", "udp://192.0.2.1", "udp://:514", "udp://192.0.2.1:514/x", "udp://ann@192.0.2.1:514", "tcp://192.0.2.1:514", "unix:run/log", "unix://host/log"} {
		if _, err := config.Parse("f.yaml", []byte("audit: {syslog: '"+value+"'}\n"), nil); err == nil || !strings.Contains(err.Error(), "audit.syslog") || !strings.Contains(err.Error(), "write off, local") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// The sections that are grouped in the program are at the top of the file, and a typing error in one is told with its keys.
func TestOutputIsAtTheTop(t *testing.T) {
	c, err := config.Parse("f.yaml", []byte("log: {level: warn}\naudit: {syslog: local}\nmetrics: {listen: ''}\n"), nil)
	if err != nil || c.Output != (config.Output{Log: config.Log{Level: "warn", Format: "auto"}, Audit: config.Audit{Syslog: "local"}}) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := config.Parse("f.yaml", []byte("output: {log: {level: warn}}\n"), nil); err == nil || !strings.Contains(err.Error(), "unknown key") {
		t.Error(err)
	}
	if _, err := config.Parse("f.yaml", []byte("metrisc: {listen: ''}\n"), nil); err == nil || !strings.Contains(err.Error(), "did you mean metrics?") {
		t.Error(err)
	}
}
