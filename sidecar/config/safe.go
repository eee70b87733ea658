package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Loose is a file with too many permissions.
type Loose struct {
	What  string // "token", "state", ...
	Found string
	Means string
	Do    string
	Bad   bool // others could act as fairlease, or control it
}

// LooseFiles checks the modes of the files that the configuration names, of their folders, and of
// the configuration itself. It skips missing files.
func (c *Config) LooseFiles() []Loose {
	const (
		read, write, folder = 0o004, 0o022, 0o002 // by others; by group and others; in a folder, by others

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
	look("mail password", c.Notices.Mail.PasswordFile, read|write, "every user who can read it can send mail as fairlease", true)
	look("webhook secret", c.Notices.Webhook.SecretFile, read|write, "every user who can read it can post notices as fairlease", true)
	look("TLS key", c.Slurm.TLS.KeyFile, read|write, secret, true)
	if strings.Contains(Mask(c.Database.URL), "xxxxx") && strings.HasPrefix(c.from.origins["database.url"].Place, cmp.Or(c.from.name, "\x00")+":") {
		n := len(out)
		look("password", c.from.name, read, "it holds the password of the journal's database: every user who can read it can rewrite the books", true)
		for i := n; i < len(out); i++ { // the daemon and the web server, which are two users, must still be able to read the file
			out[i].Do = "write the password to ~/.pgpass of the daemon's user (chmod 0600), and take it out of the file"
		}
	}
	look("configuration", c.from.name, write, "a user who can write it can have fairlease run any command (slurm.scontrol)", true)
	const orders = "a user who can write there can have `fairlease release` change others' jobs"
	look("state", c.Files.State, write, orders, true)
	look("state's folder", filepath.Dir(c.Files.State), folder, orders, true)
	look("heartbeats", c.Files.Heartbeats, folder, "a user who can write there can have the submit plugin gate jobs while fairlease is dead", true)
	look("state", c.Files.State, read, "it tells every user what others' jobs asked for", false)
	return out
}
