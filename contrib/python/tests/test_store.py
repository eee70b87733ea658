"""The last store: a training that is cut off in the middle of a step goes on from a copy, with the same bits."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from test_jobs import HERE, Daemon, environment, python, torch

# A step computes for long in C, where no handler of a signal runs: only a thread can write then.
LONG = """
import fairlease, hashlib, os, signal, sys
steps = []
store = fairlease.LastStore("run.ckpt", lambda: list(steps), %(more)s)
def train():
    for n in range(100):
        yield n
for n in fairlease.iterate(train(), store):
    steps.append(n)
    if n == 7:
        print("step", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", (1 << 31) - 1)
"""


def until(told, seconds=60):
    end = time.monotonic() + seconds
    while not told():
        if time.monotonic() > end:
            raise AssertionError("nothing happens")
        time.sleep(0.05)


class Store(unittest.TestCase):
    def cut_off(self, home, more, announce, told=lambda: True, **env):
        """Announces the end of the lease in a step that never ends, and kills the job when a copy is written and told. Returns the file's content."""
        path = os.path.join(home, "run.ckpt")
        with subprocess.Popen([sys.executable, "-c", LONG % {"more": more}], env=environment(**dict({"SLURM_JOB_ID": "7"}, **env)), cwd=home,
                              stdout=subprocess.PIPE, text=True) as job:
            self.assertEqual(job.stdout.readline(), "step\n")
            self.assertFalse(os.path.exists(path))  # a lease that goes on costs no save
            announce(job)
            try:
                until(lambda: os.path.exists(path) and told() or job.poll() is not None)
            finally:
                job.kill()
        with open(path, "rb") as f:
            return pickle.load(f)

    def test_the_notice_comes_in_a_step(self):
        for number in (signal.SIGUSR1, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as home:
                self.assertEqual(self.cut_off(home, "every=3", lambda job: job.send_signal(number)), (6, [0, 1, 2, 3, 4, 5]))

    def test_on_the_disk_of_the_node(self):
        with tempfile.TemporaryDirectory() as home:
            node = os.path.join(home, "node")
            os.mkdir(node)
            self.assertEqual(self.cut_off(home, "folder='node'", lambda job: job.send_signal(signal.SIGUSR1)), (7, [0, 1, 2, 3, 4, 5, 6]))
            self.assertEqual(os.listdir(node), [])  # though the job was killed

    def test_the_daemon_says_that_the_lease_ends(self):
        with Daemon() as d, tempfile.TemporaryDirectory() as home:
            d.lease = {"job": "7", "ends": 1e10, "notice": 60, "gpus": 4, "model": "v100", "renewed": "undecided"}

            def announce(job):
                d.asked.wait(60)
                d.lease = dict(d.lease, renewed="no")

            def told():
                return [said for _, said in d.heard if said.get("saved")]

            self.assertEqual(self.cut_off(home, "every=2", announce, told, **d.env())[0], 6)
            said = told()[0]
            self.assertEqual(said["steps"], 6)

    def test_a_script_with_its_own_wakeup(self):
        script = """
import fairlease, os, signal, time
hear, ring = os.pipe()
os.set_blocking(ring, False)
signal.set_wakeup_fd(ring)
store = fairlease.LastStore("run.ckpt", lambda: "state")
store.after(1)
os.kill(os.getpid(), signal.SIGUSR1)
assert os.read(hear, 9) == bytes([signal.SIGUSR1])
while not os.path.exists("run.ckpt"): time.sleep(0.05)
print(signal.set_wakeup_fd(-1) == ring, store.load())
"""
        with tempfile.TemporaryDirectory() as home:
            self.assertEqual(python("import os; os.chdir(%r)\n" % home + script, SLURM_JOB_ID="7"), "True (1, 'state')")

    def test_a_worker_process_does_not_ring(self):
        script = """
import fairlease, os, signal, time
store = fairlease.LastStore("run.ckpt", lambda: "state")
store.after(1)
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGUSR1)
    os._exit(0)
os.waitpid(pid, 0)
time.sleep(1.5)
print(os.path.exists("run.ckpt"))
"""
        with tempfile.TemporaryDirectory() as home:
            self.assertEqual(python("import os; os.chdir(%r)\n" % home + script, SLURM_JOB_ID="7"), "False")

    def test_outside_a_job_no_copies_are_kept(self):
        script = """
import fairlease, threading
taken = []
store = fairlease.LastStore("run.ckpt", lambda: taken.append(1))
assert list(fairlease.iterate(range(5), store)) == [0, 1, 2, 3, 4] and store.load() is None
assert not taken and threading.active_count() == 1
store(5)
print(store.load())
"""
        with tempfile.TemporaryDirectory() as home:
            self.assertEqual(python("import os; os.chdir(%r)\n" % home + script), "(5, None)")

    def test_writes(self):
        script = """
import fairlease, os, pickle
state = [1]
def dump(what, file):
    file.write(b"half")
    if state == [9]: raise OSError("disk full")
    file.seek(0); pickle.dump(what, file)
store = fairlease.LastStore("run.ckpt", lambda: state, every=2, dump=dump)
store.after(1); store.flush()
assert not os.path.exists("run.ckpt")
store.after(2)
state[0] = 5                                    # later steps change no copy
store.flush(); assert store.load() == (2, [1]), store.load()
store(3); store.flush(); assert store.load() == (3, [5])
os.mkdir("run.ckpt.new")                        # it cannot be written
store.after(4); store.flush()
assert isinstance(store.error, OSError) and store.load() == (3, [5])
os.rmdir("run.ckpt.new")
store.flush(); assert store.error is None and store.load() == (4, [5])
state[0] = 9
for save in (store, store.after):
    try: save(6)
    except OSError: pass
    else: raise AssertionError
store.flush(); assert store.load() == (4, [5])  # half a copy is none
for every in (0, -1):
    try: fairlease.LastStore("x", list, every)
    except ValueError: pass
    else: raise AssertionError
print(os.listdir("."))
"""
        with tempfile.TemporaryDirectory() as home:
            self.assertEqual(python("import os; os.chdir(%r)\n" % home + script, SLURM_JOB_ID="7"), "['run.ckpt']")


class Training(unittest.TestCase):
    """train.py with STORE=N keeps a copy of every N-th step."""

    def resumes(self, kind, env):
        env = dict({"SLURM_JOB_ID": "7", "TRAIN": kind.lower(), "STORE": "10"}, **env)
        with tempfile.TemporaryDirectory() as home:
            def attempt(name, *args, **more):
                return subprocess.Popen([sys.executable, os.path.join(HERE, "train.py"), os.path.join(home, name), "300", *args],
                                        env=environment(**env, **more), stdout=subprocess.PIPE, text=True)

            with attempt("whole") as job:
                whole = job.communicate(timeout=120)[0].split()
            self.assertEqual(whole[:3], ["begin", "0", kind])
            path = os.path.join(home, "stopped")
            with attempt("stopped", "127", CUT="1") as job:  # the notice comes in step 127, which does not end
                self.assertEqual(job.stdout.readline(), "begin 0\n")
                try:
                    until(lambda: os.path.exists(path) or job.poll() is not None)
                finally:
                    job.kill()
            with attempt("stopped", SLURM_RESTART_COUNT="1") as job:
                second = job.communicate(timeout=120)[0].split()
            self.assertEqual(second[:2], ["begin", "120"])
            return second[2:] == whole[2:]

    def test_resume_bit_equal_pure(self):
        equal = self.resumes("Pure", {})
        print("resume_bit_equal %d (last store, pure Python)" % equal)
        self.assertTrue(equal)

    @unittest.skipUnless(torch, "PyTorch is not installed (Debian: python3-torch)")
    def test_resume_bit_equal_torch(self):
        for folder in ("", "."):
            equal = self.resumes("Torch", {"STORE_FOLDER": folder})
            print("resume_bit_equal %d (last store, PyTorch %s)" % (equal, torch.__version__))
            self.assertTrue(equal)


if __name__ == "__main__":
    unittest.main()
