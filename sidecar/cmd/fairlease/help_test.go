package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestHelp(t *testing.T) {
	r := run(t, time.Time{}, nil, "help")
	if r.code != failure.OK {
		t.Error(r.err)
	}
	golden(t, "help", r.out)
	if bare := run(t, time.Time{}, nil); bare.code != failure.OK || !strings.Contains(bare.out, "To begin") {
		t.Error("no command gives no help")
	}
	if r := run(t, time.Time{}, nil, "version"); r.code != failure.OK || !strings.HasPrefix(r.out, "fairlease ") {
		t.Errorf("exit code %d: %s", r.code, r.out)
	}
	if r := run(t, time.Time{}, nil, "completion", "bash"); r.code != failure.OK || len(r.out) < 1000 {
		t.Errorf("exit code %d, %d bytes of completion", r.code, len(r.out))
	}
}

// Every command and flag is in the man page, and has a line of help.
func TestManPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fairlease.1")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer(`\-`, "-", `\fR`, "", `\fB`, "", `\fI`, "").Replace(string(text))
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no line of help", c.CommandPath())
		}
		if path := strings.TrimPrefix(c.CommandPath(), "fairlease "); c.HasParent() && !strings.Contains(page, path) {
			t.Errorf("the man page does not have %q", path)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, "--"+f.Name) || f.Usage == "" {
				t.Errorf("%s --%s is not in the man page, or has no line of help", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(rootCommand(&program{out: io.Discard, err: io.Discard}))
}

// The packaged files name existing commands, flags and files.
func TestPackagedFiles(t *testing.T) {
	for file, words := range map[string][]string{
		"systemd/fairlease.service": {"ExecStart=/usr/bin/fairlease serve", "Type=notify", "WatchdogSec=", "User=fairlease",
			"ExecStopPost=/usr/bin/fairlease release --after-crash", "ExecStopPost=-/usr/bin/fairlease thaw --all", "/etc/default/fairlease", "/etc/sysconfig/fairlease", "StateDirectory=fairlease"},
		"systemd/fairlease-web.service":  {"ExecStart=/usr/bin/fairlease web", "User=fairlease-web", "RuntimeDirectory=fairlease-web", "/etc/default/fairlease-web", "NoNewPrivileges=yes", "ProtectSystem=strict"},
		"systemd/fairlease-thaw.service": {"ExecStart=/usr/bin/fairlease thaw", "User=fairlease"},
		"systemd/fairlease-thaw.timer":   {"OnUnitActiveSec=", "WantedBy=timers.target"},
		"sysusers.d/fairlease.conf":      {"u fairlease ", "u fairlease-web "},
		"tmpfiles.d/fairlease.conf":      {"d /run/fairlease 0755 fairlease fairlease"},
	} {
		text, err := os.ReadFile("../../../etc/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s does not have %q", file, w)
			}
		}
	}
}
