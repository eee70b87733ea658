package daemon

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
)

// A reload beyond config.accept_above waits, is shown, and is in force once its own text was accepted; it is dropped by a rejection, or
// by a reload of another file. A small change is taken over at once, and a bound of 0 asks never.
func TestLargeChangeWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, books := newLive(), newShared()
		on.submit("nlp", 4, 4)
		r := start(t, "a", books, on, dir, short)
		pass(30 * time.Second)
		path := r.Config.AcceptedPath()
		reload := func(text string) *config.Config {
			t.Helper()
			next := settings(t, dir, text)
			r.service.read = func() (*config.Config, error) { return next, nil }
			r.hangup <- syscall.SIGHUP
			synctest.Wait()
			return next
		}
		inForce := func() string { return strings.Join(r.service.inForce.Load().Partitions, ",") }
		const other = short + "partitions: [other]\n"
		answer := func(digest string, accept bool) {
			t.Helper()
			kept := config.ReadAccepted(path)
			kept.Answer = &config.Answer{Digest: digest, Accept: accept, By: "root (SUDO_USER \"ann\")"}
			if err := WriteAccepted(path, *kept); err != nil {
				t.Fatal(err)
			}
			pass(15 * time.Second)
		}

		reload(short + "forecast: {runs: 50}\n")
		if got := r.service.inForce.Load().Forecast.Runs; got != 50 || config.ReadAccepted(path).Waiting != nil {
			t.Errorf("a change without effect waits: %d runs in force", got)
		}
		books.newActs()
		next := reload(other)
		w := config.ReadAccepted(path).Waiting
		if inForce() != "gpu" || w == nil || w.Digest != config.Digest(next) || !strings.Contains(w.Says, "end the leases of") || len(w.Keys) == 0 {
			t.Fatalf("partitions %s in force; %+v waits", inForce(), w)
		}
		if lines := r.log.with("waits to be accepted"); len(lines) != 1 || lines[0]["digest"] != w.Digest[:12] {
			t.Errorf("it says %v", lines)
		}
		pass(15 * time.Second)
		if got := strings.Join(books.newActs(), "\n"); !strings.Contains(got, "waits to be accepted: "+w.Digest[:12]) {
			t.Errorf("recorded: %s", got)
		}

		answer(strings.Repeat("0", len(w.Digest)), true) // another file than they read
		if inForce() != "gpu" {
			t.Fatal("the acceptance of another file was taken for this one")
		}
		answer(w.Digest, false)
		if now := config.ReadAccepted(path); inForce() != "gpu" || now.Waiting != nil || now.Answer != nil {
			t.Fatalf("after a rejection: partitions %s in force, %+v", inForce(), now)
		}
		reload(other)
		if config.ReadAccepted(path).Waiting == nil {
			t.Fatal("after a rejection the file is not asked for again")
		}
		reload(short + "forecast: {runs: 50}\n")
		if config.ReadAccepted(path).Waiting != nil {
			t.Fatal("a reload of the old file does not drop what waits")
		}

		// The file changes after it was looked at: its old digest accepts nothing.
		reload(other)
		changed := settings(t, dir, other+"log: {level: info}\n")
		r.service.read = func() (*config.Config, error) { return changed, nil }
		answer(w.Digest, true)
		if inForce() != "gpu" {
			t.Fatal("a file was taken over that nobody has looked at")
		}
		books.newActs()
		answer(config.Digest(changed), true)
		if inForce() != "other" || config.ReadAccepted(path).Waiting != nil {
			t.Fatal("the accepted file is not in force")
		}
		if got := strings.Join(books.newActs(), "\n"); !strings.Contains(got, `partitions: [other] (accepted by root (SUDO_USER "ann"))`) {
			t.Errorf("recorded: %s", got)
		}
		r.end(t)
	})
}

// A reload to mode: observe does not wait, whatever else the file changes: fairlease must stop acting now.
func TestTheWayOffDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.submit("nlp", 4, 4)
		r := start(t, "a", newShared(), on, dir, short)
		pass(30 * time.Second)
		next := settings(t, dir, strings.Replace(short, "mode: act", "mode: observe\npartitions: [other]\ntenants: {weights: {nlp: 1, vision: 99}}", 1))
		r.service.read = func() (*config.Config, error) { return next, nil }
		r.hangup <- syscall.SIGHUP
		synctest.Wait()
		if got := r.service.inForce.Load(); got.Mode != "observe" || config.ReadAccepted(r.Config.AcceptedPath()).Waiting != nil {
			t.Errorf("mode %s is in force", got.Mode)
		}
		r.end(t)
	})
}

// A bound of 0 asks never, and neither does a start.
func TestNothingWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, books := newLive(), newShared()
		on.submit("nlp", 4, 4)
		const free = short + "config: {accept_above: 0}\n"
		r := start(t, "a", books, on, dir, free)
		pass(30 * time.Second)
		next := settings(t, dir, free+"partitions: [other]\n")
		r.service.read = func() (*config.Config, error) { return next, nil }
		r.hangup <- syscall.SIGHUP
		synctest.Wait()
		if got := r.service.inForce.Load().Partitions[0]; got != "other" {
			t.Errorf("with a bound of 0, partition %s is in force", got)
		}
		r.end(t)
		on, books = newLive(), newShared()
		on.submit("nlp", 4, 4)
		r = start(t, "a", books, on, dir, short+"partitions: [gpu]\n")
		pass(30 * time.Second)
		r.service.read = func() (*config.Config, error) { return settings(t, dir, short+"partitions: [other]\n"), nil }
		r.hangup <- syscall.SIGHUP
		synctest.Wait()
		waiting := config.ReadAccepted(r.Config.AcceptedPath()).Waiting
		r.end(t)
		if waiting == nil {
			t.Fatal("nothing waits")
		}
		r = start(t, "a", books, on, dir, short+"partitions: [other]\n")
		pass(30 * time.Second)
		if got := r.service.inForce.Load().Partitions[0]; got != "other" || len(r.log.with("this start takes over")) != 1 {
			t.Errorf("a start with the file that waits has partition %s in force", got)
		}
		r.end(t)
	})
}
