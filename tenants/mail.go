package tenants

import (
	"context"

	"github.com/google/uuid"
)

// Mail is a message to one person. It contains no session text.
type Mail struct {
	To      string `gorm:"column:recipient"` // one address
	Subject string // one line
	Text    string `gorm:"column:body"` // plain text, with links written out
}

// MailSender hands mails over to a server.
type MailSender interface {
	// Send returns after the server has accepted the mail; id becomes the mail's Message-ID.
	Send(ctx context.Context, id uuid.UUID, mail Mail) error
}

// Sealer seals secrets and binds them to a context, about. A secret opens only in the context that it was
// sealed for.
type Sealer interface {
	SealAbout(about, secret string) ([]byte, error)

	// OpenAbout reports whether the newest master key sealed the secret.
	OpenAbout(about string, sealed []byte) (secret string, newest bool, err error)
}
