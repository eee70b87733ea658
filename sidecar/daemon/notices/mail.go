package notices

import (
	"context"
	"errors"
	"fmt"
	"net"
	address "net/mail"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/slurm/certs"
	"github.com/fairlease/fairlease/sidecar/store"
)

// mailer brings letters to a mail server, over one connection.
type mailer struct {
	by     *config.Mail
	client *mail.Client
	server *smtp.Client // nil = not connected
}

func newMailer(by *config.Mail) (*mailer, error) {
	m := &mailer{by: by}
	host, text, err := net.SplitHostPort(by.Server)
	port, err2 := strconv.Atoi(text)
	trust, err3 := certs.Files{CAFile: by.CAFile, ServerName: host}.Load()
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	options := []mail.Option{mail.WithPort(port), mail.WithTimeout(patience), mail.WithTLSConfig(trust), mail.WithTLSPolicy(mail.TLSMandatory)}
	switch by.TLS {
	case config.NoTLS:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	case config.TLSOnly:
		options = append(options, mail.WithSSL())
	}
	if by.User != "" {
		password, err := secret(by.PasswordFile)
		if err != nil {
			return nil, err
		}
		how := mail.SMTPAuthAutoDiscover
		if by.TLS == config.NoTLS { // on this host only
			how = mail.SMTPAuthPlainNoEnc
		}
		options = append(options, mail.WithSMTPAuth(how), mail.WithUsername(by.User), mail.WithPassword(password))
	}
	m.client, err = mail.NewClient(host, options...)
	return m, err
}

func (m *mailer) carry(ctx context.Context, n *store.Notice, l *words) error {
	letter, err := m.letter(n, l)
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	if m.server == nil {
		if m.server, err = m.client.DialToSMTPClientWithContext(ctx); err != nil {
			return fmt.Errorf("%w: %w", errAway, err)
		}
	}
	defer context.AfterFunc(ctx, func() { m.server.Text.Close() })() // Close would wait for the server's answer
	err = m.client.SendWithSMTPClient(m.server, letter)
	var refused *mail.SendError
	switch {
	case err == nil || letter.IsDelivered(): // later failures are no fault of this letter
		return nil
	case errors.As(err, &refused) && refused.ErrorCode() > 0:
		return fmt.Errorf("the mail server refuses it: %w", err)
	}
	return fmt.Errorf("%w: %w", errAway, err)
}

// letter gives a letter to the user of a notice, and to nobody else.
func (m *mailer) letter(n *store.Notice, l *words) (*mail.Msg, error) {
	to, err := notice.Address(m.by.To, n.User)
	if err != nil {
		return nil, err
	}
	from, err := address.ParseAddress(m.by.From)
	if err != nil {
		return nil, err
	}
	letter := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(letter.From(from.String()), letter.To(to)); err != nil {
		return nil, err
	}
	letter.Subject(l.subject)
	letter.SetDateWithValue(n.Created)
	letter.SetMessageIDWithValue(l.id + from.Address[strings.LastIndex(from.Address, "@"):])
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // no vacation message answers it
	letter.SetBodyString(mail.TypeTextPlain, l.body)
	return letter, nil
}

func (m *mailer) close() {
	if m.server != nil {
		_ = m.server.Quit() // the letters were sent
		m.server.Close()
	}
}
