package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
)

// Bearer is the scheme of tokens in the header Authorization: "Authorization: Bearer eyJ...". UserHeader names the token's user, as for
// slurmrestd; it may be left out where the token does.
const (
	Bearer     = "Bearer"
	UserHeader = "X-SLURM-USER-NAME"
)

// ErrBusy means that no more tokens are checked for the moment.
var ErrBusy = errors.New("too many tokens are being checked: try again in a minute")

// Tokens finds out whose token of Slurm's auth/jwt a request has. Slurm checks each token, and its word is remembered for some minutes.
type Tokens struct {
	// Ask asks Slurm whether it takes a token of a user. An error means that it cannot be asked.
	Ask func(ctx context.Context, user, token string) (taken bool, err error)
	Now func() time.Time // nil = time.Now

	once    sync.Once
	opening Openings
	lock    sync.Mutex
	known   map[[sha256.Size]byte]known
	minute  time.Time // when the counts below began
	asked   int
	of      map[string]counts // by address
}

// counts are the questions to Slurm of an address, and those of them that it answered with no.
type counts struct{ asked, failed int }

// known is Slurm's word on a token of a user.
type known struct {
	taken bool
	until time.Time
}

// The limits of tokens. Texts that cannot be tokens, and tokens that have expired, are refused without a question.
const (
	longestToken = 8 << 10          // in bytes
	keepTaken    = 10 * time.Minute // at most until the token expires
	keepRefused  = time.Minute
	askAtOnce    = 4
	askEach      = 2 // of one address
	askPatience  = 5 * time.Second
)

// The limits of tokens in a minute. An address with too many is slowed down and not refused, since other users ask from there; and it
// keeps no turn from other addresses. Only mostAsked refuses: it bounds the answers that are known, too.
const (
	mostAsked  = 6000 // tokens of 10,000 jobs need 1000
	manyAsked  = 3000 // beyond them, addresses with more than fewAsked must wait for long
	mostEach   = 300  // of one address; those beyond must wait
	fewAsked   = 20   // of one address: they never wait
	mostFailed = 20   // of one address; those beyond must wait
	pauseShort = 100 * time.Millisecond
	pauseLong  = time.Second
)

// Has tells whether a request has a token.
func (*Tokens) Has(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, Bearer)
}

// User gives the user of a request's token. shielded tells that nobody on the way can have read it, though it did not come by TLS.
// Its error is a *Refused, ErrBusy, or of Ask; it has no part of the token.
func (t *Tokens) User(r *http.Request, shielded bool) (string, error) {
	from := near(r.RemoteAddr)
	if !shielded && r.TLS == nil && !from.IsLoopback() {
		return "", &Refused{"tokens are taken by TLS only, since whoever reads one can use it; do not use this one again, and ask at https://"}
	}
	user, token, ends, err := claim(r.Header)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(user + "\x00" + token))
	if !t.now().Before(ends) {
		return "", &Refused{"the token has expired; make a new one with scontrol token"}
	}
	if taken, ok := t.knows(key); ok {
		return named(user, taken)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askPatience)
	defer cancel()
	t.once.Do(func() { t.opening.Most, t.opening.Each = askAtOnce, askEach })
	leave, gone, ok := t.opening.Enter(ctx, from.String())
	if !ok {
		return "", ErrBusy
	}
	pause := time.Duration(0)
	defer func() {
		leave()
		if pause == 0 { // most often
			gone()
			return
		}
		time.AfterFunc(pause, gone)
	}()
	if taken, ok := t.knows(key); ok { // another request with it was before this one
		return named(user, taken)
	}
	if pause, ok = t.may(from.String()); !ok {
		return "", ErrBusy
	}
	taken, err := t.Ask(ctx, user, token)
	if err != nil {
		return "", fmt.Errorf("asking Slurm for a token: %w", err)
	}
	t.learn(key, taken, ends, from.String())
	return named(user, taken)
}

func named(user string, taken bool) (string, error) {
	if !taken {
		return "", &Refused{"Slurm does not take the token as one of " + user + ": it is of another user or of another cluster, or damaged"}
	}
	return user, nil
}

