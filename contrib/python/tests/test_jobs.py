"""The library in jobs: leases, saves at their end, and training that goes on as if it had never been stopped."""

import base64
import http.server
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)

try:
    import torch
except ImportError:
    torch = None


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "FAIRLEASE"))}
    return dict(clean, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", **more)


def python(script, **env):
    """The output of a script, which must succeed."""
    done = subprocess.run([sys.executable, "-c", script], env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout.strip()


def certificate(folder):
    """The paths of a certificate for 127.0.0.1, and of its key."""
    crt, key = os.path.join(folder, "crt"), os.path.join(folder, "key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", key, "-out", crt,
                    "-subj", "/CN=fairlease", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return crt, key


class Daemon:
    """A daemon's double, by TLS if secure. munge is cat here, so the body of a request is its text."""

    def __init__(self, secure=False):
        self.lease = {"job": "7"}
        self.again = "1"
        self.code = 200
        self.refuse = 0
        self.location = ""
        self.heard = []
        self.proofs = []
        self.asked = threading.Event()
        daemon = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                daemon.heard.append((self.path, json.loads(text)))
                daemon.proofs.append((self.headers["Authorization"], self.headers["X-SLURM-USER-NAME"]))
                self.send_response(daemon.refuse or (daemon.code if self.path == "/v1/lease" else 202))
                if daemon.location:
                    self.send_header("Location", daemon.location)
                self.send_header("Retry-After", daemon.again)
                self.end_headers()
                if self.path == "/v1/lease":
                    self.wfile.write(json.dumps(daemon.lease).encode())
                    daemon.asked.set()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.bin = tempfile.TemporaryDirectory()
        self.url, self.trust = "http://127.0.0.1:%d" % self.server.server_port, ""
        if secure:
            self.trust, key = certificate(self.bin.name)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.trust, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.url = self.url.replace("http", "https")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        with open(os.path.join(self.bin.name, "munge"), "w") as f:
            f.write("#!/bin/sh\nexec cat\n")
        os.chmod(f.name, 0o755)

    def env(self):
        return {"SLURM_JOB_ID": "7", "FAIRLEASE_PROGRESS_URL": self.url, "SSL_CERT_FILE": self.trust,
                "PATH": self.bin.name + ":" + os.environ["PATH"]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.bin.cleanup()


class Leases(unittest.TestCase):
    ask = "import fairlease; print(fairlease.lease())"

    def test_outside_fairlease_nothing_happens(self):
        script = """
import fairlease, signal, threading
before = [signal.getsignal(s) for s in (signal.SIGUSR1, signal.SIGTERM)]
fairlease.progress(1); fairlease.saved(1, took=2)
with fairlease.saving(1): pass
assert fairlease.lease() is None and not fairlease.should_stop()
fairlease.hold(); fairlease.listen()
assert list(fairlease.iterate("abc", save=None)) == list("abc")
assert [signal.getsignal(s) for s in (signal.SIGUSR1, signal.SIGTERM)] == before
assert threading.active_count() == 1, threading.enumerate()
"""
        python(script)

    def test_answers(self):
        with Daemon() as d:
            d.lease = {"job": "7", "ends": 1e10, "notice": 60, "gpus": 4, "model": "v100", "renewed": "undecided"}
            self.assertEqual(python(self.ask, **d.env()), "Lease(ends=10000000000.0, notice=60.0, model='v100', gpus=4, renewed=None)")
            self.assertEqual(d.heard, [("/v1/lease", {"job": "7"})])
            for said, want in (("yes", "True"), ("no", "False"), ("perhaps", "None")):
                d.lease["renewed"] = said
                self.assertIn("renewed=%s)" % want, python(self.ask, **d.env()))
            d.lease["gpus"] = 0.5
            self.assertIn("gpus=0.5, renewed=None", python(self.ask, **d.env()))
            for other in ({"job": "7"}, [], {"ends": "soon"}):
                d.lease = other
                self.assertEqual(python(self.ask, **d.env()), "None")
            d.code = 403
            self.assertEqual(python(self.ask, **d.env()), "None")
            heard = len(d.heard)
            self.assertEqual(python(self.ask, SLURM_PROCID="1", **d.env()), "None")
            self.assertEqual(len(d.heard), heard)

    def test_an_answer_is_repeated_while_it_is_fresh(self):
        with Daemon() as d:
            d.again = "1000"
            python("import fairlease\nfor _ in range(5): fairlease.lease()", **d.env())
            self.assertEqual(len(d.heard), 1)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(python(self.ask, SLURM_JOB_ID="7", FAIRLEASE_LEASE_FOLDER=folder), "None")
            with open(os.path.join(folder, "7.json"), "w") as f:
                f.write('{"job":"7","ends":5,"notice":60,"gpus":1,"model":"k80","renewed":"no"}')
            self.assertIn("renewed=False", python(self.ask, SLURM_JOB_ID="7", FAIRLEASE_LEASE_FOLDER=folder))


def token(good, **more):
    """A token of a user that is good for so many seconds."""
    part = lambda x: base64.urlsafe_b64encode(json.dumps(x).encode()).decode().rstrip("=")
    return ".".join((part({"alg": "HS256"}), part(dict({"exp": time.time() + good, "sun": "alice"}, **more)), "c2lnbmVk"))


class Tokens(unittest.TestCase):
    """Without munge a token says who reports."""

    told = "import fairlease\ntry: fairlease.report(5)\nexcept OSError as e: print(e)"

    def env(self, d, path, **more):
        return dict({"SLURM_JOB_ID": "7", "FAIRLEASE_PROGRESS_URL": d.url, "SSL_CERT_FILE": d.trust, "PATH": path}, **more)

    def scontrol(self, folder, script):
        with open(os.path.join(folder, "scontrol"), "w") as f:
            f.write("#!/bin/sh\n" + script + "\n")
        os.chmod(f.name, 0o755)

    def test_the_environments_token(self):
        with Daemon(secure=True) as d, tempfile.TemporaryDirectory() as bin:
            good = token(100)
            self.assertEqual(python(self.told, **self.env(d, bin, SLURM_JWT=good)), "")
            self.assertEqual(d.heard, [("/v1/progress", {"job": "7", "steps": 5.0})])
            self.assertEqual(d.proofs, [("Bearer " + good, None)])
            other = token(100, sun="")
            python(self.told, **self.env(d, bin, SLURM_JWT=other, LOGNAME="bob"))
            self.assertEqual(d.proofs[1:], [("Bearer " + other, "bob")])
            for jwt in ("", "x.y.z", token(-5)):
                self.assertIn("neither munge nor scontrol", python(self.told, **self.env(d, bin, SLURM_JWT=jwt)))
            self.assertEqual(len(d.heard), 2)

    def test_a_token_of_its_own(self):
        with Daemon(secure=True) as d, tempfile.TemporaryDirectory() as bin:
            made = token(600)
            calls = os.path.join(bin, "calls")
            self.scontrol(bin, 'echo "$* ${SLURM_JWT-none}" >>%s; echo SLURM_JWT=%s' % (calls, made))
            twice = "import fairlease\nfairlease.report(5); fairlease.report(6)"
            python(twice, **self.env(d, bin, SLURM_JWT=token(-5)))
            self.assertEqual([p for p, _ in d.proofs], ["Bearer " + made] * 2)
            with open(calls) as f:
                self.assertEqual(f.read(), "token lifespan=600 none\n")
            d.refuse = 401
            self.assertIn("fairlease: 401", python(self.told + "\nfor n in (6, 7, 8):\n try: fairlease.report(n)\n except OSError: pass", **self.env(d, bin)))
            with open(calls) as f:
                self.assertEqual(len(f.readlines()), 3)  # one that was refused is made anew, once
            heard = len(d.heard)
            d.again = ""
            python("import fairlease\nfrom fairlease import _reports\nfor n in range(9):\n try: _reports._post('{}')\n except OSError as e: assert e.again == 60, e.again\nassert _reports._next > 0", **self.env(d, bin))
            self.assertEqual(len(d.heard), heard + 9)
            self.scontrol(bin, "echo not allowed >&2; exit 1")
            self.assertEqual(python(self.told, **self.env(d, bin)), "scontrol token: not allowed")

    def test_a_token_stays_secret(self):
        with Daemon(secure=True) as d, Daemon() as other, tempfile.TemporaryDirectory() as bin:
            good = token(100)
            for url in ("http://slurm1.example.org:8765", "http://192.0.2.1:8765", "HTTP://192.0.2.1", other.url, other.url.replace("127.0.0.1", "localhost")):
                self.assertIn("in clear", python(self.told, **self.env(d, bin, SLURM_JWT=good, FAIRLEASE_PROGRESS_URL=url)))
            d.refuse = 302
            d.location = other.url + "/"
            said = python(self.told, **self.env(d, bin, SLURM_JWT=good))
            self.assertIn("fairlease: 302", said)
            self.assertNotIn(good, said)
            self.assertEqual(other.proofs, [])

    def test_which_one(self):
        with Daemon(secure=True) as d, tempfile.TemporaryDirectory() as bin:
            both = dict(d.env(), SLURM_JWT=token(100))
            for how, has in (("", False), ("munge", False), ("jwt", True)):
                d.proofs.clear()
                python(self.told, **dict(both, FAIRLEASE_AUTH=how))
                self.assertEqual([p is not None for p, _ in d.proofs], [has], how)
            with open(os.path.join(d.bin.name, "munge"), "w") as f:
                f.write("#!/bin/sh\necho no munged >&2; exit 1\n")
            d.proofs.clear()
            self.assertEqual(python(self.told, **both), "")
            self.assertEqual(len(d.proofs), 1)
            for env in (dict(both, FAIRLEASE_AUTH="munge"), d.env()):
                self.assertEqual(python(self.told, **env), "munge: no munged")
            self.assertIn("munge", python(self.told, **self.env(d, bin, SLURM_JWT=token(100), FAIRLEASE_AUTH="munge")))
            self.assertEqual(len(d.proofs), 1)


class Stops(unittest.TestCase):
    def test_a_lease_that_is_not_renewed(self):
        script = """
import fairlease, os, signal, time
def batches():
    n = 0
    while True:
        yield n
        n += 1
def save(step):
    print("saved", step, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)  # the requeue
assert not fairlease.should_stop()
for n in fairlease.iterate(batches(), save, start=100, total=1000):
    time.sleep(0.01)
"""
        with Daemon() as d:
            run = subprocess.Popen([sys.executable, "-c", script], env=environment(**d.env()), stdout=subprocess.PIPE, text=True)
            d.asked.wait(60)
            d.lease = {"job": "7", "ends": 1e10, "notice": 60, "gpus": 4, "model": "v100", "renewed": "no"}
            out, _ = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 143)
            step = int(out.split()[1])
            self.assertGreater(step, 100)
            saves = [said for path, said in d.heard if said.get("saved")]
            self.assertTrue(not saves or saves[0]["steps"] == step and saves[0]["took"] >= 0 and saves[0]["total"] == 1000, saves)

    def test_a_lease_that_is_renewed_after_all(self):
        script = """
import fairlease
saves = []
for n in fairlease.iterate(range(3), saves.append):
    if n == 0:
        while not fairlease.should_stop(): pass
print(saves)
"""
        with Daemon() as d:
            d.lease = {"job": "7", "ends": 1e10, "notice": 60, "gpus": 4, "model": "v100", "renewed": "no"}
            run = subprocess.Popen([sys.executable, "-c", script], env=environment(**d.env()), stdout=subprocess.PIPE, text=True)
            d.asked.wait(60)
            d.lease = dict(d.lease, renewed="undecided")
            out, _ = run.communicate(timeout=60)
            self.assertEqual((out.strip(), run.returncode), ("[1]", 0))

    def test_signals(self):
        script = """
import fairlease, os, signal
fairlease.listen()
assert not fairlease.should_stop()
os.kill(os.getpid(), signal.%s)
assert fairlease.should_stop()
"""
        for name in ("SIGUSR1", "SIGTERM"):
            python(script % name, SLURM_JOB_ID="7")
        own = "import signal\nsignal.signal(signal.SIGUSR1, print)\n"
        self.assertIn("10", python(own + (script % "SIGUSR1").replace("assert fairlease", "assert not fairlease"), SLURM_JOB_ID="7"))

    def test_a_worker_process_that_inherits_the_handlers(self):
        script = """
import fairlease, os, signal
fairlease.listen()
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGUSR1)
    os.write(w, b"alive" if not fairlease.should_stop() else b"stops")
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(0)
print(os.read(r, 5).decode(), os.waitpid(pid, 0)[1])
"""
        self.assertEqual(python(script, SLURM_JOB_ID="7"), "alive %d" % signal.SIGTERM)

    def test_without_a_requeue_the_job_goes_on(self):
        script = """
import fairlease, os, signal
saves = []
for n in fairlease.iterate(range(3), saves.append):
    if n == 1: os.kill(os.getpid(), signal.SIGUSR1)
print(saves)
"""
        self.assertEqual(python(script, SLURM_JOB_ID="7", FAIRLEASE_HOLD="0"), "[2]")


class Training(unittest.TestCase):
    def train(self, *args, **env):
        return subprocess.run([sys.executable, os.path.join(HERE, "train.py"), *args], env=environment(SLURM_JOB_ID="7", **env),
                              stdout=subprocess.PIPE, text=True, timeout=120)

    def resumes(self, kind, steps, stop):
        """Whether a training that is stopped and resumed ends with the bits of one that was never interrupted."""
        env = {"TRAIN": kind.lower()}
        with tempfile.TemporaryDirectory() as home:
            whole = self.train(os.path.join(home, "whole"), str(steps), **env).stdout.split()
            self.assertEqual(whole[:3], ["begin", "0", kind])
            path = os.path.join(home, "stopped")
            with subprocess.Popen([sys.executable, os.path.join(HERE, "train.py"), path, str(steps), str(stop)],
                                  env=environment(SLURM_JOB_ID="7", **env), stdout=subprocess.PIPE, text=True) as first:
                self.assertEqual([first.stdout.readline().split() for _ in range(2)], [["begin", "0"], ["saved", str(stop + 1)]])
                first.send_signal(signal.SIGTERM)  # the requeue
                self.assertEqual((first.wait(60), first.stdout.read()), (143, ""))
            second = self.train(path, str(steps), SLURM_RESTART_COUNT="1", **env).stdout.split()
            self.assertEqual(second[:2], ["begin", str(stop + 1)])
            return second[2:] == whole[2:]

    def test_resume_bit_equal_pure(self):
        equal = self.resumes("Pure", 300, 120)
        print("resume_bit_equal %d (pure Python)" % equal)
        self.assertTrue(equal)

    @unittest.skipUnless(torch, "PyTorch is not installed (Debian: python3-torch)")
    def test_resume_bit_equal_torch(self):
        equal = self.resumes("Torch", 300, 120)
        print("resume_bit_equal %d (PyTorch %s)" % (equal, torch.__version__))
        self.assertTrue(equal)

    @unittest.skipUnless(torch, "PyTorch is not installed (Debian: python3-torch)")
    def test_the_example_of_the_documentation(self):
        """It saves on the notice, waits for the requeue, and goes on from there. example.py is in docs/jobs.md."""
        with tempfile.TemporaryDirectory() as home:
            def attempt(**env):
                return subprocess.Popen([sys.executable, os.path.join(HERE, "example.py")], env=environment(SLURM_JOB_ID="7", **env), cwd=home,
                                        stdout=subprocess.PIPE, text=True)

            with attempt() as first:
                self.assertEqual(first.stdout.readline(), "start at step 0\n")
                printed = [first.stdout.readline()]
                first.send_signal(signal.SIGUSR1)
                first.send_signal(signal.SIGTERM)  # the requeue: it saves first
                printed += first.stdout.readlines()
                self.assertEqual(first.wait(60), 143)
            with attempt(SLURM_RESTART_COUNT="1") as second:
                begins = int(second.stdout.readline().rsplit(None, 1)[1])
                second.kill()
            last = int(printed[-1].split()[1])
            self.assertTrue(last <= begins < last + 100, (last, begins))


if __name__ == "__main__":
    unittest.main()
