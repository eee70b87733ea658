package notices_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/notices"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// got is a letter that a mail server took.
type got struct {
	from string
	to   []string
	text string
}

// mailServer is a mail server in this process.
type mailServer struct {
	*smtp.Server
	address string

	mu      sync.Mutex
	letters []got
	refuse  string        // recipients with it are refused
	taken   chan struct{} // it dies after it has taken a letter, before it says so; nil = it does not
	users   []string      // that logged in
}

type session struct {
	by   *mailServer
	auth bool
	got
}

func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{by: m}, nil }

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "fairlease" || password != "open sesame" {
			return smtp.ErrAuthFailed
		}
		s.auth = true
		s.by.mu.Lock()
		defer s.by.mu.Unlock()
		s.by.users = append(s.by.users, user)
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.auth && !s.by.AllowInsecureAuth {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.by.refuse != "" && strings.Contains(to, s.by.refuse) {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.text = string(text)
	s.by.mu.Lock()
	s.by.letters = append(s.by.letters, s.got)
	dies := s.by.taken
	s.by.mu.Unlock()
	if dies != nil {
		close(dies)
		<-make(chan struct{})
	}
	return nil
}

func (s *session) Reset()        { s.got = got{} }
func (s *session) Logout() error { return nil }

// list gives the letters so far, sorted by recipient.
func (m *mailServer) list() []got {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.letters)
}

// logins counts the logins.
func (m *mailServer) logins() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.users)
}

