package trace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Without show_duplicates newer versions give the last attempt only; without
// disable_truncate_usage_time all give only the run time since start_time.
const slurmdbPath = "/slurmdb/v0.0.42/jobs?show_duplicates=true&skip_steps=true&disable_truncate_usage_time=true&start_time=2026-01-01"

// SlurmdbCommand is the shell command for the same data from slurmrestd.
const SlurmdbCommand = "curl --unix-socket /run/slurmrestd/slurmrestd.socket 'http://localhost" + slurmdbPath + "'"

const slurmdbRequest = "GET " + slurmdbPath + ", or sacct -a -D --json -S 2026-01-01"

// slurmdbJob is one record of slurmdbd's history. Numbers are plain, texts or {set, infinite,
// number}, depending on the version.
type slurmdbJob struct {
	ID    number `json:"job_id"`
	Array struct {
		ID   number `json:"job_id"`
		Task number `json:"task_id"`
	} `json:"array"`
	Het struct {
		ID     number `json:"job_id"`
		Offset number `json:"job_offset"`
	} `json:"het"`
	Name        string `json:"name"`
	User        string `json:"user"`
	Account     string `json:"account"`
	Association struct {
		User string `json:"user"`
	} `json:"association"`
	State    states `json:"state"`
	Restarts number `json:"restart_cnt"`
	Time     *struct {
		Submission number `json:"submission"`
		Start      number `json:"start"`
		End        number `json:"end"`
		Elapsed    number `json:"elapsed"`
		Limit      number `json:"limit"` // minutes
	} `json:"time"`
	TRES struct {
		Allocated []slurmdbTres `json:"allocated"`
		Requested []slurmdbTres `json:"requested"`
	} `json:"tres"`
	Live jsontext.Value `json:"job_state"` // in slurmctld's records, not in slurmdbd's
}

type slurmdbTres struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Count number `json:"count"`
}