func (t *Tokens) now() time.Time {
	if t.Now == nil {
		return time.Now()
	}
	return t.Now()
}

// knows gives Slurm's word on a token, if it is known.
func (t *Tokens) knows(key [sha256.Size]byte) (taken, ok bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	k, ok := t.known[key]
	return k.taken, ok && t.now().Before(k.until)
}

// may counts a question for an address, and tells whether it may be asked, and how long its place stays taken after the answer.
func (t *Tokens) may(from string) (pause time.Duration, ok bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if now := t.now(); now.Sub(t.minute) >= time.Minute || now.Before(t.minute) {
		t.minute, t.asked, t.of = now, 0, map[string]counts{}
		maps.DeleteFunc(t.known, func(_ [sha256.Size]byte, k known) bool { return !now.Before(k.until) })
	}
	if t.asked >= mostAsked {
		return 0, false
	}
	t.asked++
	c := t.of[from]
	c.asked++
	t.of[from] = c
	switch {
	case c.asked <= fewAsked:
		return 0, true
	case t.asked > manyAsked:
		return pauseLong, true
	case c.asked > mostEach || c.failed >= mostFailed:
		return pauseShort, true
	}
	return 0, true
}

// learn remembers Slurm's word on a token that ends at some time.
func (t *Tokens) learn(key [sha256.Size]byte, taken bool, ends time.Time, from string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	k := known{taken, t.now().Add(keepTaken)}
	if !taken {
		k.until = t.now().Add(keepRefused)
		c := t.of[from]
		c.failed++
		t.of[from] = c
	}
	if ends.Before(k.until) {
		k.until = ends
	}
	if t.known == nil {
		t.known = map[[sha256.Size]byte]known{}
	}
	t.known[key] = k
}

// near gives the address of a request to count by: of IPv6 the network, since a host there has many addresses.
func near(remote string) netip.Addr {
	at, _ := netip.ParseAddrPort(remote) // a unix socket has none
	from := at.Addr().Unmap().WithZone("")
	if from.Is6() && !from.IsLoopback() {
		net, _ := from.Prefix(64)
		return net.Addr()
	}
	return from
}

// claim reads the token of a request, and whose it says that it is. Nothing of that is proven.
func claim(h http.Header) (user, token string, ends time.Time, err error) {
	refuse := func(why string) (string, string, time.Time, error) { return "", "", time.Time{}, &Refused{why} }
	if len(h.Values("Authorization")) != 1 || len(h.Values(UserHeader)) > 1 {
		return refuse("there is more than one token or user")
	}
	_, token, _ = strings.Cut(h.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if len(token) > longestToken {
		return refuse(fmt.Sprintf("the token is too long: at most %d bytes", longestToken))
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return refuse("it is no token of scontrol token")
	}
	var head struct {
		Alg string `json:"alg"`
	}
	var body struct {
		User    string  `json:"sun"`
		Expires float64 `json:"exp"`
	}
	if !decode(parts[0], &head) || !decode(parts[1], &body) {
		return refuse("it is no token of scontrol token")
	}
	if head.Alg != "HS256" && head.Alg != "RS256" || !decode(parts[2], nil) {
		return refuse("the token is not signed with HS256 or RS256")
	}
	if !(body.Expires > 0 && body.Expires < 1<<40) {
		return refuse("the token does not say when it expires")
	}
	user = h.Get(UserHeader)
	switch {
	case user == "":
		user = body.User
	case body.User != "" && user != body.User:
		return refuse("the token is of another user than " + UserHeader + " says")
	}
	if user == "" {
		return refuse("neither the token nor " + UserHeader + " says who you are")
	}
	if len(user) > 256 || strings.ContainsFunc(user, func(c rune) bool { return c == ',' || unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return refuse("the token's user cannot be a user's name")
	}
	return user, token, time.Unix(int64(body.Expires), 0), nil
}

// decode reads a part of a token: base64, and if into is not nil, JSON whose names are unique.
func decode(part string, into any) bool {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	return err == nil && len(text) > 0 && (into == nil || json.Unmarshal(text, into) == nil)
}
