package telemetry

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Most is the maximum length of a report, in bytes; its credential is about twice as long.
const Most = 1024

// mostSteps is the limit up to which a float64 represents every integer.
const mostSteps = 1 << 53

// wire is a report as jobs write it.
type wire struct {
	Job   string   `json:"job"`
	Steps *float64 `json:"steps"`
	Total float64  `json:"total"`
	Saved bool     `json:"saved"`
	Took  float64  `json:"took"`
}

// backwards words the refusal of a save of an attempt after a later one.
func backwards(steps, before float64) string {
	return fmt.Sprintf("saved: a save after %g steps follows one after %g; report the newest checkpoint only", steps, before)
}

// longestSave is the longest duration of a save that a job may report, in seconds.
const longestSave = 24 * 3600

// Parse reads a report: {"job": "123_4", "steps": 1200, "total": 90000, "saved": true, "took": 12.5}.
// The total is optional, and so is the job if the file's name gives it: then it is the argument
// job. With saved, the job has just saved its work; took is how long that took, in seconds.
func Parse(text []byte, job string) (r cluster.Progress, saved bool, err error) {
	var w wire
	if len(text) > Most {
		return cluster.Progress{}, false, fmt.Errorf("the report has %d bytes; %d is the most", len(text), Most)
	}
	if err := json.Unmarshal(bytes.TrimSpace(text), &w, json.RejectUnknownMembers(true)); err != nil {
		return cluster.Progress{}, false, fmt.Errorf(`the report cannot be read; write {"job": "123", "steps": 1200, "total": 90000}: %w`, err)
	}
	var wrong []error
	if w.Job == "" {
		w.Job = job
	}
	id, err := cluster.ParseJobID(w.Job)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("job: %w", err))
	} else if job != "" && w.Job != job {
		wrong = append(wrong, fmt.Errorf("job: %s is said in the file of %s", w.Job, job))
	}
	if w.Steps == nil {
		wrong = append(wrong, errors.New("steps: are missing; write how many the job has done since it first began"))
	} else if !(*w.Steps >= 0 && *w.Steps <= mostSteps) {
		wrong = append(wrong, fmt.Errorf("steps: %v cannot be; write a number from 0 to %d", *w.Steps, int64(mostSteps)))
	}
	if !(w.Total >= 0 && w.Total <= mostSteps) {
		wrong = append(wrong, fmt.Errorf("total: %v cannot be; write a number from 0 to %d, or leave it out", w.Total, int64(mostSteps)))
	}
	if !(w.Took >= 0 && w.Took <= longestSave) || w.Took > 0 && !w.Saved {
		wrong = append(wrong, fmt.Errorf("took: %v cannot be; write with a save how many seconds it took, from 0 to %d, or leave it out", w.Took, longestSave))
	}
	if len(wrong) > 0 {
		return cluster.Progress{}, false, errors.Join(wrong...)
	}
	return cluster.Progress{Job: id, Steps: *w.Steps, Total: w.Total, Took: cluster.Span(w.Took * 1000)}, w.Saved, nil
}
