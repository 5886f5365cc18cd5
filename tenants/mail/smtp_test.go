package mail_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// server is a real SMTP server that keeps what it takes.
type server struct {
	address string
	roots   *tls.Config // that a client trusts

	mu     sync.Mutex
	taken  []string
	refuse *smtp.SMTPError // what it answers to recipients; nil: it takes them
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	backend := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	certified := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(certified.Close)
	backend.TLSConfig = &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	s.roots = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	backend.ErrorLog = discard{}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = backend.Serve(listener) }()
	t.Cleanup(func() { _ = backend.Close(); <-done })
	return s
}

func (s *server) answer(refusal *smtp.SMTPError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refusal
}

func (s *server) mails() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

type session struct {
	server *server
	knows  bool
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.knows = user == "palimpsest" && password == "p@ss"; !s.knows {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if !s.knows {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(string, *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refuse != nil {
		return s.server.refuse
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.taken = append(s.server.taken, string(content))
	return err
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// outbox is an outbox on a real database and a real server, with a clock of its own.
type outbox struct {
	*mail.Outbox

	db       *dbtest.Database
	server   *server
	log      *bytes.Buffer
	outcomes []string
	now      time.Time
}

func setup(t *testing.T, isLocal bool) *outbox {
	t.Helper()
	o := &outbox{db: dbtest.New(t), server: serve(t), log: &bytes.Buffer{}, now: time.Now().Add(time.Minute)}
	config := mail.Config{
		Store: o.db.DB.Mail, Answer: func(context.Context) error { return nil }, Observe: func(outcome string) { o.outcomes = append(o.outcomes, outcome) },
		Log: slog.New(slog.NewTextHandler(o.log, nil)), Now: func() time.Time { return o.now },
	}
	if !isLocal {
		sender, err := mail.NewSMTP("smtp://palimpsest:p%40ss@"+o.server.address+"?from=Palimpsest+%3Cno-reply@example.com%3E", "", o.server.roots)
		if err != nil {
			t.Fatal(err)
		}
		config.Sender = sender
	}
	o.Outbox = mail.NewOutbox(config)
	return o
}

func (o *outbox) queue(t *testing.T, wanted tenants.Mail) {
	t.Helper()
	if err := o.db.DB.Mail.QueueMail(t.Context(), nil, wanted); err != nil {
		t.Fatal(err)
	}
}

// pass sends what waits, which comes in no order.
func (o *outbox) pass(t *testing.T, outcomes ...string) {
	t.Helper()
	o.outcomes = nil
	err := o.Pass(t.Context())
	slices.Sort(o.outcomes)
	slices.Sort(outcomes)
	if err != nil || !slices.Equal(o.outcomes, outcomes) {
		t.Fatalf("outcomes %v, want %v (%v)\n%s", o.outcomes, outcomes, err, o.log)
	}
}

func (o *outbox) waiting(t *testing.T) int {
	t.Helper()
	mails, err := o.db.DB.Mail.Mails(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(mails)
}

func hello() tenants.Mail {
	return tenants.Mail{To: "ada@example.com", Subject: "Grüße", Text: "Open https://example.com/reset/geheim\n"}
}

func TestMailIsSentOnceAndForgotten(t *testing.T) {
	t.Parallel()
	o := setup(t, false)
	o.queue(t, hello())
	o.pass(t, mail.Sent)
	o.pass(t) // S28
	taken := o.server.mails()
	if len(taken) != 1 || o.waiting(t) != 0 {
		t.Fatalf("the server took %d mails, %d wait", len(taken), o.waiting(t))
	}
	message, err := netmail.ReadMessage(strings.NewReader(taken[0]))
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"From": `"Palimpsest" <no-reply@example.com>`, "To": "<ada@example.com>", "Auto-Submitted": "auto-generated",
	} {
		if got := message.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	if !strings.Contains(message.Header.Get("Message-ID"), "@example.com>") || message.Header.Get("Date") == "" {
		t.Errorf("headers %v", message.Header)
	}
	if strings.Contains(o.log.String(), "geheim") {
		t.Errorf("the log shows a link: %s", o.log)
	}
}

func TestMailIsTriedAgainAndGivenUpAfterDays(t *testing.T) {
	t.Parallel()
	o := setup(t, false)
	o.queue(t, hello())
	o.server.answer(&smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"})
	o.pass(t, mail.Failed)
	o.pass(t) // not at once
	o.now = o.now.Add(time.Minute)
	o.pass(t, mail.Failed)
	o.now = o.now.Add(time.Minute)
	o.pass(t) // twice as long
	o.now = o.now.Add(time.Minute)
	o.server.answer(nil)
	o.pass(t, mail.Sent)

	o.queue(t, hello())
	o.server.answer(&smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"})
	o.now = o.now.Add(mail.GiveUpAfter)
	o.pass(t, mail.GivenUp)
	for _, secret := range []string{"geheim", "ada@example.com"} {
		if strings.Contains(o.log.String(), secret) {
			t.Errorf("the log shows %s: %s", secret, o.log)
		}
	}
	if o.waiting(t) != 0 || !strings.Contains(o.log.String(), "dropped after its last attempt") {
		t.Errorf("%d mails wait: %s", o.waiting(t), o.log)
	}
}

func TestMailIsDroppedThatNobodyTakes(t *testing.T) {
	t.Parallel()
	o := setup(t, false)
	o.queue(t, hello())
	o.server.answer(&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such person"})
	o.pass(t, mail.Refused)
	if o.waiting(t) != 0 {
		t.Error("it waits")
	}
}

// A mail that was sealed with a master key that is gone is not sent without its text,
// and keeps no other from being sent.
func TestMailThatDoesNotOpenIsGivenUp(t *testing.T) {
	t.Parallel()
	o := setup(t, false)
	safe, err := vault.New([][]byte{bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	sealing, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: o.db.AppURL, Sealer: safe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sealing.Close)
	if err := sealing.Mail.QueueMail(t.Context(), nil, hello()); err != nil {
		t.Fatal(err)
	}
	o.queue(t, tenants.Mail{To: "eve@example.com", Subject: "Another", Text: "text"})
	o.pass(t, mail.GivenUp, mail.Sent)
	if taken := o.server.mails(); len(taken) != 1 || !strings.Contains(taken[0], "Another") || o.waiting(t) != 0 {
		t.Errorf("the server took %q, %d wait", taken, o.waiting(t))
	}
	if !strings.Contains(o.log.String(), "does not open") {
		t.Errorf("the log says nothing of it: %s", o.log)
	}
}

// A line's end in a header would begin another header, or the text.
func TestHeadersCannotBeInjected(t *testing.T) {
	t.Parallel()
	o := setup(t, false)
	injected := []tenants.Mail{
		{To: "ada@example.com", Subject: "Hello\r\nBcc: eve@example.com"},
		{To: "ada@example.com", Subject: "Hello\nBcc: eve@example.com"},
		{To: "ada@example.com\r\nBcc: eve@example.com", Subject: "Hello"},
		{To: "ada@example.com, eve@example.com", Subject: "Hello"},
		{To: "Eve <eve@example.com>", Subject: "Hello"},
		{To: "ada@example.com", Subject: strings.Repeat("x", 1000)},
	}
	for _, one := range injected {
		o.queue(t, one)
	}
	o.pass(t, mail.Refused, mail.Refused, mail.Refused, mail.Refused, mail.Refused, mail.Refused)
	if taken := o.server.mails(); len(taken) != 0 {
		t.Errorf("the server took %v", taken)
	}
	if _, err := mail.NewSMTP("smtp://127.0.0.1", "Eve\r\nBcc: x <eve@example.com>", nil); err == nil {
		t.Error("a sender of two lines is taken")
	}
}

func TestWrongPasswordOfTheServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	o := setup(t, false)
	sender, err := mail.NewSMTP("smtp://palimpsest:wrong@"+o.server.address, "no-reply@example.com", o.server.roots)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(t.Context(), [16]byte{1}, hello()); err == nil || strings.Contains(err.Error(), "wrong@") {
		t.Errorf("a wrong password: %v", err)
	}
	if err := sender.Check(t.Context()); err == nil || strings.Contains(err.Error(), "wrong@") {
		t.Errorf("a check with a wrong password: %v", err)
	}
	knowing, err := mail.NewSMTP("smtp://palimpsest:p%40ss@"+o.server.address, "no-reply@example.com", o.server.roots)
	if err != nil {
		t.Fatal(err)
	}
	if err := knowing.Check(t.Context()); err != nil || len(o.server.mails()) != 0 {
		t.Errorf("a check with the right password: %v, %d mails sent", err, len(o.server.mails()))
	}
	// A password never goes to a server that cannot be trusted.
	untrusting, err := mail.NewSMTP("smtp://palimpsest:p%40ss@"+o.server.address, "no-reply@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := untrusting.Send(t.Context(), [16]byte{1}, hello()); err == nil || len(o.server.mails()) != 0 {
		t.Errorf("an unknown certificate: %v", err)
	}
}

func TestSettingNamesWhatIsWrongAndShowsNoPassword(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"http://user:secret@host", "smtp://", "smtp://user:secret@host:587", "://secret", "smtp://user:secret@host?from=nobody"} {
		if _, err := mail.NewSMTP(wrong, "", nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, right := range []string{"smtp://host", "smtps://user:secret@host:465", "smtp://user:secret@host:2525"} {
		if _, err := mail.NewSMTP(right, "Palimpsest <no-reply@example.com>", nil); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
}

func TestMailsAreKeptWhereThereIsNoServer(t *testing.T) {
	t.Parallel()
	o := setup(t, true)
	o.queue(t, hello())
	o.pass(t, mail.Kept)
	o.pass(t)
	kept, err := o.Kept(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Mail != hello() {
		t.Fatalf("kept %+v (%v)", kept, err)
	}
	if strings.Contains(o.log.String(), "geheim") || strings.Count(o.log.String(), "mail is not sent; set SMTP_URL") != 1 {
		t.Errorf("log: %s", o.log)
	}
	o.now = o.now.Add(mail.GiveUpAfter)
	if err := o.Pass(t.Context()); err != nil || o.waiting(t) != 0 {
		t.Errorf("%d mails after days (%v)", o.waiting(t), err)
	}
}
