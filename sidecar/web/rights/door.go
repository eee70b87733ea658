package rights

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// Payload is what a MUNGE credential for this server holds, so that one that was made for another service is refused.
const Payload = "fairlease-web"

// Scheme is the name of credentials in the header Authorization: "Authorization: MUNGE MUNGE:...:".
const Scheme = "MUNGE"

// TokenScheme is the name of tokens in the header Authorization, TokenUser the header that names their user.
const (
	TokenScheme = telemetry.Bearer
	TokenUser   = telemetry.UserHeader
)

// Door finds out which user asks.
type Door struct {
	// Open opens a MUNGE credential; nil = none is taken.
	Open func(ctx context.Context, credential []byte) (uid uint32, payload []byte, err error)
	// Tokens takes tokens of auth/jwt; nil = whoever sends one is nobody.
	Tokens *telemetry.Tokens
	// Proxies are the addresses at which UserHeader is believed; none = nowhere.
	Proxies    []netip.Prefix
	UserHeader string
	// ProxyUsers are the users of this host that proxies run as: their UserHeader is believed at a unix socket, too.
	ProxyUsers []uint32
	// NameOf gives the name of a user of this host; nil = UserName.
	NameOf func(uid uint32) (string, error)

	once    sync.Once
	opening telemetry.Openings
}

// Refused says why nobody is let in by a credential or a header.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// ErrBusy means that too many credentials are being opened.
var ErrBusy = errors.New("too many credentials are being opened: try again in a few seconds")

// maxOpening is the maximum number of credentials that are opened at once: a process each. maxOpeningEach is that of one address.
const (
	maxOpening     = 8
	maxOpeningEach = 2
)

type peerKey struct{}

// WithPeer gives the context of a connection with the user at its other end.
func WithPeer(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}

// PeerOf asks the kernel for the user at the other end of a unix socket.
func PeerOf(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(failed, err); err != nil {
		return 0, fmt.Errorf("asking for the user at the socket: %w", err)
	}
	return cred.Uid, nil
}

// User gives the user who asks, "" = anonymous, and whether a proxy said so. Its error is a *Refused, ErrBusy, or about this host.
func (d *Door) User(r *http.Request) (name string, byProxy bool, err error) {
	nameOf := d.NameOf
	if nameOf == nil {
		nameOf = UserName
	}
	uid, local := r.Context().Value(peerKey{}).(uint32)
	if local && !slices.Contains(d.ProxyUsers, uid) {
		name, err = nameOf(uid)
		return name, false, err
	}
	proxied := local || d.trusts(r)
	told := ""
	if proxied {
		if told, err = d.header(r); err != nil {
			return "", false, err
		}
	}
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	munge, token := strings.EqualFold(scheme, Scheme), d.Tokens != nil && strings.EqualFold(scheme, TokenScheme)
	switch {
	case told != "" && munge:
		return "", false, &Refused{"the request has both a credential and a proxy's header: one person only can ask"}
	case told != "": // proxies that log people in often pass a token of theirs on: it is not for this server
		return told, true, nil
	case token:
		name, err = d.token(r, proxied)
		return name, false, err
	case !munge:
		return "", false, nil
	}
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	if uid, err = d.open(r.Context(), from, strings.TrimSpace(credential)); err != nil {
		return "", false, err
	}
	name, err = nameOf(uid)
	return name, false, err
}

// trusts tells whether a request is from a trusted proxy. Others may write its header as they like.
func (d *Door) trusts(r *http.Request) bool {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // no address is in no prefix
	address := from.Addr().Unmap()
	return d.UserHeader != "" && slices.ContainsFunc(d.Proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// token gives the user of a token. How one came to a trusted proxy is the site's concern.
func (d *Door) token(r *http.Request, proxied bool) (string, error) {
	name, err := d.Tokens.User(r, proxied)
	var refused *telemetry.Refused
	switch {
	case errors.As(err, &refused):
		return "", &Refused{refused.Error()}
	case errors.Is(err, telemetry.ErrBusy):
		return "", ErrBusy
	}
	return name, err
}

// header gives the user that a proxy's header names.
func (d *Door) header(r *http.Request) (string, error) {
	values := r.Header.Values(d.UserHeader)
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", nil
	case len(values) > 1:
		return "", &Refused{fmt.Sprintf("the proxy's header %s is there %d times: the proxy must replace it", d.UserHeader, len(values))}
	case len(values[0]) > 256 || strings.ContainsFunc(values[0], func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) || c == ',' }):
		return "", &Refused{fmt.Sprintf("the proxy's header %s holds no user's name", d.UserHeader)}
	}
	return values[0], nil
}

// open gives the author of a credential from an address.
func (d *Door) open(ctx context.Context, from, credential string) (uint32, error) {
	if d.Open == nil {
		return 0, &Refused{"this server takes no MUNGE credentials (web.munge)"}
	}
	if credential == "" {
		return 0, &Refused{"the credential is refused: there is none after " + Scheme}
	}
	d.once.Do(func() { d.opening.Most, d.opening.Each = maxOpening, maxOpeningEach })
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	leave, gone, ok := d.opening.Enter(ctx, from)
	if !ok {
		return 0, ErrBusy
	}
	defer gone()
	defer leave()
	uid, payload, err := d.Open(ctx, []byte(credential))
	var refused *telemetry.Refused
	switch {
	case errors.As(err, &refused):
		return 0, &Refused{refused.Error()}
	case err != nil:
		return 0, fmt.Errorf("opening a credential: %w", err)
	case string(payload) != Payload:
		return 0, &Refused{fmt.Sprintf("the credential is refused: it was made for something else; make one with munge -s %s", Payload)}
	}
	return uid, nil
}

// UserName gives the name of a user of this host, remembered for a minute.
func UserName(uid uint32) (string, error) {
	return userNames.get(strconv.FormatUint(uint64(uid), 10), func(id string) (string, error) {
		u, err := user.LookupId(id)
		if err != nil {
			return "", fmt.Errorf("this host knows no user %s: %w", id, err)
		}
		return u.Username, nil
	})
}

// GroupsOf gives the groups of a user of this host, remembered for a minute; none if that is unknown.
func GroupsOf(name string) []string {
	text, err := userGroups.get(name, func(name string) (string, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		ids, err := u.GroupIds()
		var names []string
		for _, id := range ids {
			if g, err := user.LookupGroupId(id); err == nil {
				names = append(names, g.Name)
			}
		}
		return strings.Join(names, "\n"), err
	})
	if err != nil {
		return nil
	}
	return strings.Split(text, "\n")
}

// recent remembers answers of the host's directory, which may be slow.
type recent struct {
	lock sync.Mutex
	of   map[string]answer
}

type answer struct {
	text string
	err  error
	at   time.Time
}

const (
	fresh     = time.Minute
	mostKnown = 10_000
)

var userNames, userGroups recent

func (r *recent) get(key string, ask func(string) (string, error)) (string, error) {
	r.lock.Lock()
	a, ok := r.of[key]
	r.lock.Unlock()
	if ok && time.Since(a.at) < fresh {
		return a.text, a.err
	}
	text, err := ask(key)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.of == nil || len(r.of) >= mostKnown {
		r.of = map[string]answer{}
	}
	r.of[key] = answer{text, err, time.Now()}
	return text, err
}