// readSlurmdb reads {"jobs": […], …} from slurmrestd or sacct --json.
func readSlurmdb(r *records, c *collector) (*Trace, error) {
	if tok, err := r.dec.ReadToken(); err != nil {
		return nil, r.fault(err)
	} else if tok.Kind() != '{' {
		return nil, fmt.Errorf("%s: line 1: this is not what slurmrestd answers: take %s", r.name, slurmdbRequest)
	}
	var all []attempt
	found, complaint := false, ""
	for r.dec.PeekKind() != '}' {
		key, err := r.dec.ReadToken()
		if err != nil {
			return nil, r.fault(err)
		}
		name := key.String() // the decoder reuses the token
		switch {
		case name == "jobs" && r.dec.PeekKind() == '[':
			found = true
			all, err = slurmdbList(r, c, all)
		case name == "errors":
			var raw jsontext.Value
			if raw, err = r.dec.ReadValue(); err == nil {
				var list []jsontext.Value
				if json.Unmarshal(raw, &list, lenient) == nil && len(list) > 0 {
					complaint = string(list[0])
				}
			} else {
				err = r.fault(err)
			}
		default:
			if err = r.dec.SkipValue(); err != nil {
				err = r.fault(err)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.fault(err)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if complaint != "" {
		return nil, fmt.Errorf("%s: slurmrestd reports an error, so the list may not be whole: %.300s: ask it again", r.name, complaint)
	}
	if !found {
		return nil, fmt.Errorf("%s: there is no list of jobs in it: take %s", r.name, slurmdbRequest)
	}
	join(all, c, r.name)
	return c.finish(true), nil
}

func slurmdbList(r *records, c *collector, all []attempt) ([]attempt, error) {
	n := 0
	err := r.list(func(raw jsontext.Value, line int) error {
		n++
		c.row()
		var s slurmdbJob
		err := json.Unmarshal(raw, &s, lenient)
		if err == nil && s.Time == nil && s.Live != nil {
			return fmt.Errorf("%s: line %d: these are slurmctld's current jobs, not the history: take %s", r.name, line, slurmdbRequest)
		}
		var a attempt
		if err == nil {
			a, err = s.attempt()
		}
		if err != nil {
			c.bad(r.name, line, "record %d, job %d: %v", n, s.ID.n, unfit(err))
			return nil
		}
		a.line = line
		a.job.Name, a.job.User, a.job.Tenant = c.once(a.job.Name), c.once(a.job.User), c.once(a.job.Tenant)
		all = append(all, a)
		return nil
	})
	return all, err
}

func (s *slurmdbJob) attempt() (attempt, error) {
	a := attempt{restarts: -1}
	if s.Restarts.set {
		a.restarts = int(min(s.Restarts.n, mostCount))
	}
	if s.ID.n <= 0 {
		return a, errors.New("no job_id")
	}
	if s.Time == nil || s.Time.Submission.n <= 0 {
		return a, errors.New("no time.submission")
	}
	j := &a.job
	j.ID = strconv.FormatInt(s.ID.n, 10)
	if s.Array.ID.n > 0 && s.Array.Task.set {
		j.ID = fmt.Sprintf("%d_%d", s.Array.ID.n, s.Array.Task.n)
	}
	if s.Het.ID.n > 0 && s.Het.Offset.set {
		j.ID = fmt.Sprintf("%d+%d", s.Het.ID.n, s.Het.Offset.n)
	}
	j.Name, j.User, j.Tenant = s.Name, s.User, s.Account
	if j.User == "" {
		j.User = s.Association.User
	}
	a.state = s.State.one()
	var errs [5]error
	j.Submit, errs[0] = since1970(s.Time.Submission)
	a.start, errs[1] = since1970(s.Time.Start)
	j.Runs, errs[2] = s.elapsed()
	if s.Time.Limit.set {
		j.Limit, errs[3] = length(s.Time.Limit.n, cluster.Minute)
	}
	errs[4] = s.size(j)
	return a, first(errs[:])
}

// elapsed gives the run time: Slurm's own count if available, since it excludes suspended time.
func (s *slurmdbJob) elapsed() (cluster.Span, error) {
	t := s.Time
	if t.End.n > 0 && t.Start.n > t.End.n && t.Elapsed.n != 0 {
		return 0, fmt.Errorf("it ends %d s before it starts and still ran", t.Start.n-t.End.n)
	}
	if t.Elapsed.set {
		return length(t.Elapsed.n, cluster.Second)
	}
	if t.Start.n <= 0 || t.End.n <= 0 {
		return 0, nil
	}
	if t.End.n < t.Start.n {
		return 0, fmt.Errorf("it ends %d s before it starts", t.Start.n-t.End.n)
	}
	return length(t.End.n-t.Start.n, cluster.Second)
}

func length(n int64, unit cluster.Span) (cluster.Span, error) {
	if n < 0 {
		return 0, errors.New("a negative time")
	}
	if n > int64(longest/unit) {
		return 0, errors.New("a time of more than 100 years")
	}
	return cluster.Span(n) * unit, nil
}

func since1970(n number) (cluster.Span, error) {
	if n.n < 0 || n.n > 230*366*86400 {
		return 0, errors.New("a time outside 1970 to 2200")
	}
	return cluster.Span(n.n) * cluster.Second, nil
}

// size sets the job's allocation, or its request if it never had one.
func (s *slurmdbJob) size(j *Job) error {
	list := s.TRES.Allocated
	if len(list) == 0 {
		list = s.TRES.Requested
	}
	var r tres
	for _, t := range list {
		name := strings.TrimSuffix(t.Type+"/"+t.Name, "/")
		if strings.HasPrefix(name, "gres/gpu") && (t.Count.n < 0 || t.Count.n > mostGPUs) {
			return fmt.Errorf("%d of %s", t.Count.n, name)
		}
		r.add(name, int(max(t.Count.n, 0))) // energy is -2 if it is not measured
	}
	r.into(j)
	return nil
}

// states is a state: a text, a list of flags or {"current": list, …}.
type states []string

// one gives the decisive state: REQUEUED is a flag of PENDING.
func (s states) one() string {
	if len(s) == 0 {
		return ""
	}
	state := s[0]
	for _, flag := range s {
		if strings.EqualFold(flag, "REQUEUED") {
			state = flag
		}
	}
	return strings.ToUpper(state)
}

// UnmarshalJSON reads any of the three forms.
func (s *states) UnmarshalJSON(b []byte) error {
	*s = nil
	switch b[0] {
	case 'n':
		return nil
	case '"':
		*s = states{""}
		return json.Unmarshal(b, &(*s)[0], lenient)
	case '{':
		var outer struct {
			Current states `json:"current"`
		}
		err := json.Unmarshal(b, &outer, lenient)
		*s = outer.Current
		return err
	}
	return json.Unmarshal(b, (*[]string)(s), lenient)
}

// number is a whole number; unset if it is null, infinite or marked as unset.
type number struct {
	set bool
	n   int64
}

// UnmarshalJSON reads a plain number, one in a text, and {set, infinite, number}.
func (v *number) UnmarshalJSON(b []byte) error {
	*v = number{}
	switch b[0] {
	case 'n':
		return nil
	case '"':
		var text string
		if err := json.Unmarshal(b, &text, lenient); err != nil || none(text) {
			return err
		}
		b = []byte(text)
	case '{':
		outer := struct {
			Set      *bool  `json:"set"`
			Infinite bool   `json:"infinite"`
			Number   number `json:"number"`
		}{}
		if err := json.Unmarshal(b, &outer, lenient); err != nil {
			return err
		}
		if !outer.Infinite && (outer.Set == nil || *outer.Set) {
			*v = outer.Number
		}
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1<<52 {
		return fmt.Errorf("%.40q is no number", b)
	}
	*v = number{set: true, n: int64(f)}
	return nil
}
