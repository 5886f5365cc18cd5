package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	gomail "github.com/wneessen/go-mail"

	"palimpsest/tenants"
)

const (
	smtpTimeout = 30 * time.Second
	maxSubject  = 200 // characters
)

// errRefused says that a mail is permanently rejected, so that a retry is useless.
var errRefused = errors.New("mail is permanently rejected")

// SMTP hands mails over to a server.
type SMTP struct {
	host    string
	from    mail.Address
	options []gomail.Option
}

// NewSMTP returns an SMTP for the server of a URL, smtp://user:password@host:587 or smtps://…:465, and the
// sender "Name <address>", which the URL's parameter from overrides. It sends a password over TLS only,
// unless the server is this machine. roots are the trusted certificates; nil means the system's. Errors never
// contain the URL.
func NewSMTP(rawURL, from string, roots *tls.Config) (*SMTP, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "smtp" && parsed.Scheme != "smtps" {
		return nil, errors.New("must be a URL such as smtp://user:password@host:587")
	}
	if named := parsed.Query().Get("from"); named != "" {
		from = named
	}
	sender, err := mail.ParseAddress(from)
	if err != nil || !isLine(from) {
		return nil, errors.New("needs a sender: ?from=palimpsest@example.com, or PALIMPSEST_MAIL_FROM")
	}
	options := []gomail.Option{gomail.WithTimeout(smtpTimeout)}
	if roots != nil {
		trusted := roots.Clone()
		trusted.ServerName = parsed.Hostname()
		options = append(options, gomail.WithTLSConfig(trusted))
	}
	port, policy := 587, gomail.TLSOpportunistic
	if parsed.Scheme == "smtps" {
		port, options = 465, append(options, gomail.WithSSL())
	}
	if user := parsed.User; user != nil {
		password, _ := user.Password()
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(user.Username()), gomail.WithPassword(password))
		if !isLoopback(parsed.Hostname()) {
			policy = gomail.TLSMandatory
		}
	}
	if text := parsed.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return nil, errors.New("port is no number")
		}
	}
	options = append(options, gomail.WithTLSPolicy(policy), gomail.WithPort(port))
	if _, err := gomail.NewClient(parsed.Hostname(), options...); err != nil {
		return nil, errors.New("is no server that mails can be sent to")
	}
	return &SMTP{host: parsed.Hostname(), from: *sender, options: options}, nil
}

// Send hands a mail over. The message has the mail's id, so that duplicates can be recognized.
func (s *SMTP) Send(ctx context.Context, id uuid.UUID, wanted tenants.Mail) error {
	message, err := s.message(id, wanted)
	if err != nil {
		return err
	}
	client, err := gomail.NewClient(s.host, s.options...)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	defer func() { _ = connection.Close() }()
	err = client.SendWithSMTPClient(connection, message)
	_ = connection.Quit() // the server has already accepted or rejected the mail
	if failure, is := errors.AsType[*gomail.SendError](err); is {
		// The error's own text would contain the recipient.
		answered := fmt.Errorf("mail server %s answered %d at step %d", s.host, failure.ErrorCode(), failure.Reason)
		if failure.Reason == gomail.ErrSMTPRcptTo && !failure.IsTemp() {
			return errors.Join(errRefused, answered)
		}
		return answered
	}
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	return nil
}

// Check connects to the server, starts TLS and logs in, without sending a mail. Errors do not contain the
// password.
func (s *SMTP) Check(ctx context.Context) error {
	client, err := gomail.NewClient(s.host, s.options...)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	_ = connection.Quit() // only the login matters
	_ = connection.Close()
	return nil
}

// message returns the message for a mail. It refuses line breaks in headers because they could inject further
// headers.
func (s *SMTP) message(id uuid.UUID, wanted tenants.Mail) (*gomail.Msg, error) {
	recipient, err := mail.ParseAddress(wanted.To)
	if err != nil || recipient.Address != wanted.To || !isLine(wanted.To) {
		return nil, fmt.Errorf("recipient is no single address: %w", errRefused)
	}
	if !isLine(wanted.Subject) || len([]rune(wanted.Subject)) > maxSubject {
		return nil, fmt.Errorf("subject is not one line of at most %d characters: %w", maxSubject, errRefused)
	}
	message := gomail.NewMsg()
	if err := errors.Join(message.From(s.from.String()), message.To(wanted.To)); err != nil {
		return nil, errors.Join(errRefused, errors.New("sender or recipient is no address"))
	}
	_, domain, _ := strings.Cut(s.from.Address, "@")
	message.SetMessageIDWithValue(id.String() + "@" + domain)
	message.SetDate()
	message.Subject(wanted.Subject)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834, section 5
	message.SetBodyString(gomail.TypeTextPlain, wanted.Text)
	return message, nil
}

// isLine reports whether a text is safe in a header.
func isLine(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