// mailing starts a mail server, with the certificate of a test server; nil = without.
func mailing(t *testing.T, with *httptest.Server, implicit bool) *mailServer {
	t.Helper()
	m := &mailServer{}
	m.Server = smtp.NewServer(m)
	m.Domain, m.AllowInsecureAuth, m.ErrorLog = "localhost", with == nil, quiet{}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = on.Addr().String()
	if with != nil {
		m.TLSConfig = with.TLS.Clone()
		m.TLSConfig.NextProtos = nil
	}
	if implicit {
		on = tlsOn(on, m.TLSConfig)
	}
	go func() { _ = m.Serve(on) }()
	t.Cleanup(func() { m.Close() })
	return m
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// site is a journal with an outbox, and what it sends to.
type site struct {
	t     *testing.T
	db    *pgx.Conn
	store *store.Store
	lead  *store.Leadership
	j     *store.Journal
	story *journaltest.Story
	dir   string
	c     *config.Config
	told  []string
}

// newSite makes a site with settings of notices; "" = configure and restart it first.
func newSite(t *testing.T, settings string) *site {
	t.Helper()
	dsn := storetest.Database(t)
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	x := &site{t: t, db: storetest.Connect(t, dsn), store: s, story: journaltest.NewStory(1, 2, 0), dir: t.TempDir()}
	if settings != "" {
		x.configure(settings)
		x.restart()
	}
	return x
}

func (x *site) write(name, text string) string {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return path
}

func (x *site) configure(settings string) {
	x.t.Helper()
	c, err := config.Load(x.write("f.yaml", "notices: {zone: UTC, kinds: [start, stop, budget], "+settings+"}\n"), nil)
	if err != nil {
		x.t.Fatal(err)
	}
	x.c = c
}

// restart is another daemon that begins to lead.
func (x *site) restart() {
	x.t.Helper()
	if x.lead != nil {
		if err := x.lead.Resign(x.t.Context()); err != nil {
			x.t.Fatal(err)
		}
	}
	var err error
	if x.lead, err = x.store.Acquire(x.t.Context(), "d"); err != nil {
		x.t.Fatal(err)
	}
	x.lead.Notices.Rule(&store.NoticeRules{Kinds: x.c.Notices.Kinds, Channels: notices.Channels(&x.c.Notices), Rate: 100, Zone: time.UTC})
	x.j = x.lead.Journal()
	if _, err := x.j.Open(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

// start commits a round in which jobs of users start.
func (x *site) start(name string, users ...string) {
	x.t.Helper()
	snap, plan := x.story.Next()
	for i, user := range users {
		snap.Cases = append(snap.Cases, cluster.Case{Control: cluster.FullControl,
			Job:    cluster.Job{ID: cluster.JobID{ID: int64(9000 + i)}, Name: name, User: user, State: cluster.Running, Start: snap.Now, Request: cluster.Request{Size: cluster.Whole(2)}},
			Record: cluster.Record{Key: cluster.JobKey(1_000_000 + 100*int(plan.Round) + i), Tenant: "nlp", State: cluster.Waiting}})
	}
	if err := x.j.Commit(x.t.Context(), snap, plan); err != nil {
		x.t.Fatal(err)
	}
}

func (x *site) send(ctx context.Context) error {
	return notices.Send(ctx, x.c, x.lead.Notices, func(channel string, err error) {
		x.told = append(x.told, fmt.Sprintf("%s %v", channel, err == nil))
	})
}

// due makes all notices due now.
func (x *site) due() {
	x.t.Helper()
	if _, err := x.db.Exec(x.t.Context(), "update notices set due_at = now()"); err != nil {
		x.t.Fatal(err)
	}
}

// states words what became of the notices.
func (x *site) states() string {
	x.t.Helper()
	var out string
	err := x.db.QueryRow(x.t.Context(), `select coalesce(string_agg(concat_ws(' ', case when sent_at is not null then 'sent' when dead_at is not null then 'dead' else 'waits' end, tries), ', ' order by id), '') from notices`).Scan(&out)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

func (x *site) is(when, want string) {
	x.t.Helper()
	if got := x.states(); got != want {
		x.t.Errorf("%s: the notices are %s, want %s", when, got, want)
	}
}

const mailTo = "mail: {server: '%s', from: 'GPUs <gpu@example.org>', to: '{user}@example.org', tls: %s%s}"

// Letters go to their users, once, over an encrypted connection with a password.
func TestMail(t *testing.T) {
	t.Parallel()
	for _, how := range []string{config.StartTLS, config.TLSOnly, config.NoTLS} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			with := httptest.NewTLSServer(nil)
			t.Cleanup(with.Close)
			x, more := newSite(t, ""), ""
			var m *mailServer
			if how == config.NoTLS {
				m = mailing(t, nil, false)
			} else {
				m = mailing(t, with, how == config.TLSOnly)
				more = fmt.Sprintf(", ca_file: '%s'", x.write("ca.pem", certificate(with)))
			}
			more += fmt.Sprintf(", user: fairlease, password_file: '%s'", x.write("password", "open sesame\n"))
			x.configure(fmt.Sprintf(mailTo, m.address, how, more))
			x.restart()
			x.start("train", "ann", "bob")
			for range 2 {
				if err := x.send(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			x.is("sent", "sent 1, sent 1")
			letters := m.list()
			if len(letters) != 2 || m.logins() != 1 {
				t.Fatalf("%d letters in %d logins", len(letters), m.logins())
			}
			l := letters[0]
			read, err := mail.ReadMessage(strings.NewReader(l.text))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(read.Body)
			h := read.Header
			if l.from != "gpu@example.org" || !slices.Equal(l.to, []string{"ann@example.org"}) || h.Get("To") != "<ann@example.org>" || h.Get("From") != `"GPUs" <gpu@example.org>` ||
				h.Get("Subject") != "Job 9000 has started" || h.Get("Auto-Submitted") != "auto-generated" || !strings.HasPrefix(string(body), "Your job 9000 (train) has started on 2 GPUs, at ") {
				t.Errorf("%+v", l)
			}
			if id := h.Get("Message-Id"); !strings.HasPrefix(id, "<start.") || !strings.HasSuffix(id, "@example.org>") || strings.Contains(letters[1].text, id) {
				t.Errorf("its id is %q", id)
			}
			x.configure(fmt.Sprintf(mailTo, m.address, how, strings.Replace(more, "password'", "wrong'", 1)))
			x.write("wrong", "wrong")
			x.start("train", "ann", "bob")
			if err := x.send(t.Context()); err == nil || len(m.list()) != 2 {
				t.Errorf("with a wrong password: %v, %d letters", err, len(m.list()))
			}
			x.is("refused", "sent 1, sent 1, waits 1, waits 0")
		})
	}
}

// A server without STARTTLS, or with a certificate of others, gets no letter and no password.
func TestMailIsNotSentInClear(t *testing.T) {
	t.Parallel()
	with := httptest.NewTLSServer(nil)
	t.Cleanup(with.Close)
	for name, m := range map[string]*mailServer{"no TLS": mailing(t, nil, false), "a certificate of others": mailing(t, with, false)} {
		x := newSite(t, fmt.Sprintf(mailTo, m.address, config.StartTLS, ""))
		x.configure(fmt.Sprintf(mailTo, m.address, config.StartTLS, fmt.Sprintf(", user: fairlease, password_file: '%s'", x.write("password", "open sesame"))))
		x.start("train", "ann")
		if err := x.send(t.Context()); err == nil || len(m.list())+m.logins() > 0 {
			t.Errorf("%s: %v, %d letters, %d logins", name, err, len(m.list()), m.logins())
		}
		x.is(name, "waits 1")
	}
}

// A mail server that dies after it took a letter gets it again, from the next daemon too, with the same Message-ID; a letter whose taking was
// noted is not sent again.
func TestMailServerDies(t *testing.T) {
	t.Parallel()
	m := mailing(t, nil, false)
	x := newSite(t, fmt.Sprintf(mailTo, m.address, config.NoTLS, ""))
	x.start("train", "ann")
	m.mu.Lock()
	dies := make(chan struct{})
	m.taken = dies
	m.mu.Unlock()
	go func() { <-dies; m.Close() }()
	if err := x.send(t.Context()); err == nil {
		t.Fatal("a letter was sent to a dead server")
	}
	x.is("after the death", "waits 1")
	next := mailing(t, nil, false)
	x.configure(fmt.Sprintf(mailTo, next.address, config.NoTLS, ""))
	x.restart()
	x.due()
	for range 2 {
		if err := x.send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	x.is("in the end", "sent 2")
	was, is := m.list(), next.list()
	if len(was) != 1 || len(is) != 1 || header(was[0].text, "Message-ID") == "" || header(was[0].text, "Message-ID") != header(is[0].text, "Message-ID") {
		t.Errorf("%q\n%q", was, is)
	}
}

func header(text, name string) string {
	read, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return ""
	}
	return read.Header.Get(name)
}

// A daemon that loses the lead, or is stopped, while the server has a letter sends nothing more.
func TestLeadIsLostWhileSending(t *testing.T) {
	t.Parallel()
	m := mailing(t, nil, false)
	x := newSite(t, fmt.Sprintf(mailTo, m.address, config.NoTLS, ""))
	x.start("train", "ann", "bob")
	taken := make(chan struct{})
	m.mu.Lock()
	m.taken = taken
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-taken; cancel() }()
	if err := x.send(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	x.is("after that", "waits 0, waits 0")
	if len(m.list()) != 1 || len(x.told) != 0 {
		t.Errorf("%d letters, told %q", len(m.list()), x.told)
	}
	old := x.lead
	x.restart()
	if err := notices.Send(t.Context(), x.c, old.Notices, func(string, error) {}); err == nil {
		t.Error("a daemon that does not lead notes what it sent")
	}
}

// A mailbox that the server refuses does not keep the others from their letters; after some tries it is given up.
func TestMailboxIsRefused(t *testing.T) {
	t.Parallel()
	m := mailing(t, nil, false)
	m.refuse = "ann"
	x := newSite(t, fmt.Sprintf(mailTo, m.address, config.NoTLS, ""))
	x.start("train", "ann", "bob")
	if err := x.send(t.Context()); err == nil || !strings.Contains(err.Error(), "no such mailbox") {
		t.Errorf("the error is %v", err)
	}
	x.is("once", "waits 1, sent 1")
	if err := x.send(t.Context()); err != nil {
		t.Errorf("before its next try: %v", err)
	}
	for range 11 {
		x.due()
		_ = x.send(t.Context()) // refused
	}
	x.is("twelve times", "dead 12, sent 1")
	if len(m.list()) != 1 {
		t.Errorf("%d letters", len(m.list()))
	}
	list, err := x.store.Notices.List(t.Context(), "ann", 1)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Error, "no such mailbox") {
		t.Errorf("%+v, %v", list, err)
	}
}

// Users have no influence on who gets a letter, on its headers, or on its words but their own job's name.
func TestHostileUsers(t *testing.T) {
	t.Parallel()
	m := mailing(t, nil, false)
	x := newSite(t, fmt.Sprintf(mailTo, m.address, config.NoTLS, ""))
	for _, user := range []string{"ann,eve@evil.example", "ann@evil.example", "ann\r\nBcc: eve@evil.example", "ann>\r\nRCPT TO:<eve@evil.example", "Ännchen", "a b", "{user}", "x@", "-f", strings.Repeat("a", 65)} {
		x.start("train", user)
	}
	names := []string{"x\r\nBcc: eve@evil.example\r\n\r\nspam", "{{.User}} {{range .}}", "\r\n.\r\nMAIL FROM:<eve@evil.example>\r\nRCPT TO:<eve@evil.example>\r\nDATA", "\u202egnp.exe", "=?utf-8?q?Bcc:_eve?=", ".", strings.Repeat("long ", 10_000)}
	for _, name := range names {
		x.start(name, "ann")
	}
	_ = x.send(t.Context()) // some users have no address
	x.is("all", strings.Repeat("dead 1, ", 10)+strings.TrimSuffix(strings.Repeat("sent 1, ", len(names)), ", "))
	letters := m.list()
	if len(letters) != len(names) {
		t.Fatalf("%d letters", len(letters))
	}
	for i, l := range letters {
		read, err := mail.ReadMessage(strings.NewReader(l.text))
		if err != nil {
			t.Fatal(err)
		}
		subject, _ := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject"))
		if !slices.Equal(l.to, []string{"ann@example.org"}) || read.Header.Get("To") != "<ann@example.org>" || read.Header.Get("Bcc")+read.Header.Get("Cc") != "" || subject != "Job 9000 has started" || len(l.text) > 4000 {
			t.Errorf("%q: to %q:\n%s", names[i], l.to, l.text)
		}
	}
}

// hook is a webhook's server.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	answer  http.HandlerFunc
	posts   []notices.Post
	headers []http.Header
}

// answers sets the answer to what is posted from now on; nil = it is taken.
func (h *hook) answers(with http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = with
}

// got gives what was posted.
func (h *hook) got() ([]notices.Post, []http.Header) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.posts), slices.Clone(h.headers)
}

