package slurm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// token is our authentication token, read from a file that others renew. It is read again
// whenever the file has changed. It is safe for concurrent use.
type token struct {
	file string // "" = none: the text stays as it is

	mu   sync.Mutex
	text string
	was  os.FileInfo // the file when it was read
}

// current gives the token; "" if none is needed.
func (t *token) current() (string, error) {
	if t.file == "" {
		return t.text, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := os.Stat(t.file)
	if err == nil && t.was != nil && os.SameFile(now, t.was) && now.ModTime().Equal(t.was.ModTime()) && now.Size() == t.was.Size() {
		return t.text, nil
	}
	return t.text, t.read(now, err)
}

// renewed reads the file again, changed or not, because the stale token was not accepted.
func (t *token) renewed(stale string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text != stale {
		return t.text, nil // read meanwhile
	}
	return t.text, t.read(os.Stat(t.file))
}

func (t *token) read(now os.FileInfo, err error) error {
	var text []byte
	if err == nil {
		text, err = os.ReadFile(t.file)
	}
	if err != nil {
		return fmt.Errorf("cannot read the Slurm token: %w; see slurm.token_file in fairlease.yaml", err)
	}
	// A file that was written just now is read once more the next time.
	if t.text = strings.TrimPrefix(string(bytes.TrimSpace(text)), "SLURM_JWT="); time.Since(now.ModTime()) > time.Second {
		t.was = now
	}
	return nil
}

// claims are the times in a JSON web token (RFC 7519), in seconds since the epoch; 0 = absent.
type claims struct {
	Issued  float64 `json:"iat"`
	Expires float64 `json:"exp"`
}

// claimsOf reads a token without verifying it. Other texts have no claims.
func claimsOf(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(text, &c) != nil || c.Expires < 0 || c.Expires > 1<<40 {
		return claims{}
	}
	return c
}

// warning reports a token that has expired or will soon: in the last tenth of its life, or the
// last day of a long one; "" = it is valid.
func (t *token) warning(now time.Time) string {
	t.mu.Lock()
	text := t.text
	t.mu.Unlock()
	c := claimsOf(text)
	if c.Expires == 0 {
		return ""
	}
	soon := 10 * time.Minute
	if c.Issued > 0 && c.Issued < c.Expires {
		soon = min(time.Duration((c.Expires-c.Issued)/10)*time.Second, 24*time.Hour)
	}
	end := time.Unix(int64(c.Expires), 0).UTC()
	switch left := end.Sub(now); {
	case left <= 0:
		return fmt.Sprintf("the Slurm token in %s expired at %s; renew it (scontrol token)", t.file, end.Format(time.RFC3339))
	case left <= soon:
		return fmt.Sprintf("the Slurm token in %s expires at %s; renew it before (scontrol token)", t.file, end.Format(time.RFC3339))
	}
	return ""
}

// denied tells whether Slurm rejected our authentication, so that nothing was done. slurmrestd
// answers HTTP 401; slurmctld, which checks tokens for rest_auth/jwt, answers error 1007 with
// HTTP 511 or 500.
func denied(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.HTTP == http.StatusUnauthorized || e.HTTP == http.StatusNetworkAuthenticationRequired || e.Code == CodeAuthentication)
}
