// Package notices sends what is in the outbox of notices, by mail and to a webhook.
//
// A notice that was sent is noted after that. A daemon that dies in between leaves it in the outbox, and the next one sends it again, with the
// same id: mail programs and the webhook's server can tell that by Message-ID and Idempotency-Key.
package notices

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Outbox is what the journal knows of notices.
type Outbox interface {
	// Due gives notices whose time has come, for some channels.
	Due(ctx context.Context, channels []string, limit int) ([]store.Notice, error)
	// Sent and Failed note what became of a notice. A failed one is tried again, at most some times.
	Sent(ctx context.Context, id int64) error
	Failed(ctx context.Context, id int64, why string, again time.Duration, most int) error
}

const (
	// batch is how many notices of a channel are sent at once.
	batch = 100
	// tries is how often a notice is tried before it is given up: for about seven hours.
	tries = 12
	// longest is the longest time between two tries.
	longest = time.Hour
	// stale is the age from which a notice is no news. It exceeds the longest quiet hours.
	stale = 48 * time.Hour
	// patience is how long a server may take for a letter.
	patience = 20 * time.Second
)

// errFinal is in errors that no other try mends.
var errFinal = errors.New("it will not be tried again")

// errAway is in errors of a server that does not answer: the other notices wait, too.
var errAway = errors.New("the server does not answer")

// carrier brings letters to a server.
type carrier interface {
	carry(ctx context.Context, n *store.Notice, l *words) error
	close()
}

// words are a letter.
type words struct{ id, subject, body string }

// Channels gives the ways in which a site sends notices.
func Channels(n *config.Notices) (out []string) {
	if n.Mail.Server != "" {
		out = append(out, store.Mail)
	}
	if n.Webhook.URL != "" {
		out = append(out, store.Webhook)
	}
	return out
}

// Send sends the notices that are due. tell is told of each, with its error. The error says why notices wait.
func Send(ctx context.Context, c *config.Config, box Outbox, tell func(channel string, err error)) error {
	var problems []error
	for _, channel := range Channels(&c.Notices) {
		if err := send(ctx, c, box, channel, tell); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", channel, err))
		}
	}
	return errors.Join(problems...)
}

// send sends the notices of a channel.
func send(ctx context.Context, c *config.Config, box Outbox, channel string, tell func(string, error)) error {
	due, err := box.Due(ctx, []string{channel}, batch)
	if err != nil || len(due) == 0 {
		return err
	}
	var by carrier
	if channel == store.Mail {
		by, err = newMailer(&c.Notices.Mail)
	} else {
		by, err = newPoster(&c.Notices.Webhook)
	}
	if err != nil {
		return err // a file is missing: nothing was tried
	}
	defer by.close()
	var last error
	for i := range due {
		n := &due[i]
		l := &words{id: idOf(n)}
		l.subject, l.body, err = config.Letters(c).Write(n.Kind, n.User, n.Facts)
		switch {
		case err != nil:
			err = fmt.Errorf("%w: %w", errFinal, err)
		case time.Since(n.Created) > stale:
			err = fmt.Errorf("%w: it is older than two days", errFinal)
		default:
			err = by.carry(ctx, n, l)
		}
		if ctx.Err() != nil { // whether it was sent is not known
			return ctx.Err()
		}
		tell(channel, err)
		if err == nil {
			if err := box.Sent(ctx, n.ID); err != nil {
				return err
			}
			continue
		}
		last = err
		most := tries
		if errors.Is(err, errFinal) {
			most = 1
		}
		if err := box.Failed(ctx, n.ID, err.Error(), again(n.Tries), most); err != nil {
			return err
		}
		if errors.Is(err, errAway) {
			break
		}
	}
	return last
}

// again is the time until the next try: it doubles with each.
func again(tried int) time.Duration {
	return min(time.Minute<<min(tried, 10), longest)
}

// idOf tells a notice apart from all others, of other journals too. It stays the same in all tries.
func idOf(n *store.Notice) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q %d", n.User, n.Kind, n.Job, n.Event, n.Channel, n.Created.UnixMicro()))
	return n.Kind + "." + hex.EncodeToString(h[:12])
}
