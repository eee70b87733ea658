package slurm

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/tests/seeds"
)

// refusals are Slurm's refusals of a token, by slurmrestd itself and by slurmctld through
// rest_auth/jwt, as in operations.c of 24.11.5 and http.c of 26.05.3. TestLiveTokens compares
// them with a running auth/jwt.
var refusals = map[string]answer{
	"401":                status(401, text(`{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`)),
	"401 without JSON":   status(401, text("Authentication failure")),
	"511 and error 1007": status(511, text(`{"errors":[{"description":"Authentication failure","error_number":1007,"error":"Protocol authentication error","source":"slurm_load_jobs"}],"warnings":[]}`)),
	"511 without JSON":   status(511, text("Authentication failure")),
	"500 and error 1007": status(500, text(`{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`)),
	"200 and error 1007": text(`{"jobs":[],"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`),
}

func TestTokenIsReadAgain(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			f := newRecorded(t, 44)
			file := filepath.Join(t.TempDir(), "token")
			at := time.Now().Add(-time.Hour)
			write := func(s string, change bool) {
				if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
					t.Fatal(err)
				}
				if change {
					at = at.Add(time.Second)
				}
				if err := os.Chtimes(file, at, at); err != nil {
					t.Fatal(err)
				}
			}
			valid := "one"
			guard := func(a answer) answer {
				return func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-SLURM-USER-TOKEN") != valid || r.Header.Get("X-SLURM-USER-NAME") != "fairlease" {
						refusal(w, r)
						return
					}
					a(w, r)
				}
			}
			f.on("GET /slurm/v0.0.44/jobs/", guard(jobs(900, waitingJob(7, ""), waitingJob(8, ""))))
			f.on("POST /slurm/v0.0.44/job/7", guard(text(`{"errors":[]}`)))
			f.on("POST /slurm/v0.0.44/job/8", guard(text(`{"errors":[]}`)))
			write("SLURM_JWT=one\n", true)
			c := f.client(func(c *Config) { c.User, c.TokenFile = "fairlease", file })
			f.see(c)
			valid = "two"
			write("two", true) // the file's time shows the change: nothing is refused
			f.see(c)
			asked := f.count("GET /slurm/v0.0.44/jobs/")
			if asked != 2 {
				t.Errorf("asked %d times for two looks", asked)
			}
			valid = "six"
			write("six", false) // only a refusal shows the change
			gates := []cluster.Action{{Verb: cluster.Gate, Record: 7, Until: 1 << 41}, {Verb: cluster.Gate, Record: 8, Until: 1 << 41}}
			for i, o := range c.Apply(t.Context(), gates) {
				if !o.OK {
					t.Errorf("gate %d after the token was renewed: %+v", i, o)
				}
			}
			valid = "ten" // while the file still holds the old one, it is not retried again and again
			asked = f.count("GET /slurm/v0.0.44/jobs/")
			if _, err := c.Observe(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "slurm.token_file") {
				t.Errorf("error: %v", err)
			}
			if n := f.count("GET /slurm/v0.0.44/jobs/") - asked; n != 1 {
				t.Errorf("a token that is not accepted was tried %d times", n)
			}
			for _, o := range c.Apply(t.Context(), gates[:1]) {
				if o.OK || strings.Contains(o.Error, "outcome unknown") {
					t.Errorf("a refused token: %+v", o)
				}
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Observe(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "slurm.token_file") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func jwt(claims string) string {
	return "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestTokenExpiry(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct{ text, want string }{
		{jwt(`{"exp":1001000,"iat":999200,"sun":"fairlease"}`), ""},
		{jwt(`{"exp":1000100,"iat":998300}`), "expires at 1970-01-12T13:48:20Z; renew it before"},
		{jwt(`{"exp":1000000,"iat":998200}`), "expired at 1970-01-12T13:46:40Z"},
		{jwt(`{"exp":1080000,"iat":1}`), "expires at"},
		{jwt(`{"exp":1000599}`), "expires at"},
		{jwt(`{"exp":1000601}`), ""},
		{jwt(`{"sun":"x"}`), ""},
		{jwt(`nonsense`), ""},
		{"no.token", ""},
		{"", ""},
	} {
		tok := token{file: "/etc/token", text: c.text}
		if got := tok.warning(now); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(jwt(fmt.Sprintf(`{"exp":%d}`, time.Now().Unix()+60))), 0o600); err != nil {
		t.Fatal(err)
	}
	c := f.client(func(c *Config) { c.User, c.TokenFile, c.Now = "fairlease", file, time.Now })
	f.see(c)
	if notes := strings.Join(c.Notes(), "\n"); !strings.Contains(notes, "the Slurm token in "+file+" expires at") {
		t.Errorf("notes: %q", notes)
	}
}

func FuzzClaims(f *testing.F) {
	f.Add(jwt(`{"exp":1000100,"iat":998300}`))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		tok := token{text: text}
		tok.warning(time.Unix(1_000_000, 0))
	})
}
