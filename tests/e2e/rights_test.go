package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// client is a program for users of the cluster. It asks at a unix socket or a TCP address for each line of its input, a JSON list of a path
// and headers, and writes a JSON list of the status, the text and the tag of the answer.
const client = `import http.client, json, socket, ssl, sys
class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
for line in sys.stdin:
    path, headers = json.loads(line)
    to = sys.argv[1]
    c = Local("local") if to.startswith("/") else http.client.HTTPSConnection(to[8:], context=ssl.create_default_context(cafile=sys.path[0] + "/crt")) if to.startswith("https://") else http.client.HTTPConnection(to)
    c.request("GET", path, headers=headers or {})
    r = c.getresponse()
    print(json.dumps([r.status, r.read().decode(), r.headers.get("ETag") or ""]))
`

// The places of the web server on the cluster. The second address is one of a proxy.
const (
	webFolder = "/run/fairlease-web"
	webSocket = webFolder + "/socket"
	webTCP    = "127.0.0.1:9964"
	webProxy  = "192.0.2.1:9964"
	webUser   = "slurm" // it runs the server, and is an operator therefore
)

// rights lets users of the cluster, who have no database credentials, ask a fairlease web that runs there: alice of nlp, bob of vision, carol
// of both, and munge, who is of no tenant. All of them but the operator try to see more than they may.
func (r *rig) rights() {
	r.t.Helper()
	secret := map[string]string{"alice": "secret-of-nlp", "bob": "secret-of-vision"}
	job := map[string]string{}
	for user, tenant := range map[string]string{"alice": "nlp", "bob": "vision"} {
		job[user] = r.submit(user, sleeps(3600), "-A", tenant, "--gres=gpu:1", "-J", secret[user], "--comment="+secret[user])
	}
	r.webOnCluster("web: {listen: ':9964', socket: " + webSocket + ", trusted_proxies: [192.0.2.1]}\n")
	r.until("the new jobs are known", 30*time.Second, func() bool {
		_, out := r.asUser("root", "explain", job["alice"])
		_, other := r.asUser("root", "explain", job["bob"])
		return strings.Contains(out, secret["alice"]) && strings.Contains(other, secret["bob"])
	})
	expires := r.credential("alice", "--string=fairlease-web", "--ttl=1")
	made := time.Now()

	// of gives what nobody else may read of a user, and hidden what a user may not read anywhere.
	of := func(user string) []string {
		id := job[user]
		return []string{user, secret[user], `/jobs/` + id + `"`, `"slurm_id":"` + id + `"`, "job " + id + " "}
	}
	hidden := map[string][]string{"alice": of("bob"), "bob": of("alice"), "munge": append(append(of("alice"), of("bob")...), "carol")}
	for user, sees := range map[string][]string{"alice": {"alice"}, "bob": {"bob"}, "carol": {"alice", "bob"}, "munge": nil, webUser: {"alice", "bob"}} {
		for _, args := range [][]string{{"status"}, {"tenants"}, {"tenants", "--json"}, {"tenants", "--debts"}, {"tenants", "--users"}, {"leases"}, {"leases", "--all"}, {"leases", "--json"}, {"gpus"}, {"gpus", "alice"}, {"trades"}, {"trades", "--all"}, {"forecast", "--all"}} {
			code, out := r.asUser(user, args...)
			if code != 0 || named(out, hidden[user]) != "" {
				r.t.Errorf("%s runs fairlease %v: exit code %d, and reads %q:\n%s", user, args, code, named(out, hidden[user]), out)
			}
			if args[0] == "tenants" && len(args) == 1 && (!strings.Contains(out, "nlp") || !strings.Contains(out, "vision")) {
				r.t.Errorf("%s does not read the sums of all tenants:\n%s", user, out)
			}
		}
		for owner, id := range job {
			code, out := r.asUser(user, "explain", id)
			if may := slices.Contains(sees, owner); (code == 0) != may || strings.Contains(out, secret[owner]) != may {
				r.t.Errorf("%s asks why the job of %s waits: exit code %d\n%s", user, owner, code, out)
			}
		}
		r.crawl(user, job, hidden[user])
	}

	// Over TCP it is the credential that counts, whoever sends it.
	sees := func(what, at, header, value string, status int, has string) {
		r.t.Helper()
		if answer := r.askWeb("munge", at, question{"/api/v1/person", map[string]string{header: value}})[0]; answer.status != status || !strings.Contains(answer.text, has) {
			r.t.Errorf("%s: status %d: %s", what, answer.status, answer.text)
		}
	}
	good := "MUNGE " + r.credential("bob", "--string=fairlease-web")
	sees("a credential of bob", webTCP, "Authorization", good, 200, `"user":"bob","operator":false,"tenants":["vision"]`)
	sees("the same credential again", webTCP, "Authorization", good, 401, "used before")
	sees("a credential for another service", webTCP, "Authorization", "MUNGE "+r.credential("bob", "--string=progress"), 401, "made for something else")
	sees("a credential for another reader", webTCP, "Authorization", "MUNGE "+r.credential("bob", "--string=fairlease-web", "--restrict-uid=root"), 401, "refused")
	sees("a credential of root", webTCP, "Authorization", "MUNGE "+r.credential("root", "--string=fairlease-web"), 200, `"operator":true`)
	sees("a made-up credential", webTCP, "Authorization", "MUNGE MUNGE:AwQDAAEKMTIz:", 401, "refused")
	for _, header := range []string{"X-Remote-User", "X-Forwarded-User", "Remote-User"} {
		sees("the header "+header+" from an address that is no proxy's", webTCP, header, "carol", 200, `"user":"","operator":false,"tenants":[]`)
	}
	sees("the header from the proxy's address", webProxy, "X-Remote-User", "carol", 200, `"user":"carol","operator":false,"tenants":["nlp","vision"]`)
	sees("the header for root from the proxy's address", webProxy, "X-Remote-User", "root", 200, `"user":"root","operator":false`)
	sees("the header at the socket", webSocket, "X-Remote-User", "carol", 200, `"user":"munge","operator":false,"tenants":[]`)
	bobs := "MUNGE " + r.credential("bob", "--string=fairlease-web")
	if answer := r.askWeb("alice", webTCP, question{"/api/v1/jobs/" + job["alice"], map[string]string{"Authorization": bobs}})[0]; answer.status != 404 || named(answer.text, hidden["bob"]) != "" {
		r.t.Errorf("a credential of another tenant: status %d: %s", answer.status, answer.text)
	}
	r.until("the credential has expired", 10*time.Second, func() bool { return time.Since(made) > 3*time.Second }) // its life is a whole second
	sees("an expired credential", webTCP, "Authorization", "MUNGE "+expires, 401, "expired")

	// An answer's tag is of the person who asks.
	tag := r.askWeb("alice", webSocket, question{"/api/v1/jobs", nil})[0].tag
	for _, user := range []string{"bob", "carol", "munge"} {
		if answer := r.askWeb(user, webSocket, question{"/api/v1/jobs", map[string]string{"If-None-Match": tag}})[0]; answer.status != 200 {
			r.t.Errorf("%s asks with the tag of alice's answer: status %d", user, answer.status)
		}
	}
}

