package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Owner gives the user id of the owner of a running job; false if no such job runs.
type Owner func(cluster.JobID) (uid uint32, running bool)

// Inbox is the endpoints POST /v1/progress, which answers 202, and POST /v1/lease, which answers 200
// and the job's lease. Retry-After has the seconds until the next report or question is useful. Set
// the exported fields, then serve it.
type Inbox struct {
	Open  func(ctx context.Context, credential []byte) (uid uint32, payload []byte, err error)
	Owner Owner
	// Tokens takes tokens of auth/jwt; the body of such a request is the report itself. nil = none is taken.
	Tokens *Tokens
	// Number gives the user id of a user with a running job; false = none runs.
	Number func(user string) (uid uint32, running bool)
	// Lease gives the lease of a running job; false = it has none.
	Lease func(cluster.JobID) (Term, bool)
	Now   func() time.Time
	// Every is the minimum interval between two reports of a job, and between two of its reports
	// of a save; earlier ones are refused.
	Every time.Duration
	// AtOnce is the maximum number of credentials opened concurrently. A request that waits
	// longer than Patience must retry later.
	AtOnce   int
	Patience time.Duration

	once    sync.Once
	opening Openings
	lock    sync.Mutex
	latest  map[cluster.JobID]cluster.Progress // since the last Take
	heard   map[cluster.JobID]hearing          // of jobs that ran at the last Take, and later ones
	refused int
	blamed  map[uint32]int // invalid reports by user id, since the last Take
	shunned map[string]int // refused credentials by address, since the last Take
}

// hearing is when a job last reported, when it last reported a save, of how many steps, and when it last asked for its
// lease.
type hearing struct {
	any, save, asked time.Time
	saved            float64
}

// mostBlame is the maximum number of a user's invalid reports that are parsed between two Takes, and of an
// address's refused credentials that are opened without a pause. Valid reports are bounded by
// the user's running jobs, with one per job in each interval Every.
const mostBlame = 100

// Take gives the newest report of every job since the last call, by job, with the newest of its
// saves since then, and the number of refused reports. It forgets jobs that no longer run.
func (b *Inbox) Take() (reports []cluster.Progress, refused int) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for job := range b.heard {
		if _, running := b.Owner(job); !running {
			delete(b.heard, job)
			delete(b.latest, job)
		}
	}
	for _, r := range b.latest {
		reports = append(reports, r)
	}
	refused = b.refused
	b.latest, b.refused, b.blamed, b.shunned = nil, 0, nil, nil
	slices.SortFunc(reports, func(x, y cluster.Progress) int { return x.Job.Compare(y.Job) })
	return reports, refused
}

// refusal is a negative answer to a job.
type refusal struct {
	code  int
	what  string
	again time.Duration // when it may retry; 0 = never with this report
}

// mostConnections is the maximum number of open connections; reports of ten thousand jobs, one
// per minute, need about ten.
const mostConnections = 256

// Door gives the listener for reports.
func (b *Inbox) Door(l net.Listener) *Door { return &Door{Listener: l, Most: mostConnections} }

// Server gives a server of the inbox with short timeouts: a report is small, and arrives at once.
func (b *Inbox) Server() *http.Server {
	return &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10*time.Second + b.Patience, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10}
}

func (b *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, again, no := b.serve(r)
	if no == nil {
		w.Header().Set("Retry-After", seconds(again))
		if answer == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // the job asks again
		return
	}
	b.lock.Lock()
	b.refused++
	b.lock.Unlock()
	if no.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	if no.again > 0 {
		w.Header().Set("Retry-After", seconds(no.again))
	}
	http.Error(w, no.what, no.code)
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(max(int64((d+time.Second-1)/time.Second), 1), 10)
}

// serve handles a request. answer is nil if there is nothing to say.
func (b *Inbox) serve(r *http.Request) (answer []byte, again time.Duration, no *refusal) {
	asks := r.URL.Path == "/v1/lease" && b.Lease != nil
	if !asks && r.URL.Path != "/v1/progress" {
		return nil, 0, &refusal{code: http.StatusNotFound, what: "progress is reported to /v1/progress; a job asks for its lease at /v1/lease"}
	}
	if r.Method != http.MethodPost {
		return nil, 0, &refusal{code: http.StatusMethodNotAllowed, what: "use POST: the body is a credential, or a report beside a token"}
	}
	credential, err := io.ReadAll(io.LimitReader(r.Body, 4*Most+1))
	switch {
	case err != nil:
		return nil, 0, &refusal{code: http.StatusBadRequest, what: "the report did not arrive whole"}
	case len(credential) > 4*Most:
		return nil, 0, &refusal{code: http.StatusRequestEntityTooLarge, what: fmt.Sprintf("the report is too long: %d bytes are the most", 4*Most)}
	}
	var uid uint32
	payload := credential
	if b.Tokens.Has(r) {
		uid, no = b.known(r)
	} else {
		uid, payload, no = b.open(r.Context(), host(r.RemoteAddr), credential)
	}
	if no != nil {
		return nil, 0, no
	}
	if no := b.tired(uid); no != nil {
		return nil, 0, no
	}
	if asks {
		answer, again, no = b.tell(uid, payload)
	} else {
		again, no = b.Every, b.take(uid, payload)
	}
	if no != nil && no.code != http.StatusNotFound { // the job may have just started
		b.lock.Lock()
		defer b.lock.Unlock()
		if b.blamed == nil {
			b.blamed = map[uint32]int{}
		}
		b.blamed[uid]++
	}
	return answer, again, no
}

