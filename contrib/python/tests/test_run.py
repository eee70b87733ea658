"""The wrapper with real child processes. They say on a pipe when they are ready: nothing waits by the clock."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fairlease", "run.py")

# A child that writes each signal that it hears, and ends as its script says.
CHILD = r"""
import os, signal, sys
def told(n, f):
    os.write(1, b"heard %s\n" % signal.Signals(n).name.encode())  # in one piece, beside others' lines
    if signal.Signals(n).name == END_ON: sys.exit(CODE)
for s in HEARS.split(): signal.signal(getattr(signal, s), told)
os.write(1, b"ready\n")
while True: signal.pause()
"""


def child(hears="SIGTERM", end_on="SIGTERM", code=0):
    return CHILD.replace("END_ON", repr(end_on)).replace("CODE", str(code)).replace("HEARS", repr(hears))


class Run:
    """A wrapper that runs a command in a job."""

    def __init__(self, *args, job="1", **env):
        out = dict({k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "FAIRLEASE", "SUBMITIT"))}, **env)
        if job:
            out["SLURM_JOB_ID"] = job
        self.process = subprocess.Popen([sys.executable, RUN, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=out, text=True)

    def line(self, stream="stdout"):
        """The next line of its output, or "" at its end."""
        return getattr(self.process, stream).readline().strip()

    def send(self, number):
        self.process.send_signal(number)

    def child(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return int(f.read())

    def ended(self):
        return self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


class WithoutNotice(unittest.TestCase):
    def test_exit_codes_pass(self):
        for code in (0, 1, 7, 143):
            with Run("--", sys.executable, "-c", "raise SystemExit(%d)" % code) as run:
                self.assertEqual(run.ended(), code)

    def test_a_death_by_signal_passes(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR2):
            with Run("--", sys.executable, "-c", "import os; os.kill(os.getpid(), %d)" % number) as run:
                self.assertEqual(run.ended(), -number)

    def test_commands_that_cannot_start(self):
        with Run("--", "/no/such/program") as run:
            self.assertEqual((run.ended(), run.line("stderr")), (127, "fairlease run: /no/such/program: No such file or directory"))
        with Run("--", "/") as run:
            self.assertEqual(run.ended(), 126)
        for args in ((), ("--signal", "NOISE", "--", "true"), ("--hold", "soon", "--", "true")):
            with Run(*args) as run:
                self.assertEqual(run.ended(), 2)

    def test_signals_pass(self):
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGALRM"):
            with Run("--", sys.executable, "-c", child(name, name, 5)) as run:
                self.assertEqual(run.line(), "ready")
                run.send(getattr(signal, name))
                self.assertEqual((run.line(), run.ended()), ("heard " + name, 5))

    def test_outside_a_job_it_is_the_command(self):
        with Run("--", sys.executable, "-c", "import os; print(os.getpid())", job="") as run:
            self.assertEqual(run.line(), str(run.process.pid))

    def test_the_command_has_the_usual_signals(self):
        bare = subprocess.run(["sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"], stdout=subprocess.PIPE, text=True, check=True).stdout
        with Run("--signal", "USR1", "--", "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status") as run:
            self.assertEqual(run.process.stdout.read(), bare)



class Ignored(unittest.TestCase):
    def test_the_framework_hears_its_signal_though_the_wrapper_was_started_with_it_ignored(self):
        """As after nohup: a shell cannot trap a signal that was ignored when it began."""
        was = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with Run("--signal", "HUP", "--", "/bin/sh", "-c", "trap 'echo saved; exit 0' HUP; echo ready; while :; do sleep 0.1; done") as run:
                self.assertEqual(run.line(), "ready")
                run.send(signal.SIGUSR1)
                self.assertEqual(run.line(), "saved")
                said = "-"
                while said and "waiting for the requeue" not in said:
                    said = run.line("stderr")
                run.send(signal.SIGTERM)
                self.assertEqual(run.ended(), 143)
        finally:
            signal.signal(signal.SIGHUP, was)


class Noticed(unittest.TestCase):
    def test_a_command_that_saves_and_ends_waits_for_the_requeue(self):
        with Run("--", sys.executable, "-c", child()) as run:
            self.assertEqual(run.line(), "ready")
            run.send(signal.SIGUSR1)
            self.assertEqual(run.line(), "heard SIGTERM")
            self.assertIn("sending SIGTERM", run.line("stderr"))
            self.assertIn("waiting for the requeue", run.line("stderr"))
            self.assertIsNone(run.process.poll())  # it would be COMPLETED
            run.send(signal.SIGTERM)
            self.assertEqual(run.ended(), 143)

    def test_the_framework_s_signal(self):
        with tempfile.TemporaryDirectory() as home:
            script = os.path.join(home, "train.py")
            cases = [(("--signal", "USR2"), {}, "SIGUSR2", ""), ((), {"FAIRLEASE_SIGNAL": "SIGHUP"}, "SIGHUP", ""),
                     ((), {"SUBMITIT_PREEMPT_SIGNAL": "USR2"}, "SIGUSR2", ""), ((), {}, "SIGUSR1", "# import lightning\n"),
                     ((), {}, "SIGTERM", ""), (("--notice", "USR2"), {}, "SIGTERM", ""), ((), {"FAIRLEASE_NOTICE": "USR2"}, "SIGTERM", ""),
                     ((), {"FAIRLEASE_HINTS": "kind=a signal=NOISE,signal=B:SIGUSR2"}, "SIGTERM", ""),
                     ((), {"FAIRLEASE_HINTS": "signal=HUP", "FAIRLEASE_NOTICE": "USR2"}, "SIGTERM", "")]
            for args, env, want, text in cases:
                with open(script, "w") as f:
                    f.write(text + child("SIGUSR1 SIGUSR2 SIGHUP SIGTERM", want))
                with Run(*args, "--", sys.executable, script, **env) as run:
                    self.assertEqual(run.line(), "ready")
                    told = "--notice" in args or "FAIRLEASE_NOTICE" in env or "FAIRLEASE_HINTS" in env
                    run.send(signal.SIGUSR2 if told else signal.SIGUSR1)
                    self.assertEqual(run.line(), "heard " + want)
                    self.assertIn("sending", run.line("stderr"))
                    self.assertIn("waiting", run.line("stderr"))

    def test_no_signal_at_all(self):
        with Run("--signal", "none", "--", sys.executable, "-c", child("SIGTERM SIGHUP", "SIGTERM", 3)) as run:
            self.assertEqual(run.line(), "ready")
            run.send(signal.SIGUSR1)
            run.send(signal.SIGHUP)  # heard after the notice
            self.assertEqual(run.line(), "heard SIGHUP")
            run.send(signal.SIGTERM)
            self.assertEqual((run.line(), run.ended()), ("heard SIGTERM", 3))

    def test_a_command_that_ignores_the_notice_s_signal_survives_it(self):
        # Slurm sends the notice to every process of a step, the command too.
        with Run("--signal", "none", "--", sys.executable, "-c", "import os; print('ready', flush=True); input(); print('alive')") as run:
            self.assertEqual(run.line(), "ready")
            os.kill(run.child(), signal.SIGUSR1)
            os.kill(run.child(), signal.SIGTERM)
            self.assertEqual(run.ended(), -signal.SIGTERM)  # TERM ended it, not USR1

    def test_a_second_notice_and_the_requeue_do_not_hurry_a_save(self):
        slow = child("SIGTERM SIGHUP", "SIGHUP", 0)
        with Run("--", sys.executable, "-c", slow) as run:
            self.assertEqual(run.line(), "ready")
            run.send(signal.SIGUSR1)
            self.assertEqual(run.line(), "heard SIGTERM")
            run.send(signal.SIGUSR1)
            run.send(signal.SIGTERM)
            run.send(signal.SIGHUP)
            self.assertEqual((run.line(), run.ended()), ("heard SIGHUP", 0))

    def test_a_failure_after_the_notice_waits_too(self):
        with Run("--", sys.executable, "-c", child("SIGUSR1", "SIGUSR1", 0)) as run:  # it dies of TERM
            self.assertEqual(run.line(), "ready")
            run.send(signal.SIGUSR1)
            run.line("stderr")
            self.assertIn("waiting for the requeue", run.line("stderr"))
            run.send(signal.SIGTERM)
            self.assertEqual(run.ended(), 143)

    def test_without_a_requeue_the_command_starts_again(self):
        with Run("--hold", "0", "--", sys.executable, "-c", child()) as run:
            self.assertEqual(run.line(), "ready")
            run.send(signal.SIGUSR1)
            self.assertEqual([run.line(), run.line()], ["heard SIGTERM", "ready"])
            run.send(signal.SIGTERM)
            self.assertEqual((run.line(), run.ended()), ("heard SIGTERM", 0))

    def test_a_launcher_s_workers_get_the_signal_and_the_launcher_survives(self):
        # As torchrun: the agent ends its workers at TERM, dies of USR1, and starts them in sessions of their own.
        agent = r"""
import os, subprocess, sys
env = dict(os.environ)
helper = subprocess.Popen(["sleep", "1000"])
ranks = [subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True, env=dict(env, LOCAL_RANK=str(r))) for r in range(2)]
codes = [r.wait() for r in ranks]
print("helper", helper.poll(), "codes", *codes, flush=True)
helper.kill()
"""
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "torchrun")
            with open(path, "w") as f:
                f.write("#!%s\n%s" % (sys.executable, agent))
            os.chmod(path, 0o755)
            with Run("--", path, child()) as run:
                self.assertEqual([run.line(), run.line()], ["ready", "ready"])
                os.kill(run.child(), signal.SIGUSR1)  # from Slurm
                run.send(signal.SIGUSR1)
                self.assertEqual([run.line(), run.line()], ["heard SIGTERM", "heard SIGTERM"])
                self.assertEqual(run.line(), "helper None codes 0 0")
                run.line("stderr")
                self.assertIn("waiting", run.line("stderr"))
                run.send(signal.SIGTERM)
                self.assertEqual(run.ended(), 143)


if __name__ == "__main__":
    unittest.main()
