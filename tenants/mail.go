package tenants

import (
	"context"

	"github.com/google/uuid"
)

// Mail is a message to one person. It contains no session text.
type Mail struct {
	To      string // one address
	Subject string // one line
	Text    string // plain text, with links written out
}

// MailSender hands mails over to a server.
type MailSender interface {
	// Send returns after the server has accepted the mail; id becomes the mail's Message-ID.
	Send(ctx context.Context, id uuid.UUID, mail Mail) error
}