// tired refuses to parse reports of a user with too many invalid ones.
func (b *Inbox) tired(uid uint32) *refusal {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.blamed[uid] < mostBlame {
		return nil
	}
	return &refusal{code: http.StatusTooManyRequests, what: fmt.Sprintf("%d reports of user %d have been refused; those to come are not looked at for a while", mostBlame, uid), again: b.Every}
}

// take keeps the report in a user's credential, if that user owns the job.
func (b *Inbox) take(uid uint32, payload []byte) *refusal {
	report, saved, err := Parse(payload, "")
	if err != nil {
		return &refusal{code: http.StatusBadRequest, what: err.Error()}
	}
	if no := b.owned(uid, report.Job); no != nil {
		return no
	}
	return b.keep(report, saved)
}

// owned refuses a user's request about a job that does not run, or belongs to another user.
func (b *Inbox) owned(uid uint32, job cluster.JobID) *refusal {
	owner, running := b.Owner(job)
	switch {
	case !running:
		return &refusal{code: http.StatusNotFound, what: fmt.Sprintf("job %s is not known to run (a job is known some seconds after its start)", job), again: b.Every}
	case owner != uid:
		return &refusal{code: http.StatusForbidden, what: fmt.Sprintf("job %s is not a job of user %d", job, uid)}
	}
	return nil
}

// shun counts a refused credential from an address, and tells whether it has too many: their author is unknown.
func (b *Inbox) shun(address string) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.shunned == nil {
		b.shunned = map[string]int{}
	}
	b.shunned[address]++
	return b.shunned[address] > mostBlame
}

// pace is the minimum time between two credentials from an address with too many refused ones. All of them are still opened, in
// turn, since other users report from there: as many as connections may be open are opened within Patience.
const pace = 10 * time.Millisecond

// open opens a credential from an address when it is its turn.
func (b *Inbox) open(ctx context.Context, from string, credential []byte) (uint32, []byte, *refusal) {
	b.once.Do(func() { b.opening.Most, b.opening.Each = max(b.AtOnce, 1), max(b.AtOnce-1, 1) })
	ctx, cancel := context.WithTimeout(ctx, b.Patience)
	defer cancel()
	leave, gone, ok := b.opening.Enter(ctx, from)
	if !ok {
		return 0, nil, &refusal{code: http.StatusServiceUnavailable, what: "too many reports at once; come again", again: b.Every}
	}
	uid, payload, err := b.Open(ctx, credential)
	leave()
	var refused *Refused
	if errors.As(err, &refused) && b.shun(from) {
		time.AfterFunc(pace, gone)
	} else {
		gone()
	}
	switch {
	case refused != nil:
		return 0, nil, &refusal{code: http.StatusUnauthorized, what: err.Error() + `; the body is what munge makes of the report: munge | curl --data-binary @- …`}
	case err != nil:
		return 0, nil, &refusal{code: http.StatusServiceUnavailable, what: "munged cannot be asked here; come again", again: b.Every}
	}
	return uid, payload, nil
}

// known gives the user of a request's token.
func (b *Inbox) known(r *http.Request) (uint32, *refusal) {
	if b.Tokens == nil {
		return 0, &refusal{code: http.StatusUnauthorized, what: "this daemon takes no tokens of auth/jwt (slurm.jwt)"}
	}
	user, err := b.Tokens.User(r, false)
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		return 0, &refusal{code: http.StatusUnauthorized, what: err.Error(), again: max(b.Every, keepRefused)}
	case errors.Is(err, ErrBusy):
		return 0, &refusal{code: http.StatusServiceUnavailable, what: err.Error(), again: max(b.Every, time.Minute)}
	case err != nil:
		return 0, &refusal{code: http.StatusServiceUnavailable, what: "Slurm cannot be asked for tokens here; come again", again: b.Every}
	}
	uid, running := b.Number(user)
	if !running {
		return 0, &refusal{code: http.StatusNotFound, what: fmt.Sprintf("no job of %s is known to run (a job is known some seconds after its start)", user), again: b.Every}
	}
	return uid, nil
}

// keep replaces the job's last report, and keeps the job's last save with it.
func (b *Inbox) keep(r cluster.Progress, saved bool) *refusal {
	now := b.Now()
	r.At = cluster.InstantOf(now)
	b.lock.Lock()
	defer b.lock.Unlock()
	on := b.heard[r.Job]
	last := on.any
	if saved { // a report without a save does not delay it
		last = on.save
	}
	if !last.IsZero() && now.Sub(last) < b.Every {
		return &refusal{code: http.StatusTooManyRequests, what: fmt.Sprintf("job %s has just reported; once in %s is enough", r.Job, cluster.SpanOf(b.Every)), again: b.Every - now.Sub(last)}
	}
	if saved && r.Steps < on.saved {
		return &refusal{code: http.StatusConflict, what: backwards(r.Steps, on.saved)}
	}
	if b.heard == nil {
		b.heard = map[cluster.JobID]hearing{}
	}
	if b.latest == nil {
		b.latest = map[cluster.JobID]cluster.Progress{}
	}
	on.any, r.Saved = now, b.latest[r.Job].Saved
	if saved {
		on.save, on.saved, r.Saved = now, r.Steps, r.At
	} else {
		r.Took = b.latest[r.Job].Took
	}
	b.heard[r.Job], b.latest[r.Job] = on, r
	return nil
}