// named gives the first of some words that a text has; "" = none.
func named(text string, words []string) string {
	if i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(text, w) }); i >= 0 {
		return words[i]
	}
	return ""
}

// webOnCluster starts fairlease web on the cluster with some configuration, as a user who may read the journal, and gives its log.
// Nobody else there can reach the database.
func (r *rig) webOnCluster(config string) (log string) {
	r.t.Helper()
	path, err := binary()
	if err != nil {
		r.t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, args := range [][]string{{"-m", "0755", "-o", webUser, webFolder}, {"-m", "0700", "-o", webUser, webFolder + "/own"}} {
		if out, err := r.Exec(r.ctx(), "root", append([]string{"install", "-d"}, args...)...); err != nil {
			r.t.Fatalf("%v: %s", err, out)
		}
	}
	folder := filepath.Join(r.Dir, webFolder)
	dsn, err := url.Parse(r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	query := dsn.Query()
	r.relay(filepath.Join(folder, "own", ".s.PGSQL.5432"), filepath.Join(query.Get("host"), ".s.PGSQL.5432"))
	query.Set("host", webFolder+"/own")
	dsn.RawQuery = query.Encode()
	text := fmt.Sprintf("database: {url: %q}\n%s", dsn.String(), config)
	for name, content := range map[string]string{"fairlease": string(program), "client.py": client, "own/fairlease.yaml": text} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	to, err := os.Create(filepath.Join(r.t.TempDir(), "web.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := r.userCommand(webUser, webFolder+"/fairlease", "-c", webFolder+"/own/fairlease.yaml", "web")
	cmd.Stdout, cmd.Stderr = to, to
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = to.Close()
		if text, err := os.ReadFile(to.Name()); r.t.Failed() {
			r.t.Logf("the web server's log (%v):\n%s", err, text)
		}
	})
	return to.Name()
}

// relay takes connections at a unix socket to another one, or to an address, which is not to be seen on the cluster.
func (r *rig) relay(from, to string) {
	r.t.Helper()
	l, err := net.Listen("unix", from)
	if err == nil {
		err = os.Chmod(from, 0o777) // its folder lets its owner in only
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			network := "tcp"
			if strings.HasPrefix(to, "/") {
				network = "unix"
			}
			far, err := net.Dial(network, to)
			if err != nil {
				_ = near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				}()
			}
		}
	}()
}

// userCommand gives a command of a user of the cluster, who need not have a home.
func (r *rig) userCommand(user string, argv ...string) *exec.Cmd {
	line := r.Command("root", append([]string{"setpriv", "--reuid=" + user, "--regid=" + user, "--init-groups", "--"}, argv...)...)
	return exec.CommandContext(r.t.Context(), line[0], line[1:]...)
}

