// Package beside runs divisions, audits, forecasts and studies of the lease term in a separate process, since CLP exits its process on
// an unexpected error, and a computation that does not end cannot be stopped otherwise. The
// daemon starts its own program with a command that calls Answer. A failed process is a failure
// of the policy alone.
package beside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// Limit is the maximum duration of a division or an audit.
const Limit = 10 * time.Minute

// Process is the program that divides and audits, started anew for each question.
type Process struct {
	Context context.Context // of the daemon: its end kills the process
	Path    string          // of the program
	Args    []string        // with which the program calls Answer
	Limit   time.Duration
	// In gives what the process of Study or Forecast reads, from which it knows the configuration; nil = nothing.
	In func() ([]byte, error)
}

// task is the input of the process: one of both.
type task struct {
	Question *cluster.AllocationRequest `json:"allocation_request,omitempty"`
	Snapshot *cluster.Snapshot          `json:"snapshot,omitempty"`
}

// answer is the output of the process.
type answer struct {
	Division *cluster.Allocation `json:"allocation,omitempty"`
	Audit    *cluster.Audit      `json:"audit,omitempty"`
}

// Divide is engine.Divide. A failed process is a panic, as a panic in Divide would be.
func (b Process) Divide(q cluster.AllocationRequest) cluster.Allocation {
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
	out, err := b.run(b.Context, in, false)
	if err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil || t.Question != nil && a.Division == nil {
		return answer{}, fmt.Errorf("its process answered %.100q: %w", out, err)
	}
	return a, nil
}

// run runs the program until its end, or that of ctx, and gives its output. An idle one, with all its threads, gets only
// what the machine's other processes leave.
func (b Process) run(ctx context.Context, in []byte, idle bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	c := exec.CommandContext(ctx, b.Path, b.Args...)
	var out, said bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &out, &said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: idle}
	runtime.LockOSThread() // the process dies with this thread
	defer runtime.UnlockOSThread()
	err := c.Start()
	if err == nil && idle {
		err = syscall.Setpriority(syscall.PRIO_PGRP, c.Process.Pid, 19)
	}
	if c.Process != nil {
		err = errors.Join(err, c.Wait())
	}
	if ctx.Err() == context.DeadlineExceeded {
		return nil, fmt.Errorf("it took longer than %s", cluster.SpanOf(b.Limit).Exact())
	}
	if err != nil {
		return nil, fmt.Errorf("its process ended: %w: %.500s", err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// alone runs the program as an idle process.
func (b Process) alone(ctx context.Context) ([]byte, error) {
	if b.In == nil {
		return b.run(ctx, nil, true)
	}
	in, err := b.In()
	if err != nil {
		return nil, err
	}
	return b.run(ctx, in, true)
}

// StudyLimit is the maximum duration of a study.
const StudyLimit = 6 * time.Hour

// Study runs the program, which writes the report of fairlease tune journal, and gives its study. The process is idle,
// and the end of ctx kills it.
func (b Process) Study(ctx context.Context) (tune.Study, error) {
	out, err := b.alone(ctx)
	if err != nil {
		return tune.Study{}, err
	}
	return tune.ParseStudy(out)
}

// ForecastLimit is the maximum duration of a forecast.
const ForecastLimit = 30 * time.Minute

// Forecast runs the program, which writes the report of fairlease forecast --now, and gives its forecast. The process is idle,
// and the end of ctx kills it.
func (b Process) Forecast(ctx context.Context) (*forecast.Forecast, error) {
	out, err := b.alone(ctx)
	if err != nil {
		return nil, err
	}
	return forecast.Parse(out)
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
