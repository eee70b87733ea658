package config_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
)

// Mistakes in the settings of the web server are told, with what to write instead.
func TestWebSettings(t *testing.T) {
	for text, want := range map[string]string{
		"listen: '9964'":                         "web.listen",
		"socket: run/socket":                     "web.socket: must be an absolute path",
		"server: ftp://x":                        "is no server",
		"trusted_proxies: [proxy.example.org]":   "is no address",
		"trusted_proxies: [0.0.0.0/0]":           "is every address",
		"trusted_proxies: ['::/0']":              "is every address",
		"proxy_users: [www], user_header: ''":    "web.user_header: is empty",
		"user_header: authorization":             "cannot be the name of a header",
		"user_header: 'X User'":                  "cannot be the name of a header",
		"anonymous: everything":                  "web.anonymous",
		"max_connections: 0":                     "must be a number from 1",
		"max_connections: 100001":                "must be a number from 1",
		"trusted_proxies: [10.0.0.7, 'fd00::1']": "",
	} {
		_, err := config.Parse("", []byte("web: {"+text+"}\n"), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"trusted_proxies: [127.0.0.1]":   "ask as anybody",
		"trusted_proxies: [127.0.0.0/8]": "ask as anybody",
		"trusted_proxies: ['::1']":       "ask as anybody",
		"listen: ':9964'":                "without TLS",
		"proxy_users: [www-data]":        "",
		"trusted_proxies: [10.0.0.7]":    "",
	} {
		c, err := config.Parse("", []byte("web: {"+text+"}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(c.Warnings(), "\n"); want != "" && !strings.Contains(all, want) || want == "" && strings.Contains(all, "web.") {
			t.Errorf("%s: warnings %q, want %q", text, all, want)
		}
	}
}
