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
	// MaxPasskeys is how many a person may have.
	MaxPasskeys = 20
	// MaxPasskeyName is how many characters a name may have.
	MaxPasskeyName = 80
)

// ErrPasskey says that what a browser answered with a passkey proves nothing. What wraps
// it says why.
var ErrPasskey = errors.New("passkey is refused")

// ErrPasskeyCopied is the ErrPasskey of a passkey that was seen in two places: its
// count did not rise. It logs nobody in any more.
var ErrPasskeyCopied = fmt.Errorf("%w: a copy of it was used", ErrPasskey)

// Passkey is what is kept of a key pair with which a person logs in (Web
// Authentication, level 3). The private key is the authenticator's.
type Passkey struct {
	ID         uuid.UUID
	Name       string
	Credential []byte // what the authenticator calls it
	PublicKey  []byte // COSE, RFC 9052
	SignCount  uint32 // highest that was seen; 0: the authenticator counts nothing
	Transports []string
	CreatedAt  time.Time
	UsedAt     time.Time // zero: not yet
	CopiedAt   time.Time // zero: no copy was seen

	BackupEligible bool // may lie on several devices
	BackedUp       bool
}

// Fields are the passkey as the audit log shows it.
func (p Passkey) Fields() Fields { return Fields{"name": p.Name} }

// Passkeys keeps passkeys and logs people in with them. What a person can mend is an
// Invalid that names name or password; too many attempts are a TooMany, and an answer of
// a browser that proves nothing is ErrPasskey.
type Passkeys interface {
	// IsOn reports whether passkeys work where people reach the product.
	IsOn() bool
	// Origin returns where that is.
	Origin() string

	// Ask returns what a browser is asked, as JSON, and what it holds until it answers.
	Ask() (options []byte, held string, err error)
	// LogIn returns the token of a login.
	LogIn(ctx context.Context, held, answer, userAgent string) (token string, err error)

	// AskSecond and LogInSecond do so after the password, and return ErrLoginEnded for
	// a log-in that waited too long.
	AskSecond(ctx context.Context, pending string) (options []byte, held string, err error)
	LogInSecond(ctx context.Context, pending, held, answer, userAgent string) (token string, err error)

	// List returns a person's passkeys, the oldest first, and all their factors.
	List(ctx context.Context, user uuid.UUID) ([]Passkey, Factors, error)

	// Start begins to make a passkey and returns what the browser holds until then.
	Start(ctx context.Context, who Principal, name, password string) (held string, err error)

	// Options returns the name of the passkey that is being made and what the browser is
	// asked, as JSON, or ErrPasskey if none is being made.
	Options(ctx context.Context, who Principal, held string) (name string, options []byte, err error)

	// Register keeps what the browser has made and returns recovery codes, if it is the
	// first second factor; ErrConflict for a passkey that is kept already.
	Register(ctx context.Context, who Principal, held, answer string) (codes []string, err error)

	// Rename and Remove return ErrNotFound for a passkey that is not the person's.
	Rename(ctx context.Context, who Principal, id uuid.UUID, name string) error
	Remove(ctx context.Context, who Principal, id uuid.UUID, password string) error

	// RenewCodes returns other recovery codes to someone with passkeys and no app.
	RenewCodes(ctx context.Context, who Principal, password string) ([]string, error)
}
