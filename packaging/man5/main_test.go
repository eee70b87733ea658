package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
)

func TestPage(t *testing.T) {
	var out bytes.Buffer
	err := page(strings.NewReader("# The file.\n#   a  first\n\n# A key's text: \\ and .5\nkey: \"v\"\n  # .begins with a dot\n  other: 1\n"), &out)
	want := `.TH FAIRLEASE.YAML 5 "" "fairlease" "File formats"
.SH NAME
fairlease.yaml \- the configuration of fairlease
.SH DESCRIPTION
The file.
  a  first
.PP
A key's text: \e and .5
.SH KEYS
Below each description, the key with its default.
.PP
.nf
.B "key: \(dqv\(dq"
.fi
\&.begins with a dot
.PP
.nf
.B "  other: 1"
.fi
.SH SEE ALSO
.BR fairlease (1),
.BR fairlease (8)
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// Every key of the configuration is on the page, which roff accepts.
func TestPageOfTheConfiguration(t *testing.T) {
	f, err := os.Open("../../etc/fairlease.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	if err := page(f, &out); err != nil {
		t.Fatal(err)
	}
	for _, key := range config.Keys() {
		last := key[strings.LastIndex(key, ".")+1:]
		if !strings.Contains(out.String(), last+":") {
			t.Errorf("the page does not have %s", key)
		}
	}
	if mandoc, err := exec.LookPath("mandoc"); err == nil {
		c := exec.Command(mandoc, "-T", "lint", "-W", "error")
		c.Stdin = &out
		if said, err := c.CombinedOutput(); err != nil {
			t.Errorf("mandoc: %v\n%s", err, said)
		}
	}
}
