package testcluster

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed jwt.sh
var jwtScript string

// ErrNoSource tells that the Debian mirror has no source of a suite's Slurm, so that its auth/jwt cannot be built.
var ErrNoSource = errors.New("the mirror has no source of this Slurm")

// defaultMirror is mmdebstrap's own.
const defaultMirror = "http://deb.debian.org/debian"

// jwtConf is what slurm.conf and slurmdbd.conf need for auth/jwt beside auth/munge.
const jwtConf = "AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/run/slurm/jwt.key\n"

// installJWT puts auth/jwt into the cluster. The plugin is built once for a base tree, in about a minute, and kept beside it.
func (c *Cluster) installJWT(ctx context.Context, pluginDir string) error {
	o := c.Options
	tree, lock, err := ensureBase(ctx, o.Cache, o.Suite, o.Progress)
	if err != nil {
		return err
	}
	defer lock.Close()
	alone, err := lockFile(ctx, filepath.Join(o.Cache, "base", "jwt-"+o.Suite+".lock"), syscall.LOCK_EX, o.Progress)
	if err != nil {
		return err
	}
	defer alone.Close()
	built := filepath.Join(filepath.Dir(tree), "auth_jwt.so")
	if _, err := os.Stat(built); err != nil {
		if err := buildJWT(ctx, o, tree, built); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(built)
	if err != nil {
		return fmt.Errorf("reading auth/jwt of the %s tree: %w", o.Suite, err)
	}
	if err := os.WriteFile(c.host("auth_jwt.so"), text, 0o644); err != nil {
		return fmt.Errorf("copying auth/jwt into the cluster: %w", err)
	}
	_, err = c.Exec(ctx, "root", "install", "-m", "0644", "/run/auth_jwt.so", pluginDir+"/auth_jwt.so")
	return err
}

func buildJWT(ctx context.Context, o Options, tree, to string) error {
	script := filepath.Join(filepath.Dir(to), "jwt.sh")
	if err := os.WriteFile(script, []byte(jwtScript), 0o755); err != nil {
		return fmt.Errorf("writing the script that builds auth/jwt: %w", err)
	}
	fmt.Fprintf(o.Progress, "building auth/jwt for Slurm of Debian %s (once, about a minute)\n", o.Suite)
	start := time.Now()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--", "bash", script, tree, cmp.Or(os.Getenv(mirrorVariable), defaultMirror), to)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		return fmt.Errorf("building auth/jwt for Slurm of %s: %w", o.Suite, ErrNoSource)
	case err != nil:
		return fmt.Errorf("building auth/jwt for Slurm of %s: %w\n%s", o.Suite, err, tail(out.String(), 30))
	}
	fmt.Fprintf(o.Progress, "built it in %.0f s\n", time.Since(start).Seconds())
	return nil
}

// Token gives a token of auth/jwt for a user, good for a time. The time is cut to seconds.
func (c *Cluster) Token(ctx context.Context, user string, good time.Duration) (string, error) {
	return c.Exec(ctx, "root", "scontrol", "token", "username="+user, fmt.Sprintf("lifespan=%d", int(good.Seconds())))
}
