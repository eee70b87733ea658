package scheduler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// service is the user of the daemon in the packages.
const service = "fairlease"

// mostLinks is how many symbolic links a path may lead through, as in the kernel.
const mostLinks = 40

// Trusted returns the file that a scheduler's command runs, without symbolic links. It is an error if the file is not executable, or if others than
// root and a user, by its id, could replace it or change it, a folder or link on the way to it, or a path among its arguments.
func Trusted(command []string, user uint32) (file string, err error) {
	path := command[0]
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is no absolute path; write it from / on", path)
	}
	file, info, err := walk(path, user)
	if absent(err) {
		err = fmt.Errorf("%w; install the program, or take the scheduler out", err)
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s is no executable file (mode %s); run chmod 0755 %s", file, info.Mode(), file)
	}
	for _, argument := range command[1:] {
		if filepath.IsAbs(argument) {
			if _, _, err := walk(argument, user); err != nil && !absent(err) {
				return "", err
			}
		}
	}
	return file, nil
}

// absent reports whether there is no file, or can be none, of a name.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL)
}

// walk returns the file to which an absolute path leads. Each folder and link on the way, and the file, must belong to root or to a user, and nobody
// else may write to it.
func walk(path string, user uint32) (at string, info os.FileInfo, err error) {
	at = "/"
	links, shared := 0, false
	for left := strings.Split(path, "/"); len(left) > 0; left = left[1:] {
		next := filepath.Join(at, left[0])
		switch info, err = os.Lstat(next); {
		case absent(err) && shared:
			return "", nil, fmt.Errorf("others may create %s: they could have fairlease run any program; use a folder that only root may write to", next)
		case err != nil:
			return "", nil, err
		}
		if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Uid != 0 && is.Uid != user {
			return "", nil, fmt.Errorf("%s belongs to user %d, who could have fairlease run any program; run chown -h root %s", next, is.Uid, next)
		}
		if info.Mode()&os.ModeSymlink != 0 {
			to, err := os.Readlink(next)
			if links++; err == nil && links > mostLinks {
				err = fmt.Errorf("%s leads through more than %d symbolic links; write where it leads", path, mostLinks)
			}
			if err != nil {
				return "", nil, err
			}
			if filepath.IsAbs(to) {
				at = "/"
			}
			left = slices.Concat(left[:1], strings.Split(to, "/"), left[1:])
			continue
		}
		at, shared = next, info.Mode().Perm()&0o022 != 0
		sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0 // there only a file's owner may replace it
		if shared && !sticky && info.Mode()&os.ModeDevice == 0 {
			return "", nil, fmt.Errorf("others than its owner may write to %s (mode %s): they could have fairlease run any program; run chmod go-w %s", at, info.Mode(), at)
		}
	}
	return at, info, nil
}

// hidden are folders that the service does not see as they are, and the setting of its unit that hides them.
var hidden = map[string]string{"/home": "ProtectHome", "/root": "ProtectHome", "/run/user": "ProtectHome", "/tmp": "PrivateTmp", "/var/tmp": "PrivateTmp"}

// Usable reports why the service, as the packages install it, would not run a command on this host; nil = it would.
func Usable(command []string) error {
	var id uint64
	if u, err := user.Lookup(service); err == nil {
		if id, err = strconv.ParseUint(u.Uid, 10, 32); err != nil {
			return err
		}
	}
	file, err := Trusted(command, uint32(id))
	for _, path := range append([]string{file}, command...) {
		for at := filepath.Clean(path); filepath.IsAbs(at) && at != "/"; at = filepath.Dir(at) {
			if by := hidden[at]; by != "" {
				return fmt.Errorf("the service does not see %s in %s (%s in fairlease.service); install it under /usr/local/lib/fairlease", path, at, by)
			}
		}
	}
	return err
}
