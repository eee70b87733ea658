package web_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/telemetry"
	"github.com/fairlease/fairlease/sidecar/web"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// source is a made-up site.
type source struct {
	*scene.Keeper
	past *scenetest.Past
}

func (s source) Past() scene.Past { return scene.Past{PastJobs: s.past, PastRounds: s.past} }

// newServer gives a server of a made-up site. It knows users 1000 (ann, an operator) and 1001 (of the first job).
func newServer() *web.Server {
	site := scenetest.Site{Nodes: 8, Jobs: 50}
	s := source{scene.Hold(site.Scene()), site.Past()}
	bob := s.Scene().Jobs[0].Record.User
	return &web.Server{
		Source: s, API: &api.API{Source: s}, Policy: &rights.Policy{Operators: []string{"ann"}, Owners: []string{"root"}},
		Door: &rights.Door{NameOf: func(uid uint32) (string, error) {
			name, ok := map[uint32]string{0: "root", 1000: "ann", 1001: bob}[uid]
			if !ok {
				return "", fmt.Errorf("no user %d", uid)
			}
			return name, nil
		}},
		Page: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "page for %q", rights.From(r.Context()).User)
		}),
	}
}

// run starts a server on both listeners, and gives the address of TCP and the path of the socket.
func run(t *testing.T, s *web.Server) (tcp, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "socket")
	s.Listen, s.Socket = "127.0.0.1:0", socket
	says := make(chan string, 100)
	s.Say = func(text string) { says <- text }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		select {
		case text := <-says:
			if at, ok := strings.CutPrefix(text, "the page is at "); ok {
				tcp = at
			}
		case err := <-ended:
			t.Fatal(err)
		}
	}
	return tcp, socket
}

// overSocket gives a client that asks at a unix socket.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

