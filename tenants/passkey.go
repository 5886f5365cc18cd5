package tenants

import (
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
