package slurm

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Verifier asks slurmctld, through slurmrestd, whether it takes a user's token of auth/jwt. So this process needs no key, and a token
// counts exactly as much as it does in Slurm. It is safe for concurrent use.
type Verifier struct {
	rest *rest

	mu      sync.Mutex
	version version // 0 = must be negotiated (again)
}

// NewVerifier gives a verifier that asks the slurmrestd at cfg.Address. It does not connect.
func NewVerifier(cfg Config) (*Verifier, error) {
	cfg.User, cfg.TokenFile, cfg.Retries = "", "", -1
	r, err := newREST(cfg.withDefaults())
	return &Verifier{rest: r}, err
}

// Takes tells whether slurmctld takes a token as one of a user. A yes costs a second question, with another signature: slurmrestd may
// have been started anew, without checks. An error means that it could not be asked, or that slurmrestd does not check tokens; it never
// has the token.
func (v *Verifier) Takes(ctx context.Context, user, token string) (bool, error) {
	taken, err := v.ask(ctx, user, token)
	if err != nil || !taken {
		return false, err
	}
	// With rest_auth/local slurmrestd answers those who may open its socket, whatever their token is.
	taken, err = v.ask(ctx, user, forged(token))
	switch {
	case err != nil:
		return false, err
	case taken:
		return false, fmt.Errorf("slurmrestd at %s answers without looking at tokens: start it with -a rest_auth/jwt, or name another one in slurm.jwt", v.rest.cfg.Address)
	}
	return true, nil
}

// Checks tells why tokens cannot be checked; nil = they can be. It asks with a token that nobody made.
func (v *Verifier) Checks(ctx context.Context) error {
	nobodys := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d,"sun":"root"}`, v.rest.cfg.Now().Add(time.Hour).Unix()))
	taken, err := v.ask(ctx, "root", forged(nobodys+"."))
	if err == nil && taken {
		err = fmt.Errorf("slurmrestd at %s answers without looking at tokens: start it with -a rest_auth/jwt", v.rest.cfg.Address)
	}
	return err
}

// forged gives a token another signature.
func forged(token string) string {
	signature := make([]byte, 32)
	_, _ = rand.Read(signature) // it never fails
	return token[:strings.LastIndexByte(token, '.')+1] + base64.RawURLEncoding.EncodeToString(signature)
}

// ask asks for the licences, a short list that every user may read: for it, slurmrestd must ask slurmctld, which looks at the token.
func (v *Verifier) ask(ctx context.Context, user, text string) (taken bool, err error) {
	cfg := v.rest.cfg
	cfg.User = user
	as := &rest{cfg: cfg, http: v.rest.http, dial: v.rest.dial, base: v.rest.base, token: token{text: text}}
	v.mu.Lock()
	speaks := v.version
	v.mu.Unlock()
	if speaks == 0 {
		s, err := as.negotiate(ctx)
		if err != nil {
			return verdict(err)
		}
		speaks = s.version
	}
	_, err = as.get(ctx, cfg.Timeout, fmt.Sprintf("/slurm/%v/licenses/", speaks), nil)
	if isPlain404(err) {
		speaks = 0 // after an upgrade
	}
	v.mu.Lock()
	v.version = speaks
	v.mu.Unlock()
	return verdict(err)
}

// verdict tells an answer about a token from a failure to ask.
func verdict(err error) (taken bool, _ error) {
	var e *Error
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &e) && (e.Code == CodeAuthentication || e.HTTP == http.StatusNetworkAuthenticationRequired):
		return false, nil
	case errors.As(err, &e) && e.HTTP == http.StatusUnauthorized:
		return false, fmt.Errorf("slurmrestd does not take tokens: start it with -a rest_auth/jwt, where AuthAltTypes=auth/jwt is in slurm.conf: %w", e)
	}
	return false, err
}

// Close drops the connections.
func (v *Verifier) Close() { v.rest.http.CloseIdleConnections() }
