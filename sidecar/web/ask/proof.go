package ask

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/rights"
)

// Proofs are the ways by which a client may prove who asks, in their order.
type Proofs struct {
	Munge  bool
	Tokens bool // of auth/jwt
}

// find gives what this host has for questions to a server; nil = nothing. A way that fails is passed over, if there is another.
func (p Proofs) find(server *url.URL) func(context.Context, http.Header) error {
	var ways []func(context.Context, http.Header) error
	if program, err := exec.LookPath("munge"); err == nil && p.Munge {
		ways = append(ways, func(ctx context.Context, h http.Header) error { return munge(ctx, program, h) })
	}
	if program, err := exec.LookPath("scontrol"); p.Tokens && (err == nil || os.Getenv(tokenVariable) != "") {
		t := &token{made: os.Getenv(tokenVariable), program: program}
		ways = append(ways, func(ctx context.Context, h http.Header) error {
			if server.Scheme != "https" { // on this host, too: anybody may listen at a port that is free
				return fmt.Errorf("a token is sent by https only: ask at https://%s, or on the server's host at its socket", server.Host)
			}
			return t.set(ctx, h)
		})
	}
	if ways == nil {
		return nil
	}
	return func(ctx context.Context, h http.Header) error {
		var wrong []error
		for _, way := range ways {
			err := way(ctx, h)
			if err == nil {
				return nil
			}
			wrong = append(wrong, err)
		}
		return errors.Join(wrong...)
	}
}

// munge makes a credential for this server.
func munge(ctx context.Context, program string, h http.Header) error {
	out, err := run(ctx, nil, program, "--string="+rights.Payload)
	if err == nil {
		h.Set("Authorization", rights.Scheme+" "+out)
	}
	return err
}

// run gives the output of a program that runs in the environment of this one, without some variables.
func run(ctx context.Context, without []string, program string, args ...string) (string, error) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &errs
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(without, name)
	})
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// tokenVariable is where Slurm's own commands look for a token.
const tokenVariable = "SLURM_JWT"

// A token that is made here is good for tokenLife: whoever may read it can do all that its user can. Before tokenRest is left of it,
// another one is made.
const (
	tokenLife = 5 * time.Minute
	tokenRest = 30 * time.Second
)

// token is the user's token: that of the environment while it is good, else one that Slurm makes.
type token struct {
	made    string // may have expired
	program string // scontrol; "" = it is not here
}

// set adds a good token to the header of a question.
func (t *token) set(ctx context.Context, h http.Header) error {
	named, ends := read(t.made)
	if left := time.Until(ends); left < tokenRest && t.program != "" {
		// With SLURM_JWT scontrol would use that token, which may have expired, to ask for another one.
		out, err := run(ctx, []string{tokenVariable}, t.program, "token", fmt.Sprintf("lifespan=%d", int(tokenLife.Seconds())))
		if err != nil && left <= 0 {
			return err
		}
		if err == nil {
			t.made = strings.TrimPrefix(out, tokenVariable+"=")
			named, ends = read(t.made)
		}
	}
	if !time.Now().Before(ends) {
		return errors.New("the token in " + tokenVariable + " has expired; make a new one with scontrol token")
	}
	h.Set("Authorization", rights.TokenScheme+" "+t.made)
	if !named { // as tokens that are not Slurm's own
		me, err := user.Current()
		if err != nil {
			return fmt.Errorf("asking for the user of this process: %w", err)
		}
		h.Set(rights.TokenUser, me.Username)
	}
	return nil
}

// read tells whether a token names its user, and when it ends.
func read(token string) (named bool, ends time.Time) {
	var claims struct {
		User    string  `json:"sun"`
		Expires float64 `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false, ends
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil || !(claims.Expires > 0 && claims.Expires < 1<<40) {
		return false, ends
	}
	return claims.User != "", time.Unix(int64(claims.Expires), 0)
}
