package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// doorway is a program for the cluster. It takes connections at a TCP port there to a unix socket.
const doorway = `import asyncio, sys
async def pipe(a, b):
    try:
        while data := await a.read(65536):
            b.write(data)
            await b.drain()
    except OSError: pass
    b.close()
async def serve(r, w):
    far = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(pipe(r, far[1]), pipe(far[0], w))
async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[2]))
    await s.serve_forever()
asyncio.run(main())
`

// reporting is a job that reports to the daemon, and asks for its lease, with what its node has.
const reporting = `#!/bin/bash
#SBATCH --output=out.%j
export FAIRLEASE_PROGRESS_URL=https://127.0.0.1:8765 PYTHONPATH=$PWD SSL_CERT_FILE=/run/fairlease-web/crt
exec python3 - <<'END'
import time, fairlease, fairlease._leases as leases
for step in range(1, 100000):
    try:
        fairlease.report(step)
        print("reported", step, flush=True)
    except OSError as e: print(e, flush=True)
    leases.forget()
    print("lease", fairlease.lease(), flush=True)
    time.sleep(2)
END
`

// Without MUNGE, users prove who they are by tokens of auth/jwt: on the web page, with commands, and in jobs. Tokens of others, of another
// cluster and of the past are refused, and no log has one.
func TestTokens(t *testing.T) {
	onBoth(t, testcluster.Options{JWT: true, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}, func(_ *testing.T, r *rig) { r.tokens() })
}