const key = "a secret of both"

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var post notices.Post
		if err := errors.Join(err, json.Unmarshal(body, &post)); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v: %s", r.Method, err, body)
		}
		signed := r.Header.Get("Fairlease-Signature")
		var at int64
		if _, err := fmt.Sscanf(signed, "t=%d,", &at); err != nil || signed != notices.Sign([]byte(key), body, time.Unix(at, 0)) || time.Since(time.Unix(at, 0)).Abs() > time.Hour {
			t.Errorf("the signature is %q (%v)", signed, err)
		}
		h.mu.Lock()
		h.posts, h.headers = append(h.posts, post), append(h.headers, r.Header)
		answer := h.answer
		h.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (x *site) hooked(h *hook) string {
	return fmt.Sprintf("webhook: {url: '%s/hooks/1', secret_file: '%s'}", h.URL, x.write("secret", key+"\n"))
}

// Notices are posted, signed; what fails is tried again with the same key.
func TestWebhook(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	x := newSite(t, "")
	x.configure(x.hooked(h))
	x.restart()
	x.start("train", "ann", "bob")
	h.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if err := x.send(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("the error is %v", err)
	}
	x.is("refused", "waits 1, waits 1")
	h.answers(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	x.due()
	if err := x.send(t.Context()); err == nil {
		t.Error("a connection that broke is no error")
	}
	x.is("broken", "waits 2, waits 1")
	h.answers(nil)
	x.restart()
	x.due()
	for range 2 {
		if err := x.send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	x.is("in the end", "sent 3, sent 2")
	posts, headers := h.got()
	if len(posts) != 5 {
		t.Fatalf("%d posts", len(posts))
	}
	p := posts[0]
	if p.Kind != notice.Start || p.User != "ann" || p.Job != "9000" || p.Name != "train" || p.Tenant != "nlp" || p.GPUs != cluster.CountOf(2) || p.At.IsZero() || p.Subject != "Job 9000 has started" || p.Text == "" || p.Created.IsZero() {
		t.Errorf("%+v", p)
	}
	for _, i := range []int{2, 3} {
		if posts[i].ID != p.ID || headers[i].Get("Idempotency-Key") != p.ID {
			t.Errorf("post %d has the id %s, the first try had %s", i, posts[i].ID, p.ID)
		}
	}
	if posts[1].ID == p.ID {
		t.Error("two notices have one id")
	}
}

// A server that redirects gets nothing to another host.
func TestWebhookIsNotRedirected(t *testing.T) {
	t.Parallel()
	other, h := newHook(t), newHook(t)
	x := newSite(t, "")
	x.configure(x.hooked(h))
	x.restart()
	for i, code := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		h.answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) })
		if i == 0 {
			x.start("train", "ann")
		}
		x.due()
		if err := x.send(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
			t.Errorf("%d: %v", code, err)
		}
	}
	x.is("redirected", "waits 3")
	if posts, _ := other.got(); len(posts) > 0 {
		t.Errorf("another host got %+v", posts)
	}
}

