package config

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// unsafeDatabase names a host on the network to which database.url connects without knowing that it is that host; "" = there is none.
func (c *Config) unsafeDatabase() string {
	conn, err := pgconn.ParseConfig(c.Database.URL)
	if c.Database.URL == "" || err != nil {
		return ""
	}
	ways := append([]*pgconn.FallbackConfig{{Host: conn.Host, TLSConfig: conn.TLSConfig}}, conn.Fallbacks...)
	for _, w := range ways {
		if local := strings.HasPrefix(w.Host, "/") || strings.HasPrefix(w.Host, "@") || loopback(w.Host); !local && !verified(w.TLSConfig) {
			return w.Host
		}
	}
	return ""
}

// verified tells whether the server must show a certificate of its own name, as sslmode=verify-full has it.
func verified(c *tls.Config) bool { return c != nil && !c.InsecureSkipVerify }

// Loose is a file that more users may read or write than should.
type Loose struct {
	What  string // "token", "state", ...
	Found string
	Means string
	Do    string
	Bad   bool // somebody else can act as fairlease, or tell it what to do
}

// LooseFiles looks at the modes of the files that the configuration names, of those files' folders, and of its own. A file that is
// not there is not loose.
func (c *Config) LooseFiles() []Loose {
	const (
		read, write, folder = 0o004, 0o022, 0o002 // by everybody; by the group, too; in a folder, by everybody

		secret = "every user who can read it can act on Slurm as fairlease"
	)
	var out []Loose
	look := func(what, path string, forbidden os.FileMode, means string, bad bool) {
		info, err := os.Stat(path)
		if path == "" || err != nil || info.Mode().Perm()&forbidden == 0 {
			return
		}
		mode := info.Mode().Perm()
		rights := "every user can read it"
		if mode&forbidden&write != 0 {
			rights = "others than its owner can write to it"
		}
		out = append(out, Loose{What: what, Found: fmt.Sprintf("%s has mode %04o: %s", path, mode, rights), Means: means, Bad: bad,
			Do: fmt.Sprintf("run chmod %04o %s", mode&^forbidden, path)})
	}
	look("token", c.Slurm.TokenFile, read|write, secret, true)
	look("TLS key", c.Slurm.TLS.KeyFile, read|write, secret, true)
	if strings.Contains(Mask(c.Database.URL), "xxxxx") && strings.HasPrefix(c.origins["database.url"].Place, cmp.Or(c.name, "\x00")+":") {
		look("password", c.name, read, "it holds the password of the journal's database: every user who can read it can rewrite the books", true)
	}
	look("configuration", c.name, write, "a user who can write it can have fairlease run any command (slurm.scontrol)", true)
	const orders = "a user who can write there can have `fairlease release` change others' jobs"
	look("state", c.Files.State, write, orders, true)
	look("state's folder", filepath.Dir(c.Files.State), folder, orders, true)
	look("heartbeats", c.Files.Heartbeats, folder, "a user who can write there can have the submit plugin gate jobs while fairlease is dead", true)
	look("state", c.Files.State, read, "it tells every user what others' jobs asked for", false)
	return out
}
