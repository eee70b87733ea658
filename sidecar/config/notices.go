package config

import (
	"errors"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config/letter"
)

// Notices says which notices users get, and how.
type Notices struct {
	Kinds     []string `yaml:"kinds"`
	Rate      int      `yaml:"rate"`
	Quiet     string   `yaml:"quiet"`
	Zone      string   `yaml:"zone"` // "" = that of the host
	Templates string   `yaml:"templates"`
	Mail      Mail     `yaml:"mail"`
	Webhook   Webhook  `yaml:"webhook"`
}

// Mail says how notices are sent by mail.
type Mail struct {
	Server       string `yaml:"server"` // HOST:PORT; "" = no mail
	TLS          string `yaml:"tls"`
	CAFile       string `yaml:"ca_file"`
	From         string `yaml:"from"`
	To           string `yaml:"to"` // template of users' addresses
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"`
}

// Values of notices.mail.tls: the connection becomes encrypted, or is from its beginning, or never.
const (
	StartTLS = "starttls"
	TLSOnly  = "tls"
	NoTLS    = "none"
)

// Webhook says where notices are posted.
type Webhook struct {
	URL        string `yaml:"url"` // "" = nowhere
	SecretFile string `yaml:"secret_file"`
	CAFile     string `yaml:"ca_file"`
}

// On tells whether the site sends notices.
func (n *Notices) On() bool { return len(n.Kinds) > 0 }

// Place gives the time zone of quiet hours and letters.
func (n *Notices) Place() *time.Location {
	if n.Zone == "" {
		return time.Local
	}
	zone, err := time.LoadLocation(n.Zone)
	if err != nil {
		return time.UTC // the check refuses it
	}
	return zone
}

// Letters gives the letters of a configuration: those of notices.templates if Load read it, else the built-in ones.
func Letters(c *Config) *letter.Letters {
	if c.from.letters == nil {
		own, _ := letter.Read("", c.Notices.Place()) // they are a part of the program
		return own
	}
	return c.from.letters
}

// readLetters is readCells for the folder of templates.
func readLetters(c *Config) (own, its Problems) {
	l, err := letter.Read(beside(c.from.name, c.Notices.Templates), c.Notices.Place())
	c.from.letters = l
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return c.unread("notices.templates", err, "docs/notices.md has an example")
}

// notices checks the section notices.
func (k *checker) notices() {
	n := &k.c.Notices
	for _, kind := range n.Kinds {
		k.oneOf("notices.kinds", kind, notice.Names()...)
	}
	m, w := &n.Mail, &n.Webhook
	k.must(!n.On() || m.Server != "" || w.URL != "", "notices.kinds", "says what users are told, but there is no way to do so; set notices.mail.server or notices.webhook.url")
	k.must(n.Rate >= 1 && n.Rate <= 1000, "notices.rate", "must be 1 to 1000 notices to a user within an hour, got %d", n.Rate)
	_, err := notice.ParseQuiet(n.Quiet)
	k.must(err == nil, "notices.quiet", "%v", err)
	_, err = time.LoadLocation(n.Zone)
	k.must(err == nil, "notices.zone", "%q is no time zone; write one like Europe/Berlin, or UTC", n.Zone)
	for _, f := range []struct{ key, path string }{{"notices.mail.ca_file", m.CAFile}, {"notices.mail.password_file", m.PasswordFile}, {"notices.webhook.secret_file", w.SecretFile}, {"notices.webhook.ca_file", w.CAFile}} {
		k.must(f.path == "" || strings.HasPrefix(f.path, "/"), f.key, "must be an absolute path, got %q", f.path)
	}
	k.oneOf("notices.mail.tls", m.TLS, StartTLS, TLSOnly, NoTLS)
	k.must((m.User == "") == (m.PasswordFile == ""), "notices.mail.password_file", "notices.mail.user and notices.mail.password_file go together; set both or neither")
	if m.Server != "" {
		host, port, err := net.SplitHostPort(m.Server)
		number, err2 := strconv.Atoi(port)
		k.must(err == nil && err2 == nil && host != "" && number > 0 && number < 1<<16, "notices.mail.server", "%q is not the address of a mail server; write HOST:PORT, as in smtp.example.org:587", m.Server)
		k.must(m.TLS != NoTLS || m.User == "" || loopback(host), "notices.mail.tls", "the password would cross the network in clear; write starttls or tls")
		from, err := mail.ParseAddress(m.From)
		k.must(err == nil && !strings.ContainsAny(from.Address, "\r\n"), "notices.mail.from", "%q is no address; write one like fairlease@example.org", m.From)
		err = notice.CheckAddress(m.To)
		k.must(err == nil, "notices.mail.to", "%v", err)
	}
	if w.URL != "" {
		u, err := url.Parse(w.URL)
		k.must(err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())), "notices.webhook.url", "%q is no address to post to; write https://HOST/PATH, without a user", w.URL)
		k.must(w.SecretFile != "", "notices.webhook.secret_file", "is empty: nobody could tell who posts to notices.webhook.url; name a file with a secret that both sides know")
	}
}

// vainNotices warns of kinds of notices that nothing causes.
func vainNotices(c *Config) (out []string) {
	for _, x := range []struct {
		kind string
		none bool
		next string
	}{{notice.Slip, c.Forecast.Every == 0, "forecast.every is 0s: no forecast is made"}, {notice.Idle, !c.Telemetry.GPU.On() || c.Idle.TellAfter == 0, "no counters of GPUs are read (telemetry.gpu), or idle.tell_after is 0s"},
		{notice.Budget, len(c.Budgets) == 0, "no tenant has a budget (budgets)"}} {
		if x.none && slices.Contains(c.Notices.Kinds, x.kind) {
			out = append(out, "notices.kinds has "+x.kind+", but "+x.next+": there will be no such notice; remove it there, or set the other")
		}
	}
	return out
}
