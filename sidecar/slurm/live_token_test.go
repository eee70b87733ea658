package slurm_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// An auth/jwt token that expires while the daemon runs is refused, and the renewed file is read.
// The refusal equals the recorded answers that the client's own tests use.
func TestLiveTokens(t *testing.T) {
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			c := testcluster.ForTest(t, testcluster.Options{Suite: suite, JWT: true})
			file := filepath.Join(t.TempDir(), "token")
			renew := func(good time.Duration) string {
				token, err := c.Token(t.Context(), testcluster.Operator, good)
				if err == nil {
					err = os.WriteFile(file, []byte(token), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimPrefix(strings.TrimSpace(token), "SLURM_JWT=")
			}
			short := renew(5 * time.Second)
			client, err := slurm.New(slurm.Config{Address: "unix://" + c.RestSocket(), User: testcluster.Operator, TokenFile: file, Scontrol: c.Scontrol()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			look := func(ctx context.Context) error { _, err := client.Observe(ctx, 0); return err }
			if err := look(t.Context()); err != nil {
				t.Fatalf("a valid token: %v", err)
			}
			var refused error
			l := &live{T: t}
			l.eventually("Slurm refuses a token that was good for 5 s", func() bool {
				refused = look(t.Context())
				return refused != nil
			}, func() string { return "the token is still accepted" })
			if !strings.Contains(refused.Error(), "slurm.token_file") {
				t.Errorf("an expired token: %v", refused)
			}
			if status, text := refusal(t, c.RestSocket(), short); status != http.StatusNetworkAuthenticationRequired || !strings.Contains(text, "1007") {
				t.Errorf("Slurm answers an expired token with %d %s, want 511 and error 1007", status, text)
			}
			renew(time.Hour)
			if err := look(t.Context()); err != nil {
				t.Errorf("a renewed token: %v", err)
			}
			verify(t, c)
		})
	}
}

// refusal gives the status and the body of slurmrestd's answer to a token.
func refusal(t *testing.T, socket, token string) (int, string) {
	t.Helper()
	h := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer h.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/slurm/v0.0.42/jobs/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-SLURM-USER-NAME", testcluster.Operator)
	r.Header.Set("X-SLURM-USER-TOKEN", token)
	resp, err := h.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
