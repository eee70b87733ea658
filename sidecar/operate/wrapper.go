package operate

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	python "github.com/fairlease/fairlease/contrib/python"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// WrapperAbout is the help of the command.
const WrapperAbout = `Run a training command in a job. Without a notice it is invisible: signals pass to the command, and it ends as the
command does. At the notice that the job's lease will not be renewed (USR1) it sends the command the signal on which its
framework saves, and waits for its end. Then it waits for the requeue: a job that saved and ended by itself would be
COMPLETED, and never go on. Without a requeue in time it starts the command again.

The signal is found from the environment, the command and its script: USR2 for submitit, USR1 for Lightning and for
scripts that use the library fairlease, else TERM. The workers of torchrun and accelerate get it in place of the
launcher, which would end them, or die of USR1.

  --signal NAME    the signal on which the command saves, or none ($FAIRLEASE_SIGNAL)
  --notice NAME    the signal of the job's notice: by default $FAIRLEASE_NOTICE, else signal= in $FAIRLEASE_HINTS, else USR1
  --hold SECONDS   how long to wait for the requeue, 900 by default ($FAIRLEASE_HOLD)

  --no-count       do not count steps ($FAIRLEASE_COUNT=0)

The steps of a PyTorch 2 script that does not import the library are counted at its first optimizer, and reported.

Put it behind srun: the notice goes to a job's steps. Declare --comment=saves=notice, so that it is sent. It needs python3
on the node. Outside a job it is the command itself; "python -m fairlease run" is the same program.`

// ExecWrapper replaces this process by the wrapper. args are its options, -- and the command. It returns only an error.
//
// The library lies in memory, as a zip archive that Python runs. The wrapper, which keeps this process's number, holds it
// open as long as the command runs, so that Python finds modules for the command there.
func ExecWrapper(args, env []string) error {
	path, err := exec.LookPath("python3")
	if err != nil {
		return noWrapper(err, "fairlease run needs python3 on the node")
	}
	fd, err := unix.MemfdCreate("fairlease", 0)
	if err != nil {
		return noWrapper(err, "it needs some memory")
	}
	library := os.NewFile(uintptr(fd), "fairlease")
	if err := archiveLibrary(library); err != nil {
		return noWrapper(err, "it needs some memory")
	}
	name := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	return noWrapper(syscall.Exec(path, slices.Concat([]string{"python3", "-I", name}, args), env), "look at the permissions of "+path)
}

func noWrapper(err error, next string) error {
	return &failure.Error{Code: failure.No, What: "the wrapper cannot start", Err: err, Next: next}
}

// archiveLibrary writes the library as a zip archive that is a Python program.
func archiveLibrary(to io.Writer) error {
	z := zip.NewWriter(to)
	if err := z.AddFS(python.Library); err != nil {
		return err
	}
	program, err := z.Create("__main__.py")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(program, "from fairlease.run import main\nmain()\n"); err != nil {
		return err
	}
	return z.Close()
}
