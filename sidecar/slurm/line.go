package slurm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// post is a change: the body of a POST to path.
type post struct {
	path string
	body change
}

// line is a connection for pipelined changes: all are written, then all answers are read.
// net/http sends one at a time and wakes three goroutines for it; for the ten thousand gates of a
// first round that was most of our CPU time. A line is for one goroutine.
type line struct {
	rest *rest
	conn net.Conn // nil = not connected
	in   *bufio.Reader
	said *reader
}

// together is the maximum number of changes in flight on a line. slurmrestd still carries them
// out one after another.
const together = 16

// put sends the changes, none of them twice, and gives an error for each, like rest.put.
// slurmrestd closes a connection with the answer to a failed request. Later requests were then
// ignored (RFC 9112, section 9.6), and are sent over a new connection.
func (l *line) put(ctx context.Context, posts []post) []error {
	ctx, cancel := context.WithTimeout(ctx, l.rest.cfg.Timeout)
	defer cancel()
	errs := make([]error, 0, len(posts))
	for len(errs) < len(posts) {
		errs = append(errs, l.ask(ctx, posts[len(errs):])...)
	}
	for i, err := range errs {
		if l.rest.token.file != "" && denied(err) { // nothing was done
			errs[i] = l.rest.put(ctx, http.MethodPost, posts[i].path, posts[i].body, nil)
		}
	}
	return errs
}

// ask sends the changes and gives their results, up to the answer with which the server closed
// the connection; of all of them if it broke.
func (l *line) ask(ctx context.Context, posts []post) []error {
	text, err := l.rest.requests(posts)
	if err != nil {
		return failed(posts, err, false)
	}
	if l.conn == nil {
		if l.conn, err = l.rest.dial(ctx); err != nil {
			l.conn = nil // not a typed nil of some dialer
			return failed(posts, l.rest.unreachable(err), false)
		}
		l.in = bufio.NewReader(l.conn)
	}
	conn := l.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	errs, err := l.exchange(text, posts)
	if !stop() || err != nil {
		l.hangUp()
	}
	if left := posts[len(errs):]; err != nil && !errors.Is(err, errLast) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		errs = append(errs, failed(left, l.rest.unreachable(err), true)...)
	}
	return errs
}

// errLast says that the server closed the connection after its last answer.
var errLast = errors.New("the last answer on this connection")

// exchange writes the requests and reads as many answers as arrive.
func (l *line) exchange(text []byte, posts []post) ([]error, error) {
	if _, err := l.conn.Write(text); err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range posts {
		res, err := http.ReadResponse(l.in, nil)
		for err == nil && res.StatusCode < http.StatusOK { // an interim answer
			res, err = http.ReadResponse(l.in, nil)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if err != nil {
			return errs, err
		}
		l.said.reset(io.LimitReader(res.Body, replyMax))
		rep, decoding := l.said.reply(nil)
		judged := judge("POST "+p.path, res, rep, decoding)
		errs = append(errs, judged)
		if decoding != nil && !denied(judged) { // an authentication error may be plain text
			return errs, decoding
		}
		if err := res.Body.Close(); err != nil { // reads what follows the JSON
			return errs, err
		}
		if res.Close {
			return errs, errLast
		}
	}
	return errs, nil
}

// hangUp closes the connection.
func (l *line) hangUp() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

func failed(posts []post, err error, unknown bool) []error {
	errs := make([]error, 0, len(posts))
	for _, p := range posts {
		errs = append(errs, &Error{Doing: "POST " + p.path, Err: err, Unknown: unknown, Unheard: true})
	}
	return errs
}

// requests encodes the changes in HTTP.
func (r *rest) requests(posts []post) ([]byte, error) {
	token, err := r.token.current()
	if err != nil {
		return nil, err
	}
	head := r.head(token)
	head.Set("Content-Type", "application/json")
	var fields, text bytes.Buffer
	if err := head.Write(&fields); err != nil {
		return nil, err
	}
	for _, p := range posts {
		body, err := json.Marshal(p.body)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", p.path, strings.TrimPrefix(r.base, "http://"), len(body))
		text.Write(fields.Bytes())
		text.WriteString("\r\n")
		text.Write(body)
	}
	return text.Bytes(), nil
}
