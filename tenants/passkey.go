package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	// PasskeyAge is how long a browser may take to answer with a passkey.
	PasskeyAge = 5 * time.Minute
	// MaxPasskeys bounds the passkeys of a person.
	MaxPasskeys = 20
	// MaxPasskeyName bounds a name, in characters.
	MaxPasskeyName = 80
)

// ErrPasskey says that a browser's passkey answer is invalid. Wrapping errors give the reason.
var ErrPasskey = errors.New("passkey is refused")

// ErrPasskeyCopied is the ErrPasskey of a passkey whose count did not rise, because a copy of it was used.
// The passkey no longer logs in.
var ErrPasskeyCopied = fmt.Errorf("%w: a copy of it was used", ErrPasskey)

// Passkey is the stored part of a key pair for logging in (Web Authentication, level 3). The private key
// stays in the authenticator.
type Passkey struct {
	ID         uuid.UUID
	Name       string
	Credential []byte // the authenticator's id of it
	PublicKey  []byte // COSE, RFC 9052
	SignCount  uint32 // highest seen so far; 0 if the authenticator does not count
	Transports []string
	CreatedAt  time.Time
	UsedAt     time.Time // zero: not yet
	CopiedAt   time.Time // zero: no copy was seen

	BackupEligible bool // may be stored on several devices
	BackedUp       bool
}

// Fields returns the passkey's fields for the audit log.
func (p Passkey) Fields() Fields { return Fields{"name": p.Name} }

// Passkeys stores passkeys and logs people in with them. Bad input is an Invalid for name or password; too
// many attempts are a TooMany, and a browser's invalid answer is ErrPasskey.
type Passkeys interface {
	// IsOn reports whether passkeys work at the product's public URL.
	IsOn() bool
	// Origin returns the origin of passkeys.
	Origin() string

	// Ask returns the browser's options, as JSON, and the state that it holds until it answers.
	Ask() (options []byte, held string, err error)
	// LogIn returns the token of a login.
	LogIn(ctx context.Context, held, answer, userAgent string) (token string, err error)

	// AskSecond and LogInSecond are Ask and LogIn after the password. They return ErrLoginEnded for an
	// expired log-in.
	AskSecond(ctx context.Context, pending string) (options []byte, held string, err error)
	LogInSecond(ctx context.Context, pending, held, answer, userAgent string) (token string, err error)

	// List returns a person's passkeys, the oldest first, and all their factors.
	List(ctx context.Context, user uuid.UUID) ([]Passkey, Factors, error)

	// Start begins to create a passkey and returns the state that the browser holds until then.
	Start(ctx context.Context, who Principal, name, password string) (held string, err error)

	// Options returns the name of the passkey in creation and the browser's options, as JSON, or ErrPasskey
	// without a creation in progress.
	Options(ctx context.Context, who Principal, held string) (name string, options []byte, err error)

	// Register stores the browser's new passkey and returns recovery codes if it is the first second factor;
	// ErrConflict for a passkey that exists already.
	Register(ctx context.Context, who Principal, held, answer string) (codes []string, err error)

	// Rename and Remove return ErrNotFound if the passkey is not the person's.
	Rename(ctx context.Context, who Principal, id uuid.UUID, name string) error
	Remove(ctx context.Context, who Principal, id uuid.UUID, password string) error

	// RenewCodes replaces the recovery codes of a person with passkeys and without an app.
	RenewCodes(ctx context.Context, who Principal, password string) ([]string, error)
}
