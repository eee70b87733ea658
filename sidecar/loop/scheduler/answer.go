package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// answer is what a scheduler writes: one of both.
type answer struct {
	// Order names jobs, the first first. Jobs that it does not name follow in the built-in order.
	Order *[]cluster.JobKey `json:"order"`
	// Placements is an order, too, in which each job may be placed on a model, on some nodes, or both.
	Placements *[]cluster.VCTurn `json:"placements"`
}

// Parse reads the answer to a view. It refuses an answer with unknown keys, with jobs, nodes or models that are not in the view, and one that
// names a job twice, or a node twice for a job.
func Parse(text []byte, v *View) ([]cluster.VCTurn, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var a answer
	err := d.Decode(&a)
	if err == nil {
		if _, more := d.Token(); more == nil {
			err = errors.New("more follows after the answer; write one JSON document")
		} else if more != io.EOF {
			err = more
		}
	}
	if err != nil {
		return nil, notJSON(err, d.InputOffset(), len(text))
	}
	if (a.Order == nil) == (a.Placements == nil) {
		return nil, errors.New(`its answer has not one of both: write {"order": [job, …]} or {"placements": [{"job": job, "nodes": [name, …]}, …]}`)
	}
	var turns []cluster.VCTurn
	if a.Placements != nil {
		turns = *a.Placements
	} else {
		for _, job := range *a.Order {
			turns = append(turns, cluster.VCTurn{Job: job})
		}
	}
	return turns, check(turns, v)
}

// notJSON says what is wrong with an answer, and at which byte.
func notJSON(err error, at int64, length int) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case length == 0:
		return errors.New("it wrote no answer")
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		at, err = int64(length), errors.New("the text ends too early")
	}
	return fmt.Errorf("its answer is wrong at byte %d: %.200s", min(at, math.MaxInt32), err.Error())
}

// check refuses an answer that does not fit the view.
func check(turns []cluster.VCTurn, v *View) error {
	jobs, nodes, models := map[cluster.JobKey]bool{}, map[string]bool{}, map[string]bool{}
	for i := range v.Jobs {
		jobs[v.Jobs[i].Job] = true
	}
	for _, n := range v.Nodes {
		nodes[n.Name], models[n.Model] = true, true
	}
	for _, x := range turns {
		waits, known := jobs[x.Job]
		switch {
		case !known:
			return fmt.Errorf("its answer names job %d, which is not in its view", x.Job)
		case !waits:
			return fmt.Errorf("its answer names job %d twice", x.Job)
		case x.Model != "" && !models[x.Model]:
			return fmt.Errorf("its answer places job %d on model %.100q, which is not in its view", x.Job, x.Model)
		}
		jobs[x.Job] = false
		on := map[string]bool{}
		for _, name := range x.Nodes {
			if on[name] {
				return fmt.Errorf("its answer places job %d on node %.100q twice", x.Job, name)
			}
			if on[name] = true; !nodes[name] {
				return fmt.Errorf("its answer places job %d on node %.100q, which is not in its view", x.Job, name)
			}
		}
	}
	return nil
}
