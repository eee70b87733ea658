// Package beside divides and audits in a process of its own: CLP ends the process in
// which it meets what it did not expect, and there is no other way to stop a program
// that does not end. The daemon starts its own program anew with a command that calls
// Answer; a process that fails is a breakdown of the policy, and of nothing else.
package beside

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

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Limit is the longest that a division or an audit may take.
const Limit = 10 * time.Minute

// Process is the program that divides and audits, started anew for each question.
type Process struct {
	Context context.Context // of the daemon: with it ends the process
	Path    string          // of the program
	Args    []string        // by which the program calls Answer
	Limit   time.Duration
}

// task is what the process is asked: one of both.
type task struct {
	Question *cluster.Question `json:"question,omitempty"`
	Snapshot *cluster.Snapshot `json:"snapshot,omitempty"`
}

// answer is what it answers.
type answer struct {
	Division *cluster.Division `json:"division,omitempty"`
	Audit    *cluster.Audit    `json:"audit,omitempty"`
}

// Divide is engine.Divide. A process that fails is a panic, as what broke down in it would have been.
func (b Process) Divide(q cluster.Question) cluster.Division {
	a, err := b.ask(task{Question: &q})
	if err != nil {
		panic(err)
	}
	return *a.Division
}

// Audit is engine.Audit.
func (b Process) Audit(s cluster.Snapshot) (cluster.Audit, bool) {
	a, err := b.ask(task{Snapshot: &s})
	if err != nil {
		panic(err)
	}
	if a.Audit == nil {
		return cluster.Audit{}, false
	}
	return *a.Audit, true
}

func (b Process) ask(t task) (answer, error) {
	in, err := json.Marshal(t)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(b.Context, b.Limit)
	defer cancel()
	c := exec.CommandContext(ctx, b.Path, b.Args...)
	var out, said bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &out, &said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // it ends with this thread, too
	defer runtime.UnlockOSThread()
	err = c.Run()
	if ctx.Err() == context.DeadlineExceeded {
		return answer{}, fmt.Errorf("it took longer than %v", b.Limit)
	}
	if err != nil {
		return answer{}, fmt.Errorf("its process ended: %w: %.500s", err, strings.TrimSpace(said.String()))
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || t.Question != nil && a.Division == nil {
		return answer{}, fmt.Errorf("its process answered %.100q: %w", out.String(), err)
	}
	return a, nil
}

// Answer reads a question, divides or audits, and writes the answer.
func Answer(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	var a answer
	if t.Question != nil {
		d := engine.Divide(*t.Question)
		a.Division = &d
	}
	if t.Snapshot != nil {
		if found, ok := engine.Audit(*t.Snapshot); ok {
			a.Audit = &found
		}
	}
	return json.NewEncoder(out).Encode(a)
}
