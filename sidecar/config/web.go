package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Web says how `fairlease web` answers, and who may see what.
type Web struct {
	Listen    string `yaml:"listen"`
	WebConfig string `yaml:"web_config"`
	Socket    string `yaml:"socket"`
	// Server is where commands ask if no database is configured: a URL, or unix:/path; "" = Socket.
	Server         string   `yaml:"server"`
	Munge          bool     `yaml:"munge"`
	MungeSocket    string   `yaml:"munge_socket"`
	TrustedProxies []string `yaml:"trusted_proxies"`
	UserHeader     string   `yaml:"user_header"`
	ProxyUsers     []string `yaml:"proxy_users"`
	Operators      []string `yaml:"operators"`
	OperatorGroups []string `yaml:"operator_groups"`
	Anonymous      string   `yaml:"anonymous"`
	MaxConnections int      `yaml:"max_connections"`
}

// Values of web.anonymous: people who are not known see sums, or nothing.
const (
	AnonymousSums    = "sums"
	AnonymousNothing = "nothing"
)

// Proxies gives the addresses at which the header of a proxy is believed.
func (w *Web) Proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range w.TrustedProxies {
		if address, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no address; write 10.0.0.7 or 10.0.0.0/24", text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

func (k *checker) web() {
	w := &k.c.Web
	k.listens("web.listen", w.Listen)
	for key, path := range map[string]string{"web.web_config": w.WebConfig, "web.socket": w.Socket, "web.munge_socket": w.MungeSocket} {
		k.must(path == "" || strings.HasPrefix(path, "/"), key, "must be an absolute path, got %q", path)
	}
	k.must(w.Server == "" || strings.HasPrefix(w.Server, "unix:/") || strings.HasPrefix(w.Server, "http://") || strings.HasPrefix(w.Server, "https://"),
		"web.server", "%q is no server; write https://HOST:PORT, http://HOST:PORT or unix:/PATH", w.Server)
	proxies, err := w.Proxies()
	k.must(err == nil, "web.trusted_proxies", "%v", err)
	for _, p := range proxies {
		k.must(p.Bits() > 0, "web.trusted_proxies", "%v is every address: everybody could claim to be anybody; list the proxies", p)
	}
	k.must(len(proxies)+len(w.ProxyUsers) == 0 || w.UserHeader != "", "web.user_header", "is empty, but there are web.trusted_proxies or web.proxy_users; name the header in which the proxy tells the user")
	k.must(!strings.ContainsAny(w.UserHeader, " \t\r\n:") && !strings.EqualFold(w.UserHeader, "Authorization"), "web.user_header", "%q cannot be the name of a header for users; write one such as X-Remote-User", w.UserHeader)
	k.oneOf("web.anonymous", w.Anonymous, AnonymousSums, AnonymousNothing)
	k.must(w.MaxConnections >= 1 && w.MaxConnections <= 100_000, "web.max_connections", "must be a number from 1 to 100000, got %d", w.MaxConnections)
}

// openWeb warns of a page that other hosts reach without TLS, and of a proxy that every user of this host can be.
func (c *Config) openWeb() (out []string) {
	proxies, _ := c.Web.Proxies() // they were checked
	if slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return loopback(p.Addr().String()) }) {
		out = append(out, "web.trusted_proxies has an address of this host: every user who can log in here can ask as anybody, operators included; let the proxy ask at web.socket, and list its user in web.proxy_users")
	}
	if host, _, _ := net.SplitHostPort(c.Web.Listen); c.Web.Listen == "" || c.Web.WebConfig != "" || loopback(host) {
		return out
	}
	return append(out, fmt.Sprintf("web.listen (%s) can be reached from other hosts without TLS: others on the network read the answers, and may use a credential before its owner does; name a file with TLS in web.web_config, or listen on 127.0.0.1 behind a proxy", c.Web.Listen))
}
