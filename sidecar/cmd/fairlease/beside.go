package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// besideLimit is the longest that a division or an audit may take.
const besideLimit = 10 * time.Minute

// beside divides and audits in a process of its own: CLP ends the process in which it meets what it did not expect, and
// there is no other way to stop a program that does not end.
type beside struct {
	ctx     context.Context
	program string // that has the command `beside`
	limit   time.Duration
}

// besideTask is what the process is asked: one of both.
type besideTask struct {
	Question *cluster.Question `json:"question,omitempty"`
	Snapshot *cluster.Snapshot `json:"snapshot,omitempty"`
}

// besideAnswer is what it answers.
type besideAnswer struct {
	Division *cluster.Division `json:"division,omitempty"`
	Audit    *cluster.Audit    `json:"audit,omitempty"`
}

// divide is engine.Divide. A process that fails is a panic, as what broke down in it would have been.
func (b beside) divide(q cluster.Question) cluster.Division {
	answer, err := b.ask(besideTask{Question: &q})
	if err != nil {
		panic(err)
	}
	return *answer.Division
}

// audit is engine.Audit.
func (b beside) audit(s cluster.Snapshot) (cluster.Audit, bool) {
	answer, err := b.ask(besideTask{Snapshot: &s})
	if err != nil {
		panic(err)
	}
	if answer.Audit == nil {
		return cluster.Audit{}, false
	}
	return *answer.Audit, true
}

func (b beside) ask(task besideTask) (besideAnswer, error) {
	in, err := json.Marshal(task)
	if err != nil {
		return besideAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.limit)
	defer cancel()
	c := exec.CommandContext(ctx, b.program, "beside")
	var out, said bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &out, &said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // it ends with this thread, too
	defer runtime.UnlockOSThread()
	err = c.Run()
	if ctx.Err() == context.DeadlineExceeded {
		return besideAnswer{}, fmt.Errorf("it took longer than %v", b.limit)
	}
	if err != nil {
		return besideAnswer{}, fmt.Errorf("its process ended: %w: %.500s", err, strings.TrimSpace(said.String()))
	}
	var answer besideAnswer
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || task.Question != nil && answer.Division == nil {
		return besideAnswer{}, fmt.Errorf("its process answered %.100q: %w", out.String(), err)
	}
	return answer, nil
}

// beside is the command that such a process runs.
func (p *program) beside() *cobra.Command {
	return &cobra.Command{Use: "beside", Hidden: true, Short: "divide or audit for the daemon", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := io.ReadAll(c.InOrStdin())
			if err != nil {
				return err
			}
			var task besideTask
			if err := json.Unmarshal(text, &task); err != nil {
				return err
			}
			var answer besideAnswer
			if task.Question != nil {
				d := engine.Divide(*task.Question)
				answer.Division = &d
			}
			if task.Snapshot != nil {
				if a, ok := engine.Audit(*task.Snapshot); ok {
					answer.Audit = &a
				}
			}
			return json.NewEncoder(p.out).Encode(answer)
		}}
}

// besides gives who divides and audits for a daemon that runs as long as ctx. The program is the one that runs, also
// when its file has been replaced.
func besides(ctx context.Context) beside { return beside{ctx, "/proc/self/exe", besideLimit} }
