package notices

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/slurm/certs"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Post is the body of a request to the webhook.
type Post struct {
	ID      string           `json:"id"`
	Kind    string           `json:"kind"`
	User    string           `json:"user"`
	Job     string           `json:"job,omitempty"`
	Name    string           `json:"name,omitempty"` // of the job
	Tenant  string           `json:"tenant,omitempty"`
	GPUs    cluster.GPUCount `json:"gpus,omitempty"`
	At      time.Time        `json:"at,omitzero"`
	Was     time.Time        `json:"was,omitzero"`
	Counts  map[string]int   `json:"counts,omitempty"`
	Created time.Time        `json:"created,omitzero"`
	Subject string           `json:"subject"`
	Text    string           `json:"text"`
}

// poster brings letters to a webhook.
type poster struct {
	url    string
	secret []byte
	client http.Client
}

func newPoster(by *config.Webhook) (*poster, error) {
	trust, err := certs.Files{CAFile: by.CAFile}.Load()
	if err != nil {
		return nil, err
	}
	key, err := secret(by.SecretFile)
	if err != nil {
		return nil, err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &poster{by.URL, []byte(key), http.Client{Timeout: patience, CheckRedirect: stay, Transport: &http.Transport{TLSClientConfig: trust}}}, nil
}

// secret reads a secret from a file.
func secret(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "", fmt.Errorf("%s is empty", path)
	}
	return string(text), nil
}

// Sign gives the signature of a body that is posted at a moment: t=UNIX,v1=HEX, an HMAC-SHA256 of UNIX, a dot and the body.
func Sign(secret, body []byte, at time.Time) string {
	when := strconv.FormatInt(at.Unix(), 10)
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(when + "."))
	h.Write(body)
	return "t=" + when + ",v1=" + hex.EncodeToString(h.Sum(nil))
}

func (p *poster) carry(ctx context.Context, n *store.Notice, l *words) error {
	f := &n.Facts
	post := Post{ID: l.id, Kind: n.Kind, User: strings.ToValidUTF8(n.User, "?"), Job: f.ID, Name: f.Name, Tenant: f.Tenant, GPUs: f.GPUs, At: moment(f.At), Was: moment(f.Was), Counts: f.Counts,
		Created: n.Created.UTC(), Subject: l.subject, Text: l.body}
	body, err := json.Marshal(post)
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", l.id)
	request.Header.Set("Fairlease-Signature", Sign(p.secret, body, time.Now()))
	answer, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // so that the connection serves the next one
	switch answer.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		return errors.New("the server sends it elsewhere (" + answer.Status + "): redirects are not followed")
	}
	return errors.New("the server refuses it: " + answer.Status)
}

// moment gives a moment for the body; zero = unknown.
func moment(at cluster.Instant) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return at.Time().UTC()
}

func (p *poster) close() { p.client.CloseIdleConnections() }
