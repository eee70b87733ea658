package telemetry

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// noon is when tokens of the tests are checked.
var noon = time.Unix(1_700_000_000, 0)

// made gives a token with a head, a body and a signature.
func made(head, body, signature string) string {
	text := base64.RawURLEncoding.EncodeToString
	return text([]byte(head)) + "." + text([]byte(body)) + "." + text([]byte(signature))
}

// tokenOf gives a token of a user that is good for a while. Its signature is the name of the cluster that made it.
func tokenOf(user string, good time.Duration, cluster string) string {
	return made(`{"alg":"HS256","typ":"JWT"}`, fmt.Sprintf(`{"exp":%d,"iat":%d,"sun":%q}`, noon.Add(good).Unix(), noon.Unix(), user), cluster)
}

// controller stands for slurmctld of the cluster "here": it takes a token if it has made it, for the user whom it names.
type controller struct {
	asked atomic.Int64
	fails atomic.Bool
}

func (c *controller) takes(_ context.Context, user, token string) (bool, error) {
	c.asked.Add(1)
	if c.fails.Load() {
		return false, errors.New("slurmrestd is away")
	}
	parts := strings.Split(token, ".")
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return parts[2] == base64.RawURLEncoding.EncodeToString([]byte("here")) && (strings.Contains(string(body), fmt.Sprintf("%q", user)) || !strings.Contains(string(body), "sun")), nil
}

func tokens(t *testing.T) (*Tokens, *controller, *time.Time) {
	t.Helper()
	now, c := noon, new(controller)
	return &Tokens{Ask: c.takes, Now: func() time.Time { return now }}, c, &now
}

