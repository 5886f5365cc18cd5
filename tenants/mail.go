package tenants

import (
	"context"

	"github.com/google/uuid"
)

// Mail is a message to one person. It holds no text of sessions.
type Mail struct {
	To      string // one address
	Subject string // one line
	Text    string // plain text, with links written out
}

// MailSender hands mails over to a server.
type MailSender interface {
	// Send returns once the server has taken the mail; id is the mail's Message-ID.
	Send(ctx context.Context, id uuid.UUID, mail Mail) error
}
