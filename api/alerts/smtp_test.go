package alerts_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"palimpsest/api/alerts"
	"palimpsest/tenants"
	"palimpsest/tenants/mail"
)

// postOffice is a real SMTP server that keeps what it takes.
type postOffice struct {
	mu     sync.Mutex
	taken  []string
	refuse error
}

// NewSession implements smtp.Backend.
func (p *postOffice) NewSession(*smtp.Conn) (smtp.Session, error) { return &counter{p}, nil }

type counter struct{ office *postOffice }

func (c *counter) Mail(string, *smtp.MailOptions) error { return nil }

func (c *counter) Rcpt(string, *smtp.RcptOptions) error {
	c.office.mu.Lock()
	defer c.office.mu.Unlock()
	return c.office.refuse
}

func (c *counter) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	c.office.mu.Lock()
	defer c.office.mu.Unlock()
	c.office.taken = append(c.office.taken, string(content))
	return err
}

func (c *counter) Reset()        {}
func (c *counter) Logout() error { return nil }

func TestMailServerTakesAlerts(t *testing.T) {
	t.Parallel()
	office := &postOffice{}
	server := smtp.NewServer(office)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	sender, err := mail.NewSMTP("smtp://"+listener.Addr().String()+"?from=no-reply@example.com", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, func(config *alerts.Config) { config.Mailer, config.HasMail = sender, true })
	if err := b.Accounts.VerifyUser(t.Context(), b.owner.User.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Add(t.Context(), b.owner, tenants.WantedAlertChannel{Kind: tenants.AlertEmail, Name: "mails", User: b.owner.User.ID, Rules: []tenants.AlertRule{tenants.AlertInstallation}})
	if err != nil {
		t.Fatal(err)
	}
	office.refuse = &smtp.SMTPError{Code: 451, Message: "later"}
	delivery := b.raised(t)
	again := b.deliver(t, delivery.ID)
	if again.IsZero() || len(office.taken) > 0 {
		t.Fatalf("again at %s, %d mails", again, len(office.taken))
	}
	b.advance(again.Sub(b.clock()))
	office.mu.Lock()
	office.refuse = nil
	office.mu.Unlock()
	if again := b.deliver(t, delivery.ID); !again.IsZero() {
		t.Errorf("again at %s", again)
	}
	if len(office.taken) != 1 || !strings.Contains(office.taken[0], "To: <ada@example.com>") || !strings.Contains(office.taken[0], "Subject: [northbeam] Bucket: does not answer") ||
		!strings.Contains(office.taken[0], publicURL+"/operator") {
		t.Errorf("mails %q", office.taken)
	}
	if got := b.deliveries(t)[0]; got.State != tenants.DeliveryDelivered || got.Attempts != 2 {
		t.Errorf("log %+v", got)
	}
}
