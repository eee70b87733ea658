package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Renewal says whether a lease will be renewed.
type Renewal string

// The answers.
const (
	RenewedYes Renewal = "yes"       // in any case: the job is never requeued
	RenewedNo  Renewal = "no"        // the job is requeued when the term ends
	Undecided  Renewal = "undecided" // until the notice before the term's end
)

// Term is the lease of a running job, as the job learns it.
type Term struct {
	End     cluster.Instant
	Notice  cluster.Span // before the end, when the renewal is decided
	GPUs    cluster.GPUCount
	Model   string
	Renewed Renewal
}

// told is the answer on the wire. Without a lease only the job is there.
type told struct {
	Job     string           `json:"job"`
	Ends    float64          `json:"ends,omitzero"`   // unix time, in seconds
	Notice  float64          `json:"notice,omitzero"` // in seconds
	GPUs    cluster.GPUCount `json:"gpus,omitzero"`
	Model   string           `json:"model,omitzero"`
	Renewed Renewal          `json:"renewed,omitzero"`
}

// encode gives the answer about a job's lease.
func encode(job cluster.JobID, t Term, leased bool) []byte {
	out := told{Job: job.String()}
	if leased {
		out.Ends, out.Notice = float64(t.End)/1000, float64(t.Notice)/1000
		out.GPUs, out.Model, out.Renewed = t.GPUs, t.Model, t.Renewed
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil // numbers and words always have a form
	}
	return append(text, '\n')
}

// question parses {"job": "123_4"}.
func question(text []byte) (cluster.JobID, error) {
	var w struct {
		Job string `json:"job"`
	}
	if len(text) > Most {
		return cluster.JobID{}, fmt.Errorf("the question has %d bytes; %d is the most", len(text), Most)
	}
	if err := json.Unmarshal(bytes.TrimSpace(text), &w, json.RejectUnknownMembers(true)); err != nil {
		return cluster.JobID{}, fmt.Errorf(`the question cannot be read; write {"job": "123"}: %w`, err)
	}
	return cluster.ParseJobID(w.Job)
}

// longestWait is the maximum time until a job should ask for its lease again: leases may be recalled.
const longestWait = time.Minute

// tell answers a user's question for the lease of one of its jobs. again is when the next question is useful: at
// the decision on the renewal, and at least once in longestWait.
func (b *Inbox) tell(uid uint32, payload []byte) (answer []byte, again time.Duration, no *refusal) {
	job, err := question(payload)
	if err != nil {
		return nil, 0, &refusal{code: http.StatusBadRequest, what: err.Error()}
	}
	if no := b.owned(uid, job); no != nil {
		return nil, 0, no
	}
	now := b.Now()
	b.lock.Lock()
	on := b.heard[job]
	if wait := b.Every - now.Sub(on.asked); !on.asked.IsZero() && wait > 0 {
		b.lock.Unlock()
		return nil, 0, &refusal{code: http.StatusTooManyRequests, what: fmt.Sprintf("job %s has just asked; once in %s is enough", job, cluster.SpanOf(b.Every)), again: wait}
	}
	if b.heard == nil {
		b.heard = map[cluster.JobID]hearing{}
	}
	on.asked = now
	b.heard[job] = on
	b.lock.Unlock()
	t, leased := b.Lease(job)
	again = longestWait
	if leased {
		again = min(t.End.Add(-t.Notice).Sub(cluster.InstantOf(now)).Duration(), again)
	}
	return encode(job, t, leased), max(again, b.Every), nil
}

// Notices is a folder of files JOB.json with the lease of each running job, for nodes that do not reach the daemon. The
// folder belongs to the daemon; its files are readable for everybody.
type Notices struct {
	Folder string

	written map[cluster.JobID]Term
}

// Write brings the files up to date. It writes only files that change, and removes those of jobs that have no lease any
// more, also of an earlier process.
func (n *Notices) Write(leases map[cluster.JobID]Term) error {
	var wrong []error
	if n.written == nil {
		n.written = map[cluster.JobID]Term{}
		old, err := os.ReadDir(n.Folder)
		wrong = append(wrong, err)
		for _, file := range old {
			name, ok := strings.CutSuffix(file.Name(), ".json")
			if job, err := cluster.ParseJobID(name); ok && err == nil {
				n.written[job] = Term{}
			}
		}
	}
	for job := range n.written {
		if _, ok := leases[job]; ok {
			continue
		}
		if err := os.Remove(n.path(job)); err != nil && !errors.Is(err, os.ErrNotExist) {
			wrong = append(wrong, err)
			continue
		}
		delete(n.written, job)
	}
	for job, t := range leases {
		if n.written[job] == t {
			continue
		}
		if err := replace(n.path(job), encode(job, t, true)); err != nil {
			wrong = append(wrong, err)
			continue
		}
		n.written[job] = t
	}
	return errors.Join(wrong...)
}

func (n *Notices) path(job cluster.JobID) string {
	return filepath.Join(n.Folder, job.String()+".json")
}

// replace writes a file in one step.
func replace(path string, text []byte) error {
	beside := path + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(beside, text, 0o644); err != nil {
		return err
	}
	return os.Rename(beside, path)
}