// One channel that does not work, or whose file is missing, does not keep the other from its notices.
func TestChannelsAreApart(t *testing.T) {
	t.Parallel()
	h, m := newHook(t), mailing(t, nil, false)
	x := newSite(t, "")
	both := fmt.Sprintf(mailTo, m.address, config.NoTLS, ", user: fairlease, password_file: /nowhere") + ", " + x.hooked(h)
	x.configure(both)
	x.restart()
	x.start("train", "ann")
	if err := x.send(t.Context()); err == nil || !strings.Contains(err.Error(), "mail: open /nowhere") {
		t.Errorf("the error is %v", err)
	}
	x.is("without the password", "waits 0, sent 1")
	x.configure(strings.Replace(both, "/nowhere", x.write("password", "open sesame"), 1))
	if err := x.send(t.Context()); err != nil {
		t.Error(err)
	}
	x.is("with it", "sent 1, sent 1")
}

// News of the day before yesterday is not sent.
func TestOldNoticesAreGivenUp(t *testing.T) {
	t.Parallel()
	m := mailing(t, nil, false)
	x := newSite(t, fmt.Sprintf(mailTo, m.address, config.NoTLS, ""))
	x.start("train", "ann", "bob")
	if _, err := x.db.Exec(t.Context(), "update notices set created_at = now() - interval '49 hours' where user_name = 'ann'"); err != nil {
		t.Fatal(err)
	}
	if err := x.send(t.Context()); err == nil || len(m.list()) != 1 {
		t.Errorf("%v, %d letters", err, len(m.list()))
	}
	x.is("sent", "dead 1, sent 1")
}