// asUser runs fairlease as a user without a configuration, and gives its exit code and what it prints.
func (r *rig) asUser(user string, args ...string) (int, string) {
	r.t.Helper()
	out, err := r.userCommand(user, append([]string{webFolder + "/fairlease"}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// credential makes a MUNGE credential of a user.
func (r *rig) credential(user string, args ...string) string {
	r.t.Helper()
	out, err := r.userCommand(user, append([]string{"munge"}, args...)...).Output()
	if err != nil {
		r.t.Fatalf("munge as %s: %v", user, err)
	}
	return strings.TrimSpace(string(out))
}

// question is a path of the web server, with headers.
type question struct {
	path    string
	headers map[string]string
}

type reply struct {
	status    int
	text, tag string
}

// askWeb asks the web server as a user.
func (r *rig) askWeb(user, at string, questions ...question) []reply {
	r.t.Helper()
	var in bytes.Buffer
	for _, q := range questions {
		if err := json.NewEncoder(&in).Encode([]any{q.path, q.headers}); err != nil {
			r.t.Fatal(err)
		}
	}
	cmd := r.userCommand(user, "python3", webFolder+"/client.py", at)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("asking as %s: %v", user, err)
	}
	var all []reply
	for line := range bytes.Lines(out) {
		var one reply
		if err := json.Unmarshal(line, &[]any{&one.status, &one.text, &one.tag}); err != nil {
			r.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, one)
	}
	if len(all) != len(questions) {
		r.t.Fatalf("%d answers to %d questions", len(all), len(questions))
	}
	return all
}

var (
	links = regexp.MustCompile(`href="(/[^"]*)"`)
	field = regexp.MustCompile(`\{(id|name|number)\}`)
)

// crawl asks for everything that the API describes, and for all pages that lead to each other, as a user. No answer has a hidden word.
func (r *rig) crawl(user string, job map[string]string, hidden []string) {
	r.t.Helper()
	var described struct {
		Paths map[string]any `json:"paths"`
	}
	status := r.askWeb(user, webSocket, question{"/api/v1/openapi.json", nil}, question{"/api/v1/rounds?limit=5", nil})
	if err := json.Unmarshal([]byte(status[0].text), &described); err != nil {
		r.t.Fatal(err)
	}
	var rounds []struct {
		Number int64 `json:"number"`
	}
	if err := json.Unmarshal([]byte(status[1].text), &rounds); err != nil || len(rounds) == 0 {
		r.t.Fatalf("%v: %s", err, status[1].text)
	}
	ids := map[string][]string{"{id}": {job["alice"], job["bob"], "1"}, "{name}": {"v1", "k1"}, "{number}": nil}
	for _, n := range rounds {
		ids["{number}"] = append(ids["{number}"], fmt.Sprint(n.Number))
	}
	next := []string{"/", "/jobs/" + job["alice"], "/jobs/" + job["bob"], "/jobs?sort=user", "/api/v1/leases?all=true&limit=1000", "/api/v1/leases?all=true&node=v1", "/api/v1/jobs?user=alice", "/api/v1/jobs?user=bob",
		"/api/v1/jobs?tenant=nlp", "/api/v1/jobs?tenant=vision", "/api/v1/gpus?of=alice", "/api/v1/gpus?of=" + job["bob"], "/api/v1/forecasts?job=" + job["alice"], "/api/v1/events?limit=1000", "/api/v1/trades?limit=1000"}
	for path := range described.Paths {
		if strings.HasSuffix(path, "/live") {
			continue // it never ends
		}
		for _, id := range append(ids[field.FindString(path)], "none")[:max(len(ids[field.FindString(path)]), 1)] {
			next = append(next, field.ReplaceAllString(path, id))
		}
	}
	seen := map[string]bool{}
	for depth := 0; depth < 4 && len(next) > 0; depth++ {
		var questions []question
		for _, path := range next {
			if !seen[path] && len(seen) < 400 && !strings.HasPrefix(path, "/assets/") {
				seen[path] = true
				questions = append(questions, question{path, nil})
			}
		}
		next = nil
		for i, answer := range r.askWeb(user, webSocket, questions...) {
			if word := named(answer.text, hidden); word != "" || answer.status >= 500 {
				at := max(strings.Index(answer.text, word), 0)
				r.t.Errorf("%s asks for %s: status %d, and reads %q: …%s…", user, questions[i].path, answer.status, word, answer.text[max(at-100, 0):min(at+100, len(answer.text))])
			}
			for _, link := range links.FindAllStringSubmatch(answer.text, -1) {
				next = append(next, strings.ReplaceAll(link[1], "&amp;", "&"))
			}
		}
	}
	if len(seen) < 60 {
		r.t.Errorf("%s was led to %d pages only", user, len(seen))
	}
}
