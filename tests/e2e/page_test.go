package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/fairlease/fairlease/tests/browser"
)

// page looks at the web page of a running daemon, as an operator and as a user, while a job has a name that breaks pages which do not
// quote it. A tenant has jobs.
func (r *rig) page(config, tenant string) {
	r.t.Helper()
	const folder, evil = "../browser", `<script>alert(1)</script>`
	if err := browser.Missing(folder); err != nil {
		if os.Getenv("FAIRLEASE_FULL") != "" {
			r.t.Fatal(err)
		}
		r.t.Logf("the web page is not looked at: %v", err)
		return
	}
	id := r.submit("alice", sleeps(3600), "-A", tenant, "--gres=gpu:4", "-J", evil)
	edit(r.t, config, "metrics: {listen: '127.0.0.1:0'}", "metrics: {listen: '127.0.0.1:0'}\nweb: {listen: '127.0.0.1:0', socket: '', trusted_proxies: [127.0.0.1], operators: [carol]}")
	url := r.web(config)
	text := func(words ...string) (steps []browser.Step) { // the page renews itself until it has these words
		for _, w := range words {
			steps = append(steps, browser.Step{Until: fmt.Sprintf("document.body.innerText.includes(%q)", w)})
		}
		return steps
	}
	visits := []browser.Visit{
		{Name: "live-job", Path: "/jobs/" + id, User: "carol", Steps: text(evil, "Why it waits", "alice")},
		{Name: "live-overview", Path: "/", User: "carol", Steps: text("GPUs busy", tenant, "v100")},
		{Name: "live-jobs", Path: "/jobs", User: "alice", Steps: text(evil, id)},
		{Name: "live-stranger", Path: "/jobs", Steps: text("no jobs")},
		{Name: "live-rounds", Path: "/rounds", User: "carol", Steps: text("Waiting jobs")},
	}
	for _, path := range []string{"gpus", "leases", "places", "market"} {
		visits = append(visits, browser.Visit{Name: "live-" + path, Path: "/" + path, User: "carol", Scheme: "dark", Steps: text("Times are in")})
	}
	found, err := browser.Look(folder, url, "", visits)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range found {
		for _, wrong := range found[i].Wrong() {
			r.t.Error(wrong)
		}
		if found[i].Name == "live-stranger" && strings.Contains(found[i].Text, "alice") {
			r.t.Errorf("a stranger reads the name of a user:\n%s", found[i].Text)
		}
	}
}

// web starts fairlease web, and gives the address of the page.
func (r *rig) web(config string) string {
	r.t.Helper()
	path, err := binary()
	if err != nil {
		r.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(filepath.Dir(config), "web.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", config, "web")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			r.t.Errorf("fairlease web ended with %v", err)
		}
		_ = log.Close()
	})
	var at []string
	r.until("fairlease web says where the page is", 30*time.Second, func() bool {
		text, err := os.ReadFile(log.Name())
		at = regexp.MustCompile(`the page is at ([0-9.:]+)`).FindStringSubmatch(string(text))
		return err == nil && at != nil
	})
	return "http://" + at[1]
}
