package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/notices"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Notices is the outbox of notices to users.
type Notices interface {
	notices.Outbox
	// Rule sets the rules of the notices that are caused from now on; nil = none are.
	Rule(*store.NoticeRules)
	// Refused gives, once, why notices were not written.
	Refused() error
	// Counts gives the notices that need attention.
	Counts(ctx context.Context) (store.NoticeCounts, error)
}

// noticeEvery is how often the outbox is looked into.
const noticeEvery = 10 * time.Second

// noticeRules gives the rules of a configuration; nil = no notices.
func noticeRules(n *config.Notices) *store.NoticeRules {
	if !n.On() {
		return nil
	}
	quiet, _ := notice.ParseQuiet(n.Quiet) // the check refuses others
	return &store.NoticeRules{Kinds: n.Kinds, Channels: notices.Channels(n), Rate: n.Rate, Quiet: quiet, Zone: n.Place()}
}

// sender sends notices beside the rounds, which wait neither for mail servers nor for webhooks.
type sender struct {
	report *reporter
	busy   atomic.Bool
}

// send sends the notices that are due, if this daemon leads.
func (s *sender) send(ctx context.Context, c *config.Config, lead *Leadership) {
	if lead == nil || !c.Notices.On() || !s.busy.CompareAndSwap(false, true) {
		return
	}
	defer s.busy.Store(false)
	leading, cancel := acting(ctx, lead)
	defer cancel()
	sent, err := sendAll(leading, c, lead)
	if leading.Err() != nil {
		return // the next leader goes on
	}
	s.report.about("notices", errors.Join(err, lead.Notices.Refused()))
	if sent > 0 {
		s.report.log.Debug().Int("notices", sent).Msg("notices sent")
	}
	if counts, err := lead.Notices.Counts(leading); err == nil {
		s.report.meter.Notices(counts.Waiting, counts.Dead)
	}
}

// sendAll sends the notices that are due, and counts them. A panic is an error.
func sendAll(ctx context.Context, c *config.Config, lead *Leadership) (sent int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = loop.BreakdownOf(cause)
		}
	}()
	err = notices.Send(ctx, c, lead.Notices, func(_ string, err error) {
		if err == nil {
			sent++
		}
	})
	return sent, err
}