func get(t *testing.T, c *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// The kernel says who is at the socket; over TCP nobody is known.
func TestTheSocketKnowsWhoAsks(t *testing.T) {
	s := newServer()
	s.Door.NameOf = func(uid uint32) (string, error) {
		if int(uid) != os.Getuid() {
			return "", fmt.Errorf("uid %d is not mine", uid)
		}
		return "ann", nil
	}
	tcp, socket := run(t, s)
	if status, text := get(t, overSocket(socket), "http://local/api/v1/person"); status != 200 || !strings.Contains(text, `"user":"ann","operator":true`) {
		t.Errorf("status %d: %s", status, text)
	}
	if status, text := get(t, http.DefaultClient, "http://"+tcp+"/api/v1/person"); status != 200 || !strings.Contains(text, `"user":"","operator":false,"tenants":[]`) {
		t.Errorf("status %d: %s", status, text)
	}
	if status, text := get(t, http.DefaultClient, "http://"+tcp+"/"); status != 200 || text != `page for ""` {
		t.Errorf("status %d: %s", status, text)
	}
	// Headers do not count at the socket.
	if _, text := get(t, overSocket(socket), "http://local/api/v1/person", "X-Remote-User", "root", "Authorization", "MUNGE x"); !strings.Contains(text, `"user":"ann"`) {
		t.Error(text)
	}
}

// ask gives a request from an address to a server's handler.
func ask(s *web.Server, from string, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = from
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// A proxy's header counts from its own address only, once, and never makes an owner of the server.
func TestProxies(t *testing.T) {
	s := newServer()
	s.Door.UserHeader = "X-Remote-User"
	s.Door.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::1/128")}
	bob := s.Source.Scene().Jobs[0].Record.User
	for _, c := range []struct {
		from   string
		header []string
		status int
		has    string
	}{
		{"10.0.0.7:1", []string{"X-Remote-User", "ann"}, 200, `"user":"ann","operator":true`},
		{"[fd00::1]:1", []string{"X-Remote-User", bob}, 200, `"user":"` + bob + `","operator":false,"tenants":["t0`},
		{"[::ffff:10.0.0.7]:1", []string{"X-Remote-User", "ann"}, 200, `"user":"ann"`},
		{"10.0.0.7:1", nil, 200, `"user":""`},
		{"10.0.0.7:1", []string{"X-Remote-User", "root"}, 200, `"user":"root","operator":false`},
		{"10.0.1.7:1", []string{"X-Remote-User", "ann"}, 200, `"user":""`},
		{"10.0.1.7:1", []string{"X-Remote-User", "ann", "X-Forwarded-For", "10.0.0.7", "Forwarded", "for=10.0.0.7", "X-Real-IP", "10.0.0.7"}, 200, `"user":""`},
		{"[fd00::2]:1", []string{"X-Remote-User", "ann"}, 200, `"user":""`},
		{"10.0.0.7:1", []string{"X-Remote-User", bob, "X-Remote-User", "ann"}, 401, "2 times"},
		{"10.0.0.7:1", []string{"X-Remote-User", bob + ",ann"}, 401, "no user's name"},
		{"10.0.0.7:1", []string{"X-Remote-User", "ann x"}, 401, "no user's name"},
		{"10.0.0.7:1", []string{"X-Remote-User", "ann", "Authorization", "MUNGE x"}, 401, "one person only"},
	} {
		if w := ask(s, c.from, "/api/v1/person", c.header...); w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("from %s with %q: status %d: %s", c.from, c.header, w.Code, w.Body)
		}
	}
}

// A credential must be fresh, unused, and made for this server.
func TestCredentials(t *testing.T) {
	s := newServer()
	used := map[string]bool{}
	s.Door.Open = func(_ context.Context, credential []byte) (uint32, []byte, error) {
		c := string(credential)
		switch {
		case c == "expired":
			return 0, nil, &telemetry.Refused{Why: "it has expired; is the clock right?"}
		case c == "away":
			return 0, nil, errors.New("munged does not answer at /secret/path")
		case used[c]:
			return 0, nil, &telemetry.Refused{Why: "it was used before"}
		case c == "other":
			return 1000, []byte("progress of job 7"), nil
		case c == "nobody":
			return 4711, []byte(rights.Payload), nil
		case c == "bob":
			return 1001, []byte(rights.Payload), nil
		}
		used[c] = true
		return 1000, []byte(rights.Payload), nil
	}
	for _, c := range []struct {
		authorization string
		status        int
		has           string
	}{
		{"MUNGE good", 200, `"user":"ann","operator":true`},
		{"MUNGE good", 401, "used before"},
		{"munge  other good", 200, `"user":"ann"`},
		{"MUNGE bob", 200, `"operator":false,"tenants":["t0`},
		{"MUNGE expired", 401, "expired"},
		{"MUNGE other", 401, "made for something else"},
		{"MUNGE nobody", 401, "cannot be recognised"},
		{"MUNGE away", 401, "cannot be recognised"},
		{"Basic YW5uOng=", 200, `"user":""`},
		{"Bearer x", 200, `"user":""`},
	} {
		w := ask(s, "10.9.9.9:1", "/api/v1/person", "Authorization", c.authorization)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) || strings.Contains(w.Body.String(), "/secret") || (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: status %d: %s", c.authorization, w.Code, w.Body)
		}
	}
	s.Door.Open = nil
	if w := ask(s, "10.9.9.9:1", "/api/v1/person", "Authorization", "MUNGE x"); w.Code != 401 || !strings.Contains(w.Body.String(), "takes no MUNGE") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// Tokens are taken where Slurm checks them, by TLS or on this host. Behind a proxy that names the user they are not looked at.
func TestTokens(t *testing.T) {
	token := func(user string) string {
		text := base64.RawURLEncoding.EncodeToString
		return "Bearer " + text([]byte(`{"alg":"HS256"}`)) + "." + text(fmt.Appendf(nil, `{"exp":%d,"sun":%q}`, time.Now().Add(time.Hour).Unix(), user)) + "." + text([]byte("x"))
	}
	s := newServer()
	bob := s.Source.Scene().Jobs[0].Record.User
	s.Door.UserHeader, s.Door.Proxies = "X-Remote-User", []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32")}
	away := false
	s.Door.Tokens = &telemetry.Tokens{Ask: func(_ context.Context, user, token string) (bool, error) {
		if away {
			return false, errors.New("no answer at /secret/path")
		}
		return user != "eve", nil
	}}
	for _, c := range []struct {
		from   string
		header []string
		status int
		has    string
	}{
		{"127.0.0.1:1", []string{"Authorization", token("ann")}, 200, `"user":"ann","operator":true`},
		{"127.0.0.1:1", []string{"Authorization", token(bob)}, 200, `"operator":false,"tenants":["t0`},
		{"127.0.0.1:1", []string{"Authorization", token("root")}, 200, `"user":"root","operator":true`},
		{"127.0.0.1:1", []string{"Authorization", token("eve")}, 401, "does not take the token"},
		{"127.0.0.1:1", []string{"Authorization", token(bob), "X-SLURM-USER-NAME", "ann"}, 401, "another user"},
		{"127.0.0.1:1", []string{"Authorization", "Bearer x"}, 401, "no token"},
		{"10.9.9.9:1", []string{"Authorization", token("ann")}, 401, "by TLS only"},
		{"10.0.0.7:1", []string{"Authorization", token("ann")}, 200, `"user":"ann","operator":true`},
		{"10.0.0.7:1", []string{"Authorization", token("ann"), "X-Remote-User", bob}, 200, `"operator":false,"tenants":["t0`},
		{"10.0.0.7:1", []string{"Authorization", token("eve"), "X-Remote-User", bob}, 200, `"operator":false`},
	} {
		w := ask(s, c.from, "/api/v1/person", c.header...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) || (w.Code == 401) != strings.Contains(strings.Join(w.Header().Values("WWW-Authenticate"), " "), "Bearer") {
			t.Errorf("from %s with %.60q: status %d: %s", c.from, c.header, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if w := ask(s, "10.9.9.9:1", path, "Authorization", "Bearer x"); w.Code != 200 {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	away = true
	if w := ask(s, "127.0.0.1:1", "/api/v1/person", "Authorization", token("new")); w.Code != 401 || strings.Contains(w.Body.String(), "/secret") {
		t.Errorf("Slurm is away: status %d: %s", w.Code, w.Body)
	}
	s.Door.Tokens = nil
	if w := ask(s, "127.0.0.1:1", "/api/v1/person", "Authorization", token("ann")); w.Code != 200 || !strings.Contains(w.Body.String(), `"user":""`) {
		t.Errorf("where no token is taken: status %d: %s", w.Code, w.Body)
	}
}

// Unknown people are refused where the site wants that, but not the health checks.
func TestNobodyIsAnonymous(t *testing.T) {
	s := newServer()
	s.NoAnonymous = true
	for path, want := range map[string]int{"/api/v1/tenants": 401, "/": 401, "/api/v1/openapi.json": 401, "/livez": 200, "/readyz": 200} {
		if w := ask(s, "10.9.9.9:1", path); w.Code != want {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}

// Every answer forbids what a page of ours never needs, and odd questions are refused.
func TestOddQuestions(t *testing.T) {
	s := newServer()
	for _, path := range []string{"/", "/api/v1/jobs", "/api/v1/none", "/api/v1/jobs/x", "/livez"} {
		h := ask(s, "10.9.9.9:1", path).Header()
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	tcp, _ := run(t, s)
	for _, c := range []struct{ question, want string }{
		{"GET /api/v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "307 301"},
		{"GET /api/v1/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "307 301 404"},
		{"GET //evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "307 301"},
		{"GET /api/v1/jobs/%00 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"GET /api/v1/jobs/..%2f..%2fetc HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"GET /api/v1/nodes/%3Cscript%3E HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		{"GET /api/v1/jobs?user=%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nx=1", "405"},
		{"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", "405"},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nx=1", "400"},
		{"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", "431"},
		{"GET /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "431"},
		{"GET / HTTP/9.9\r\n\r\n", "505"},
		{"\x16\x03\x01\x02\x00\x01", "400"},
	} {
		conn, err := net.Dial("tcp", tcp)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, c.question) }() // the server may stop reading
		status, err := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		_, code, _ := strings.Cut(status, " ")
		if code, _, _ = strings.Cut(strings.TrimSpace(code), " "); err != nil || !strings.Contains(c.want, code) || code == "" {
			t.Errorf("%.60q: %q, %v", c.question, status, err)
		}
	}
}

// A redirect of an odd path stays on this server.
func TestRedirectsStay(t *testing.T) {
	w := ask(newServer(), "10.9.9.9:1", "http://x//evil.example/%2e%2e")
	if to := w.Header().Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "://") {
		t.Errorf("it leads to %q", to)
	}
}

// alive asks a question at a connection, which stays open.
func alive(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || string(text) != "alive\n" {
		t.Fatalf("status %d: %q, %v", answer.StatusCode, text, err)
	}
}

// Ten thousand idle sockets of an address keep nobody out, not even from that address, and end no answer. Where all connections of an
// address are being answered, the next one is told that there are too many.
func TestTenThousandConnections(t *testing.T) {
	s := newServer()
	s.MaxConnections = 80 // a quarter of them from one address
	begun, release := make(chan struct{}, 80), make(chan struct{})
	s.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "answered\n")
	})
	tcp, socket := run(t, s)
	dial := func(says string) net.Conn {
		conn, err := net.Dial("tcp", tcp)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, says); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	question := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	asks := dial(question("/"))
	<-begun
	held := []net.Conn{}
	for i := range 10_000 {
		conn, err := net.Dial("tcp", tcp)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if i%3 == 0 {
			_, _ = io.WriteString(conn, "GET / HT") // or it was closed
		}
		if held = append(held, conn); len(held) > 300 {
			held[0].Close()
			held = held[1:]
		}
	}
	alive(t, dial(""))
	if status, _ := get(t, overSocket(socket), "http://local/livez"); status != 200 {
		t.Errorf("at the socket: status %d", status)
	}
	for _, c := range held {
		c.Close()
	}
	for range 19 { // the rest of the places: 15 are answered, and the others wait for that
		dial(question("/"))
	}
	for range 15 {
		<-begun
	}
	answer := ""
	for end := time.Now().Add(10 * time.Second); !strings.Contains(answer, "503") && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn := dial("")
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		answer, _ = bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		for range 4 { // those that waited in vain are asked again
			dial(question("/"))
		}
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 503 ") {
		t.Errorf("one too many is told %q", answer)
	}
	close(release)
	_ = asks.SetReadDeadline(time.Now().Add(20 * time.Second))
	if got, err := bufio.NewReader(asks).ReadString('\n'); err != nil || !strings.Contains(got, "200 OK") {
		t.Errorf("the first question is answered with %q, %v", got, err)
	}
}

// A client that sends its question byte by byte is cut off, and meanwhile others are answered.
func TestSlowClients(t *testing.T) {
	tcp, _ := run(t, newServer())
	conn, err := net.Dial("tcp", tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(t, http.DefaultClient, "http://"+tcp+"/livez"); status != 200 {
		t.Errorf("another client: status %d", status)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client that never ends its question is not cut off")
	}
}

// Clients that ask for large answers and do not read them hold the places of their own address, and not those of others.
func TestClientsThatDoNotRead(t *testing.T) {
	s := newServer()
	large := strings.Repeat("x", 64<<20)
	begun := make(chan struct{}, 80)
	s.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		_, _ = io.WriteString(w, large)
	})
	tcp, _ := run(t, s)
	for range 80 {
		conn, err := net.Dial("tcp", tcp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 16 { // a quarter of the places
		select {
		case <-begun:
		case <-time.After(20 * time.Second):
			t.Fatal("fewer than 16 answers begin")
		}
	}
	if status, text := get(t, http.DefaultClient, "http://"+tcp+"/"); status != http.StatusServiceUnavailable || text != "the server is busy\n" {
		t.Errorf("the same address: status %d: %.80s", status, text)
	}
	if status, text := get(t, http.DefaultClient, "http://"+tcp+"/livez"); status != http.StatusOK {
		t.Errorf("a probe from the same address: status %d: %s", status, text)
	}
	elsewhere := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
	if status, text := get(t, elsewhere, "http://"+tcp+"/"); status != http.StatusOK {
		t.Errorf("another address: status %d: %.80s", status, text)
	}
}

// The header of a proxy counts at the socket if the proxy asks as its own user; other users of the host have no say.
func TestAProxyAtTheSocket(t *testing.T) {
	for _, c := range []struct {
		proxy  uint32
		header []string
		status int
		has    string
	}{
		{uint32(os.Getuid()), []string{"X-Remote-User", "ann"}, 200, `"user":"ann","operator":true`},
		{uint32(os.Getuid()), []string{"X-Remote-User", "root"}, 200, `"user":"root","operator":false`},
		{uint32(os.Getuid()), nil, 200, `"user":""`},
		{uint32(os.Getuid()), []string{"X-Remote-User", "ann", "X-Remote-User", "root"}, 401, "2 times"},
		{uint32(os.Getuid()) + 1, []string{"X-Remote-User", "ann"}, 200, `"user":"me","operator":false`},
	} {
		s := newServer()
		s.Door.UserHeader, s.Door.ProxyUsers = "X-Remote-User", []uint32{c.proxy}
		s.Door.NameOf = func(uint32) (string, error) { return "me", nil }
		_, socket := run(t, s)
		if status, text := get(t, overSocket(socket), "http://local/api/v1/person", c.header...); status != c.status || !strings.Contains(text, c.has) {
			t.Errorf("%+v: status %d: %s", c, status, text)
		}
	}
}

// The socket of a dead server is replaced, that of a live one and other files are not.
func TestSockets(t *testing.T) {
	_, socket := run(t, newServer())
	other := newServer()
	other.Socket = socket
	if err := other.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("a second server: %v", err)
	}
	other.Socket = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(other.Socket, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file: %v", err)
	}
	if text, _ := os.ReadFile(other.Socket); string(text) != "x" {
		t.Error("the file is gone")
	}
	dead := filepath.Join(t.TempDir(), "dead")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	other.Socket = dead
	ctx, stop := context.WithCancel(t.Context())
	other.Say = func(string) { stop() }
	if err := other.Serve(ctx); err != nil {
		t.Errorf("after a dead server: %v", err)
	}
	none := newServer()
	if err := none.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "both empty") {
		t.Errorf("no listener: %v", err)
	}
	none.Listen, none.WebConfig = "127.0.0.1:0", "/nowhere/web.yaml"
	if err := none.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "web.web_config") {
		t.Errorf("no web config: %v", err)
	}
}

// Where the journal is away, the server says so to those who watch it.
func TestReady(t *testing.T) {
	s := newServer()
	s.Source = source{new(scene.Keeper), nil}
	if w := ask(s, "10.9.9.9:1", "/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), "has not answered since") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
