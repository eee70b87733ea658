package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config"
)

// Mistakes in the settings of notices are told, with what to write instead.
func TestNoticeSettings(t *testing.T) {
	const mail = "kinds: [stop], mail: {server: 'smtp.example.org:587', from: fairlease@example.org, to: '{user}@example.org'"
	for text, want := range map[string]string{
		"kinds: [stop]":                "there is no way to do so",
		"kinds: [spam]":                "notices.kinds: \"spam\" is not known; write one of stop, start",
		"rate: 0":                      "must be 1 to 1000",
		"quiet: 22-7":                  "write one like 22:00-07:00",
		"zone: Berlin":                 "is no time zone",
		mail + "}":                     "",
		mail + ", tls: maybe}":         "notices.mail.tls",
		mail + ", user: fairlease}":    "go together",
		mail + ", ca_file: ca.pem}":    "must be an absolute path",
		mail + ", tls: none}":          "",
		"mail: {server: smtp}":         "write HOST:PORT",
		"mail: {server: 'smtp:99999'}": "write HOST:PORT",
		mail + ", tls: none, user: f, password_file: /etc/f}":                                                     "in clear",
		"mail: {server: 'h:25', from: nobody, to: '{user}@example.org'}":                                          "notices.mail.from",
		"mail: {server: 'h:25', from: 'a@example.org', to: 'all@example.org'}":                                    "is no template of an address",
		"mail: {server: 'h:25', from: 'a@example.org', to: '{user}@{user}.example.org'}":                          "is no template of an address",
		"mail: {server: 'h:25', from: \"a@example.org\\r\\nBcc: b@example.org\", to: '{user}@example.org'}":       "notices.mail.from",
		"webhook: {url: 'http://chat.example.org/x', secret_file: /etc/s}":                                        "no address to post to",
		"webhook: {url: 'https://me:pw@chat.example.org/x', secret_file: /etc/s}":                                 "no address to post to",
		"webhook: {url: 'https://chat.example.org/x'}":                                                            "nobody could tell who posts",
		"kinds: [start, idle], quiet: '22:00-07:00', webhook: {url: 'http://127.0.0.1:1/x', secret_file: /etc/s}": "",
	} {
		_, err := config.Parse("", []byte("notices: {"+text+"}\n"), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	c := parse(t, "notices: {"+strings.Replace(mail, "[stop]", "[stop, slip, idle, budget]", 1)+"}}\nforecast: {every: 0s}\n")
	all := strings.Join(c.Warnings(), "\n")
	for _, kind := range []string{notice.Slip, notice.Idle, notice.Budget} {
		if !strings.Contains(all, "notices.kinds has "+kind) {
			t.Errorf("%s: no warning in %q", kind, all)
		}
	}
}

// The templates of a site are read with the file, and tried.
func TestNoticeTemplates(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("f.yaml", "mode: observe\nnotices: {zone: UTC,\n  templates: letters}\n")
	if _, err := config.Load(path, nil); err == nil || !strings.Contains(err.Error(), "f.yaml:3: notices.templates: open "+dir+"/letters") {
		t.Errorf("without the folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "letters"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("letters/stop.txt", "{{.Nothing}}\n\nx\n")
	write("letters/strat.txt", "")
	if _, err := config.Load(path, nil); err == nil || !strings.Contains(err.Error(), "strat.txt: there is no such kind") || !strings.Contains(err.Error(), "can't evaluate field Nothing") {
		t.Errorf("with a wrong one: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "letters/strat.txt")); err != nil {
		t.Fatal(err)
	}
	write("letters/stop.txt", "Job {{.ID}} ends\n\nSave it, {{.User}}.\n")
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if subject, body, err := config.Letters(c).Write(notice.Stop, "ann", notice.Facts{ID: "7"}); subject != "Job 7 ends" || body != "Save it, ann.\n" || err != nil {
		t.Errorf("%q, %q, %v", subject, body, err)
	}
}
