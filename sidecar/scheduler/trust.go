package scheduler

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// service is the user of the daemon in the packages.
const service = "fairlease"

// Trusted reports why a program may not be run as a scheduler: it must be an executable file that only root, or the user who runs fairlease, can
// replace. nil = it may be run.
func Trusted(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is no absolute path; write it from / on", path)
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("%w; install the program, or take the scheduler out", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is no executable file (mode %s); run chmod 0755 %s", file, info.Mode(), file)
	}
	owners := map[uint32]bool{0: true, uint32(os.Getuid()): true}
	if u, err := user.Lookup(service); err == nil {
		if id, err := strconv.ParseUint(u.Uid, 10, 32); err == nil {
			owners[uint32(id)] = true
		}
	}
	for at := file; ; at = filepath.Dir(at) {
		if info, err = os.Stat(at); err != nil {
			return err
		}
		sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0 // there only a file's owner may replace it
		if info.Mode().Perm()&0o022 != 0 && !sticky {
			return fmt.Errorf("others than its owner may write to %s (mode %s): they could have fairlease run any program; run chmod go-w %s", at, info.Mode(), at)
		}
		if is, ok := info.Sys().(*syscall.Stat_t); ok && !owners[is.Uid] {
			return fmt.Errorf("%s belongs to user %d, who could have fairlease run any program; run chown root %s", at, is.Uid, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
