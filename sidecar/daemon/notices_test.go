package daemon

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/store"
)

// pile is an outbox that is asked in vain.
type pile struct {
	mu      sync.Mutex
	rules   *store.NoticeRules
	asked   []string // the channels, for each time
	takes   time.Duration
	refused error
	broken  bool
}

func (p *pile) Rule(r *store.NoticeRules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = r
}

func (p *pile) Due(ctx context.Context, channels []string, _ int) ([]store.Notice, error) {
	p.mu.Lock()
	p.asked = append(p.asked, strings.Join(channels, ","))
	takes, broken := p.takes, p.broken
	p.mu.Unlock()
	if broken {
		panic("the outbox broke down")
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

func (p *pile) Sent(context.Context, int64) error                               { return nil }
func (p *pile) Failed(context.Context, int64, string, time.Duration, int) error { return nil }
func (p *pile) Counts(context.Context) (store.NoticeCounts, error) {
	return store.NoticeCounts{Waiting: 3, Dead: 2}, nil
}

func (p *pile) Refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.refused
	p.refused = nil
	return err
}

func (p *pile) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

const mailing = "mode: act\nmetrics: {listen: ''}\nnotices: {kinds: [stop], rate: 3, quiet: '22:00-07:00', zone: UTC, mail: {server: 'localhost:25', from: a@example.org, to: '{user}@example.org'}}\n"

// The leader, and no other daemon, looks into the outbox every ten seconds. Rounds do not wait for that, and a failure is logged once.
func TestTheLeaderSendsNotices(t *testing.T) {
	dir, dir2 := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on, live := newShared(), newLive()
		live.submit("nlp", 3, 4)
		meter := metrics.New("test", time.Now)
		r := startAhead(t, on, live, dir, mailing, nil, meter)
		pass(30 * time.Second)
		standby := startBeside(t, "b", on, live, dir2, strings.ReplaceAll(mailing, "mail:", "webhook: {url: 'https://h/x', secret_file: /s}, mail:"))
		p := &on.notices
		was := p.times()
		pass(time.Minute)
		if n := p.times() - was; n < 5 || n > 7 || slices.Contains(p.asked, store.Webhook) {
			t.Errorf("in a minute the outbox was asked %d times: %q", n, p.asked)
		}
		if p.rules == nil || p.rules.Rate != 3 || !slices.Equal(p.rules.Channels, []string{store.Mail}) || !slices.Equal(p.rules.Kinds, []string{"stop"}) {
			t.Errorf("the rules are %+v", p.rules)
		}
		if _, quiet := p.rules.Quiet.End(time.Date(2026, 3, 2, 23, 0, 0, 0, p.rules.Zone)); !quiet {
			t.Error("there are no quiet hours")
		}
		p.mu.Lock()
		p.takes = 10 * time.Minute
		p.mu.Unlock()
		pass(11 * time.Second)
		was, rounds := p.times(), live.rounds()
		pass(time.Minute)
		if p.times() > was+1 || live.rounds() < rounds+5 {
			t.Errorf("while the outbox takes its time, it was asked %d times, and there were %d rounds", p.times()-was, live.rounds()-rounds)
		}
		p.mu.Lock()
		p.takes, p.broken = 0, true
		p.mu.Unlock()
		pass(15 * time.Minute)
		lines := r.log.with("notices")
		if lines = slices.DeleteFunc(lines, func(line map[string]any) bool { return line["level"] != "warn" }); len(lines) != 1 || !strings.Contains(lines[0]["error"].(string), "broke down") {
			t.Errorf("%v", lines)
		}
		p.mu.Lock()
		p.broken = false
		p.mu.Unlock()
		r.end(t)
		until(t, "the other daemon sends", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.Contains(p.asked, store.Webhook)
		})
		standby.end(t)
	})
}

// Without kinds of notices nothing is caused or sent.
func TestNoNotices(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on := newShared()
		on.notices.rules = &store.NoticeRules{}
		r := start(t, "a", on, newLive(), dir, strings.Replace(mailing, "[stop]", "[]", 1))
		pass(time.Minute)
		if n := on.notices.times(); n > 0 || on.notices.rules != nil {
			t.Errorf("the outbox was asked %d times, and its rules are %+v", n, on.notices.rules)
		}
		r.end(t)
	})
}
