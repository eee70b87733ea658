package slurm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// reply is the envelope of every answer of slurmrestd.
type reply struct {
	same       bool // HTTP 304: nothing newer than the requested update_time
	problems   []problem
	cluster    string // meta.slurm.cluster
	release    string // meta.slurm.release
	lastUpdate int64  // seconds since the epoch; 0 = unknown
}

// problem is an entry of errors[].
type problem struct {
	code        int
	text        string
	description string
	source      string
}

// readReply reads one JSON object to its end. It calls take for each member outside the envelope;
// take reads the value and returns true, or returns false.
func readReply(from io.Reader, take func(*reader, string) bool) (reply, error) {
	return newReader(from).reply(take)
}

func (r *reader) reply(take func(*reader, string) bool) (reply, error) {
	var rep reply
	if k := r.kind(); r.err == nil && k != '{' {
		b := r.raw()
		if r.err == nil {
			return rep, fmt.Errorf("the reply is not a JSON object but %.60q", b)
		}
		return rep, fmt.Errorf("the reply is no JSON: %w", r.err)
	}
	r.object(func(name string) {
		switch name {
		case "errors":
			rep.problems = readProblems(r)
		case "meta":
			rep.cluster, rep.release = readMeta(r)
		case "last_update":
			rep.lastUpdate = r.number().n
		default:
			if take == nil || !take(r, name) {
				r.skip()
			}
		}
	})
	if r.err != nil {
		return rep, fmt.Errorf("the reply makes no sense: %w", r.err)
	}
	return rep, nil
}

func readProblems(r *reader) []problem {
	var out []problem
	r.array(func() {
		var p problem
		r.object(func(name string) {
			switch name {
			case "error_number":
				p.code = int(r.number().n)
			case "error":
				p.text = r.text()
			case "description":
				p.description = r.text()
			case "source":
				p.source = r.text()
			default:
				r.skip()
			}
		})
		out = append(out, p)
	})
	return out
}

func readMeta(r *reader) (cluster, release string) {
	r.object(func(name string) {
		if name != "slurm" && name != "Slurm" {
			r.skip()
			return
		}
		r.object(func(name string) {
			switch name {
			case "cluster":
				cluster = r.text()
			case "release":
				release = r.text()
			default:
				r.skip()
			}
		})
	})
	return cluster, release
}

// Error is a request to Slurm that failed.
type Error struct {
	Doing string // "POST /slurm/v0.0.45/job/12" or a scontrol command
	HTTP  int    // 0 if there was no answer
	Code  int    // Slurm's own number, 0 = none
	From  string // the function in Slurm that failed, if known
	// Unknown is true if the change may have been made in spite of the error.
	Unknown bool
	Unheard bool // no answer
	Err     error
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Code != 0 {
		text = fmt.Sprintf("%s (Slurm error %d)", text, e.Code)
	}
	return e.Doing + ": " + text
}

func (e *Error) Unwrap() error { return e.Err }

// Slurm's codes for conditions that are no fault.
const (
	codeUnspecified     = -1
	CodeAuthentication  = 1007 // "Protocol authentication error": a wrong or expired token
	codeNoRight         = 2010 // "Access/permission denied"
	codeUnknownJob      = 2017
	codeInvalidNodes    = 2018 // a list of required nodes that is no part of a running job's
	codePending         = 2020 // "Job is pending execution" as the answer to a signal
	codeFinished        = 2021 // "Job/step already completing or completed"
	codeRequeueDisabled = 2037
	codeUnknownResv     = 2053
	codeResvInUse       = 2055
	codeDuplicateResv   = 2057
	codeNotPending      = 2073 // "Job is no longer pending execution"
	codeJobFinished     = 2084
	codeResvStarted     = 2104 // REST's answer to a start time for an existing reservation
)

func codeOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// judge turns an answer into an error, or nil. HTTP 200 with errors[] is an error; so is anything
// but the expected JSON.
func judge(doing string, res *http.Response, rep reply, decoding error) error {
	e := &Error{Doing: doing, HTTP: res.StatusCode}
	switch {
	case len(rep.problems) > 0 && rep.problems[0].code == CodeAuthentication:
		e.Code = CodeAuthentication
		e.Err = fmt.Errorf("slurmctld does not accept who we say we are: %s; where a token is used, renew the file named by slurm.token_file in fairlease.yaml; else see munge on both sides", rep.problems[0].words())
	case len(rep.problems) > 0:
		p := rep.problems[0]
		e.Code, e.From = p.code, p.source
		e.Err = errors.New(p.words())
		e.Unknown = p.code != codeNoRight // other refusals may come after the change
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusNetworkAuthenticationRequired:
		e.Err = fmt.Errorf("slurmrestd does not accept our token, or does not know us without one (HTTP %d); see slurm.token_file in fairlease.yaml", res.StatusCode)
	case res.StatusCode != http.StatusOK:
		e.Err = fmt.Errorf("slurmrestd answered HTTP %d", res.StatusCode)
		e.Unknown = res.StatusCode >= 500
	case decoding != nil:
		e.Err = decoding
		e.Unknown = true
	default:
		return nil
	}
	return e
}

func (p problem) words() string {
	switch {
	case p.description == "" || strings.Contains(p.text, p.description):
		return orSay(p.text, "an error without a name")
	case p.text == "" || strings.Contains(p.description, p.text):
		return p.description
	}
	return p.text + ": " + p.description
}

func orSay(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// refused reports whether the error is slurmctld's own refusal: it has processed the request.
// Codes below 2000 are about messages lost on the way.
func refused(code int) bool { return code >= 2000 }

// mayPass reports whether a read with this error is worth a retry.
func mayPass(err error) bool {
	var e *Error
	if !errors.As(err, &e) || denied(err) {
		return false
	}
	answered := e.HTTP != 0 && e.HTTP != http.StatusOK && e.HTTP < 500 && e.HTTP != http.StatusTooManyRequests
	return !answered && !refused(e.Code) && e.Code != codeUnspecified
}