func (r *rig) tokens() {
	t := r.t
	if out, err := r.Exec(r.ctx(), "root", "sh", "-c", "rm /usr/bin/munge /usr/bin/unmunge; ! command -v munge"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	token := func(user string, good time.Duration) string {
		t.Helper()
		text, err := r.Token(r.ctx(), user, good)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(strings.TrimSpace(text), "SLURM_JWT=")
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token(testcluster.Operator, time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.RestSocket(), 0o777); err != nil {
		t.Fatal(err)
	}
	tls := r.secure()
	config := r.configure(fmt.Sprintf("models: {progress: {listen: '127.0.0.1:0', web_config: %q, munge: /nowhere/munged, every: 1s}}\n", filepath.Join(r.Dir, tls)))
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("slurm:\n  user: %s\n  token_file: %s\n", testcluster.Operator, file)
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "slurm:\n", own, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	end := r.serve(config)
	log := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	listens := regexp.MustCompile(`"address":"([^"]+)","[^}]*accepting progress reports`)
	r.until("the daemon takes reports", time.Minute, func() bool { return listens.MatchString(log(logOf(config))) })
	webLog := r.webOnCluster("slurm: {jwt: 'unix:///run/slurmrestd/slurmrestd.sock'}\nweb: {listen: ':9964', web_config: " + tls + ", socket: " + webSocket + ", munge: false}\n")
	r.relay(filepath.Join(r.Dir, webFolder, "progress"), listens.FindStringSubmatch(log(logOf(config)))[1])
	way := r.userCommand("root", "python3", "-c", doorway, webFolder+"/progress", "8765")
	if err := way.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = way.Process.Kill()
		_ = way.Wait()
	})

	// A job reports and learns its lease. Its owner's word counts, that of others does not.
	library, err := filepath.Abs("../../contrib/python/fairlease")
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"alice", "bob"} {
		if err := os.CopyFS(filepath.Join(r.Home(user), "fairlease"), os.DirFS(library)); err != nil {
			t.Fatal(err)
		}
	}
	r.waitState(r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1"), time.Minute, "RUNNING")
	r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1")
	id := r.submit("alice", reporting, "-A", "nlp", "--gres=gpu:1", "-J", "secret-of-nlp")
	out := func() string {
		text, _ := os.ReadFile(filepath.Join(r.Home("alice"), "out."+id)) // not there before its start
		return string(text)
	}
	r.until("the job reports, and learns its lease", 2*time.Minute, func() bool {
		return strings.Contains(out(), "reported ") && strings.Contains(out(), "Lease(ends=")
	})
	const told = "import fairlease\ntry:\n fairlease.report(1)\n print('believed')\nexcept OSError as e: print(e)"
	reports := func(env ...string) string { // of bob about the job
		t.Helper()
		line := append([]string{"env", "FAIRLEASE_PROGRESS_URL=https://127.0.0.1:8765", "SSL_CERT_FILE=" + webFolder + "/crt", "SLURM_JOB_ID=" + id, "PYTHONPATH=/home/bob"}, env...)
		out, err := r.Exec(r.ctx(), "bob", append(line, "python3", "-B", "-c", told)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	r.until("a report about another's job is refused", time.Minute, func() bool { return strings.Contains(reports(), "403: job "+id+" is not a job of user") })
	for _, c := range [][2]string{{token("root", time.Hour), "404: no job of root"}, {foreign("alice"), "401: the credential is refused"}} {
		if out := reports("SLURM_JWT=" + c[0]); !strings.Contains(out, c[1]) {
			t.Errorf("bob reports with another's token: %q, want %q", out, c[1])
		}
	}

	// Commands, and whatever sends a header, are answered over TCP.
	explains := func(user string) (int, string) {
		t.Helper()
		cmd := r.userCommand(user, "env", "SSL_CERT_FILE="+webFolder+"/crt", webFolder+"/fairlease", "--server", "https://"+webTCP, "explain", id)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	r.until("the web server knows the job", time.Minute, func() bool {
		code, text := explains("alice")
		return code == 0 && strings.Contains(text, "secret-of-nlp")
	})
	if code, text := explains("bob"); code == 0 || strings.Contains(text, "secret-of-nlp") {
		t.Errorf("bob asks for the job of alice: exit code %d\n%s", code, text)
	}
	sees := func(what string, status int, has string, headers map[string]string) {
		t.Helper()
		if answer := r.askWeb("bob", "https://"+webTCP, question{"/api/v1/person", headers})[0]; answer.status != status || !strings.Contains(answer.text, has) {
			t.Errorf("%s: status %d: %s", what, answer.status, answer.text)
		}
	}
	const authorization, name = "Authorization", "X-SLURM-USER-NAME"
	short, made := token("alice", 5*time.Second), time.Now()
	sees("a token of a minute", 200, `"user":"alice","operator":false,"tenants":["nlp"]`, map[string]string{authorization: "Bearer " + token("alice", time.Minute)})
	good := token("alice", time.Hour)
	sees("a token of alice", 200, `"user":"alice"`, map[string]string{authorization: "Bearer " + good})
	sees("a token of alice for root", 401, "another user", map[string]string{authorization: "Bearer " + good, name: "root"})
	sees("a token of root", 200, `"user":"root","operator":true`, map[string]string{authorization: "Bearer " + token("root", time.Hour)})
	sees("a token of root for alice", 401, "another user", map[string]string{authorization: "Bearer " + token("root", time.Hour), name: "alice"})
	sees("a token of another cluster", 401, "does not take", map[string]string{authorization: "Bearer " + foreign("alice")})
	sees("a token of another cluster's root", 401, "does not take", map[string]string{authorization: "Bearer " + foreign("root")})
	sees("an unsigned token", 401, "not signed", map[string]string{authorization: "Bearer " + strings.Join([]string{coded(`{"alg":"none"}`), coded(`{"exp":9999999999,"sun":"root"}`), ""}, ".")})
	sees("MUNGE", 401, "takes no MUNGE", map[string]string{authorization: "MUNGE MUNGE:x:"})
	r.until("the short token has expired", time.Minute, func() bool { return time.Since(made) > 6*time.Second })
	sees("the short token", 401, "expired", map[string]string{authorization: "Bearer " + short})

	// While Slurm is away only those are known whom it knew before.
	if err := r.Stop(r.ctx(), testcluster.Slurmrestd); err != nil {
		t.Fatal(err)
	}
	sees("a token that is known", 200, `"user":"alice"`, map[string]string{authorization: "Bearer " + good})
	sees("a new one, and Slurm is away", 401, "cannot be recognised", map[string]string{authorization: "Bearer " + token("carol", time.Hour)})
	if err := r.Start(r.ctx(), testcluster.Slurmrestd); err != nil {
		t.Fatal(err)
	}
	end(syscall.SIGTERM)
	for _, name := range []string{logOf(config), webLog} {
		if text := log(name); strings.Contains(text, "eyJ") {
			t.Errorf("%s has a token:\n%s", filepath.Base(name), text)
		}
	}
}

// secure writes a certificate for 127.0.0.1 where the cluster's users read it, and gives the path of a web config with it there.
func (r *rig) secure() string {
	r.t.Helper()
	if out, err := r.Exec(r.ctx(), "root", "install", "-d", "-m", "0755", "-o", webUser, webFolder); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	issuer := httptest.NewUnstartedServer(nil)
	issuer.StartTLS()
	issuer.Close()
	key, err := x509.MarshalPKCS8PrivateKey(issuer.TLS.Certificates[0].PrivateKey)
	if err != nil {
		r.t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"crt":      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}),
		"key":      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"web.yaml": []byte("tls_server_config: {cert_file: crt, key_file: key}\n"),
	} {
		if err := os.WriteFile(filepath.Join(r.Dir, webFolder, name), text, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	return webFolder + "/web.yaml"
}

func coded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// foreign gives a token of a user that another cluster could have made.
func foreign(user string) string {
	text := coded(`{"alg":"HS256","typ":"JWT"}`) + "." + coded(fmt.Sprintf(`{"exp":9999999999,"iat":1700000000,"sun":%q}`, user))
	sum := hmac.New(sha256.New, []byte("the key of another cluster"))
	sum.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}