// with gives a request from an address by TLS, with headers.
func with(from string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr, r.TLS = from, new(tls.ConnectionState)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// A token lets in the user whom it names and nobody else. Refusals have no part of the token, and what cannot be a good token costs
// Slurm no question.
func TestATokenIsOfItsUser(t *testing.T) {
	d, slurm, _ := tokens(t)
	const here = "192.0.2.1:4711"
	good := tokenOf("alice", time.Hour, "here")
	long := tokenOf("alice", time.Hour, strings.Repeat("x", longestToken))
	sign := func(body string) string { return made(`{"alg":"HS256"}`, body, "here") }
	for _, c := range []struct {
		what   string
		header []string
		want   string // the user, or a part of the refusal after a !
		asks   int64
	}{
		{"a good token", []string{"Authorization", "Bearer " + good}, "alice", 1},
		{"the same again", []string{"Authorization", "Bearer " + good}, "alice", 0},
		{"in small letters", []string{"Authorization", "bearer  " + good}, "alice", 0},
		{"with the user's name", []string{"Authorization", "Bearer " + good, UserHeader, "alice"}, "alice", 0},
		{"with the name of another user", []string{"Authorization", "Bearer " + good, UserHeader, "root"}, "!another user", 0},
		{"with two names", []string{"Authorization", "Bearer " + good, UserHeader, "alice", UserHeader, "root"}, "!more than one", 0},
		{"with two headers", []string{"Authorization", "Bearer " + good, "Authorization", "Bearer " + tokenOf("bob", time.Hour, "here")}, "!more than one", 0},
		{"two in one header", []string{"Authorization", "Bearer " + good + " " + good}, "!no token", 0},
		{"two in one header, with a comma", []string{"Authorization", "Bearer " + good + ", Bearer " + good}, "!no token", 0},
		{"another signature", []string{"Authorization", "Bearer " + tokenOf("alice", time.Hour, "mine")}, "!does not take", 1},
		{"the same again", []string{"Authorization", "Bearer " + tokenOf("alice", time.Hour, "mine")}, "!does not take", 0},
		{"for root, signed by somebody", []string{"Authorization", "Bearer " + tokenOf("root", time.Hour, "mine")}, "!does not take", 1},
		{"of root", []string{"Authorization", "Bearer " + tokenOf("root", time.Hour, "here")}, "root", 1},
		{"of another cluster", []string{"Authorization", "Bearer " + tokenOf("alice", time.Hour, "there")}, "!another cluster", 1},
		{"expired", []string{"Authorization", "Bearer " + tokenOf("alice", -time.Second, "here")}, "!has expired", 0},
		{"of this very second", []string{"Authorization", "Bearer " + tokenOf("alice", 0, "here")}, "!has expired", 0},
		{"without an end", []string{"Authorization", "Bearer " + sign(`{"sun":"alice"}`)}, "!when it expires", 0},
		{"with an end that is no time", []string{"Authorization", "Bearer " + sign(`{"sun":"alice","exp":1e300}`)}, "!when it expires", 0},
		{"with an end before time", []string{"Authorization", "Bearer " + sign(`{"sun":"alice","exp":-5}`)}, "!when it expires", 0},
		{"with two ends", []string{"Authorization", "Bearer " + sign(`{"sun":"alice","exp":1,"exp":1900000000}`)}, "!no token", 0},
		{"with two users", []string{"Authorization", "Bearer " + sign(`{"sun":"alice","sun":"root","exp":1900000000}`)}, "!no token", 0},
		{"not signed", []string{"Authorization", "Bearer " + made(`{"alg":"none"}`, `{"sun":"alice","exp":1900000000}`, "")}, "!not signed", 0},
		{"not signed, with a signature", []string{"Authorization", "Bearer " + made(`{"alg":"none"}`, `{"sun":"alice","exp":1900000000}`, "here")}, "!not signed", 0},
		{"without its signature", []string{"Authorization", "Bearer " + made(`{"alg":"HS256"}`, `{"sun":"alice","exp":1900000000}`, "")}, "!not signed", 0},
		{"of no user", []string{"Authorization", "Bearer " + sign(`{"exp":1900000000}`)}, "!says who you are", 0},
		{"of no user, with a name", []string{"Authorization", "Bearer " + sign(`{"exp":1900000000}`), UserHeader, "bob"}, "bob", 1},
		{"of a user with a line end", []string{"Authorization", "Bearer " + sign(`{"sun":"alice\r\nX: y","exp":1900000000}`)}, "!cannot be", 0},
		{"of a number", []string{"Authorization", "Bearer " + sign(`{"sun":0,"exp":1900000000}`)}, "!no token", 0},
		{"too long", []string{"Authorization", "Bearer " + long}, "!too long", 0},
		{"none", []string{"Authorization", "Bearer "}, "!no token", 0},
		{"nonsense", []string{"Authorization", "Bearer a.b.c"}, "!no token", 0},
		{"no JSON", []string{"Authorization", "Bearer " + made("x", "y", "z")}, "!no token", 0},
	} {
		before := slurm.asked.Load()
		r := with(here, c.header...)
		if !d.Has(r) {
			t.Errorf("%s: the request has no token", c.what)
		}
		user, err := d.User(r, false)
		says, refusal := strings.CutPrefix(c.want, "!")
		var refused *Refused
		switch {
		case refusal && (!errors.As(err, &refused) || !strings.Contains(err.Error(), says) || user != ""):
			t.Errorf("%s: user %q, %v; want %q", c.what, user, err, says)
		case refusal && len(c.header[1]) > 20 && strings.Contains(err.Error(), c.header[1][10:20]):
			t.Errorf("%s: the refusal has a part of the token: %v", c.what, err)
		case !refusal && (err != nil || user != c.want):
			t.Errorf("%s: user %q, %v", c.what, user, err)
		}
		if n := slurm.asked.Load() - before; n != c.asks {
			t.Errorf("%s: Slurm was asked %d times, want %d", c.what, n, c.asks)
		}
	}
	if d.Has(with(here, "Authorization", "MUNGE x")) || d.Has(with(here)) {
		t.Error("a request without a token has one")
	}
}

// Tokens that others may have read on their way are refused.
func TestTokensInClear(t *testing.T) {
	d, slurm, _ := tokens(t)
	for _, c := range []struct {
		from     string
		shielded bool
		want     bool
	}{{"192.0.2.1:1", false, false}, {"[2001:db8::1]:1", false, false}, {"192.0.2.1:1", true, true}, {"127.0.0.1:1", false, true}, {"[::1]:1", false, true}, {"@", false, false}, {"@", true, true}} {
		r := with(c.from, "Authorization", "Bearer "+tokenOf("alice", time.Hour, "here"))
		r.TLS = nil
		if user, err := d.User(r, c.shielded); (err == nil) != c.want || (user == "alice") != c.want || err != nil && !strings.Contains(err.Error(), "by TLS only") {
			t.Errorf("from %s, shielded %v: user %q, %v", c.from, c.shielded, user, err)
		}
	}
	if n := slurm.asked.Load(); n != 1 {
		t.Errorf("Slurm was asked %d times", n)
	}
}

// Slurm's word holds for ten minutes, and never longer than the token.
func TestATokenIsAskedForAgain(t *testing.T) {
	d, slurm, now := tokens(t)
	user := func(token string) error {
		_, err := d.User(with("192.0.2.1:1", "Authorization", "Bearer "+token), false)
		return err
	}
	long, short := tokenOf("alice", time.Hour, "here"), tokenOf("alice", 2*time.Minute, "here")
	for _, c := range []struct {
		after time.Duration
		token string
		asks  int64
		says  string
	}{{0, long, 1, ""}, {0, short, 1, ""}, {119 * time.Second, short, 0, ""}, {2 * time.Minute, short, 0, "expired"}, {2 * time.Minute, long, 0, ""}, {keepTaken, long, 1, ""}, {time.Hour, long, 0, "expired"}} {
		*now = noon.Add(c.after)
		before := slurm.asked.Load()
		if err := user(c.token); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || slurm.asked.Load()-before != c.asks {
			t.Errorf("after %s: %v, asked %d times", c.after, err, slurm.asked.Load()-before)
		}
	}
	*now = noon
	slurm.fails.Store(true)
	other := tokenOf("bob", time.Hour, "here")
	var refused *Refused
	if err := user(other); err == nil || errors.As(err, &refused) {
		t.Errorf("Slurm is away: %v", err)
	}
	slurm.fails.Store(false)
	if err := user(other); err != nil {
		t.Errorf("Slurm is back: %v", err)
	}
}

// Somebody who guesses must wait after a few tokens, and shuts out nobody: neither those who are known, nor others at the same address, nor
// other addresses. So must somebody with very many good tokens. All together ask Slurm only so often, and what is remembered has a bound.
func TestGuessing(t *testing.T) {
	d, slurm, now := tokens(t)
	user := func(from, token string) error {
		_, err := d.User(with(from, "Authorization", "Bearer "+token), false)
		return err
	}
	good := tokenOf("alice", time.Hour, "here")
	if err := user("192.0.2.7:1", good); err != nil {
		t.Fatal(err)
	}
	guesses := 0
	guess := func(from string) error {
		guesses++
		return user(from, tokenOf("root", time.Hour, fmt.Sprint("guess ", guesses)))
	}
	var refused *Refused
	for i := range mostFailed + 4 {
		if err := guess("192.0.2.7:1"); !errors.As(err, &refused) {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	if pause, ok := d.may("192.0.2.7"); !ok || pause != pauseShort {
		t.Errorf("the next guess: %v, pause %s", ok, pause)
	}
	if err := user("192.0.2.7:1", tokenOf("carol", time.Hour, "here")); err != nil {
		t.Errorf("another person at the same address: %v", err)
	}
	if err := user("192.0.2.7:1", good); err != nil {
		t.Errorf("a person who is known: %v", err)
	}
	if err := user("192.0.2.8:1", tokenOf("bob", time.Hour, "here")); err != nil {
		t.Errorf("another address: %v", err)
	}
	for i := range mostFailed {
		_ = guess(fmt.Sprintf("[2001:db8::%x]:1", i))
	}
	if pause, _ := d.may("2001:db8::"); pause != pauseShort {
		t.Errorf("a network with many addresses does not count as one: %+v", d.of)
	}
	for i := range 20 * mostFailed { // from many places
		_ = guess(fmt.Sprintf("10.0.0.%d:1", i/mostFailed))
	}
	for i := range manyAsked { // of one user
		if pause, ok := d.may("192.0.2.9"); !ok || i >= mostEach && pause == 0 {
			t.Fatalf("good token %d: %v, pause %s", i, ok, pause)
		}
	}
	if pause, ok := d.may("192.0.2.9"); !ok || pause != pauseLong {
		t.Errorf("one more: %v, pause %s", ok, pause)
	}
	for i := range 20 {
		if err := user(fmt.Sprintf("10.0.0.%d:1", 100+i), tokenOf(fmt.Sprint("user", i), time.Hour, "here")); err != nil || d.asked <= manyAsked {
			t.Errorf("another address, after %d: %v", d.asked, err)
		}
	}
	for minute := range 20 {
		*now = noon.Add(time.Duration(minute+1) * time.Minute)
		for i := range mostAsked + 100 {
			_ = user(fmt.Sprintf("10.%d.%d.%d:1", minute, i/250, i%250), tokenOf(fmt.Sprint("user", minute, "-", i), 2*time.Hour, "here"))
		}
		if n := slurm.asked.Load(); n > int64(mostAsked*(minute+2)) {
			t.Fatalf("after %d minutes Slurm was asked %d times", minute, n)
		}
		if most := mostAsked * (int(keepTaken/time.Minute) + 1); len(d.known) > most || len(d.of) > mostAsked {
			t.Fatalf("%d tokens are remembered, and %d may be", len(d.known), most)
		}
	}
}

// Requests of one page with the same token ask Slurm once.
func TestManyRequestsWithOneToken(t *testing.T) {
	d, slurm, _ := tokens(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if user, err := d.User(with("192.0.2.1:1", "Authorization", "Bearer "+tokenOf("alice", time.Hour, "here")), false); err != nil || user != "alice" {
				t.Errorf("user %q, %v", user, err)
			}
		})
	}
	all.Wait()
	if n := slurm.asked.Load(); n > askEach {
		t.Errorf("Slurm was asked %d times", n)
	}
}

// A report beside a token is believed of the job's owner only, and MUNGE is not needed.
func TestReportsByToken(t *testing.T) {
	b, _, _ := inbox(t, func(context.Context, []byte) (uint32, []byte, error) {
		t.Error("a credential is opened")
		return 0, nil, nil
	})
	slurm := new(controller)
	b.Tokens = &Tokens{Ask: slurm.takes, Now: func() time.Time { return noon }}
	b.Number = func(name string) (uint32, bool) {
		uid, ok := map[string]uint32{"me": uint32(os.Getuid()), "nobody": 65534}[name]
		return uid, ok
	}
	post := func(from, path, token, body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.RemoteAddr = from
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Result().Body)
		return w.Code, string(text)
	}
	mine := tokenOf("me", time.Hour, "here")
	const local = "127.0.0.1:1"
	b.Lease = func(cluster.JobID) (Term, bool) { return Term{}, false }
	for _, c := range []struct {
		what, from, path, token, body string
		code                          int
		says                          string
	}{
		{"a report", local, "/v1/progress", mine, `{"job":"1","steps":7}`, 202, ""},
		{"too soon", local, "/v1/progress", mine, `{"job":"1","steps":8}`, 429, "has just reported"},
		{"a lease", local, "/v1/lease", mine, `{"job":"1"}`, 200, `{"job":"1"}`},
		{"another's job", local, "/v1/progress", mine, `{"job":"5","steps":7}`, 403, "not a job of user"},
		{"another's lease", local, "/v1/lease", mine, `{"job":"5"}`, 403, "not a job of user"},
		{"another's token", local, "/v1/progress", tokenOf("nobody", time.Hour, "here"), `{"job":"1","steps":7}`, 403, "not a job of user"},
		{"of a user without jobs", local, "/v1/progress", tokenOf("bob", time.Hour, "here"), `{"job":"1","steps":7}`, 404, "no job of bob"},
		{"of another cluster", local, "/v1/progress", tokenOf("me", time.Hour, "there"), `{"job":"1","steps":7}`, 401, "another cluster"},
		{"expired", local, "/v1/progress", tokenOf("me", -time.Hour, "here"), `{"job":"1","steps":7}`, 401, "expired"},
		{"in clear", "192.0.2.1:1", "/v1/progress", mine, `{"job":"1","steps":7}`, 401, "by TLS only"},
		{"no report", local, "/v1/progress", mine, `steps=7`, 400, "cannot be read"},
		{"too long", local, "/v1/progress", mine, strings.Repeat("x", 5*Most), 413, "too long"},
	} {
		if code, text := post(c.from, c.path, c.token, c.body); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %q, want %d %q", c.what, code, text, c.code, c.says)
		}
	}
	if reports, _ := b.Take(); len(reports) != 1 || reports[0].Steps != 7 {
		t.Errorf("heard %+v", reports)
	}
	slurm.fails.Store(true)
	if code, text := post(local, "/v1/progress", tokenOf("nobody", 2*time.Hour, "here"), `{"job":"5","steps":7}`); code != 503 || strings.Contains(text, "away") {
		t.Errorf("Slurm is away: %d %q", code, text)
	}
	b.Tokens = nil
	if code, text := post(local, "/v1/progress", mine, `{"job":"1","steps":9}`); code != 401 || !strings.Contains(text, "slurm.jwt") {
		t.Errorf("without tokens: %d %q", code, text)
	}
}
