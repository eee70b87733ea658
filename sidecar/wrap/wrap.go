// Package wrap runs a training command under fairlease's notice. The wrapper itself is a program of the job-side library,
// contrib/python/fairlease/run.py, so that nodes without this binary have the same one.
package wrap

import (
	"os/exec"
	"slices"
	"syscall"

	python "github.com/fairlease/fairlease/contrib/python"
	"github.com/fairlease/fairlease/sidecar/failure"
)

// About is the help of the command.
const About = `Run a training command in a job. Without a notice it is invisible: signals pass to the command, and it ends as the
command does. At the notice that the job's lease will not be renewed (USR1) it sends the command the signal on which its
framework saves, and waits for its end. Then it waits for the requeue: a job that saved and ended by itself would be
COMPLETED, and never go on. Without a requeue in time it starts the command again.

The signal is found from the environment, the command and its script: USR2 for submitit, USR1 for Lightning and for
scripts that use the library fairlease, else TERM. The workers of torchrun and accelerate get it in place of the
launcher, which would end them, or die of USR1.

  --signal NAME    the signal on which the command saves, or none ($FAIRLEASE_SIGNAL)
  --notice NAME    the signal of the job's notice: by default $FAIRLEASE_NOTICE, else signal= in $FAIRLEASE_HINTS, else USR1
  --hold SECONDS   how long to wait for the requeue, 900 by default ($FAIRLEASE_HOLD)

Put it behind srun: the notice goes to a job's steps. Declare --comment=saves=notice, so that it is sent. It needs python3
on the node. Outside a job it is the command itself; "python -m fairlease run" is the same program.`

// Exec replaces this process by the wrapper. args are its options, -- and the command. It returns only an error.
func Exec(args, env []string) error {
	path, err := exec.LookPath("python3")
	if err == nil {
		err = syscall.Exec(path, slices.Concat([]string{"python3", "-I", "-c", python.Run}, args), env)
	}
	return &failure.Error{Code: failure.No, What: "the wrapper cannot start", Err: err, Next: "fairlease run needs python3 on the node"}
}
