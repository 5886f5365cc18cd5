package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrCodeNeeded says that the password is right, and that the log-in also needs a code of the person's
// authenticator app, or a recovery code.
var ErrCodeNeeded = errors.New("a code is needed, too")

// CodeNeeded is ErrCodeNeeded with proof that the password was right.
type CodeNeeded struct {
	// Pending is the token for logging in with a code, valid for PendingAge.
	Pending string
}

// Error implements error.
func (e CodeNeeded) Error() string { return ErrCodeNeeded.Error() }

// Unwrap returns ErrCodeNeeded.
func (e CodeNeeded) Unwrap() error { return ErrCodeNeeded }

const (
	// PendingAge is how long a log-in waits for its code.
	PendingAge = 5 * time.Minute
	// SetUpAge is how long a secret waits for the first code made from it.
	SetUpAge = 15 * time.Minute
	// RecoveryCodes is the number of a person's recovery codes.
	RecoveryCodes = 10
)

// SecondFactor is the secret from which a person's authenticator app generates codes (TOTP, RFC 6238).
type SecondFactor struct {
	User        uuid.UUID
	Sealed      []byte // see vault.SealAbout
	CreatedAt   time.Time
	ConfirmedAt time.Time // zero: not confirmed, so log-ins ask for no code yet
	UsedAt      time.Time // zero: not yet
	LastStep    int64     // time step of the last accepted code
	Left        int       // recovery codes that have not been used
}

// IsOn reports whether log-ins need a code.
func (f SecondFactor) IsOn() bool { return !f.ConfirmedAt.IsZero() }

// Factors are a person's second factors.
type Factors struct {
	App      bool // an authenticator app
	Passkeys int
	Left     int // recovery codes that have not been used
}

// AreOn reports whether log-ins need one of them after the password.
func (f Factors) AreOn() bool { return f.App || f.Passkeys > 0 }

// SetUp is a secret before its first code.
type SetUp struct {
	Secret string // base 32, as people type it into an app
	URL    string // otpauth://, as apps read it from a QR code
}

// AboutSecondFactor returns the context to which the secret of a person's second factor is sealed.
func AboutSecondFactor(user uuid.UUID) string { return "second factor of user:" + user.String() }

// SecondFactors stores second factors. Bad input is an Invalid for password or code; too many attempts are a
// TooMany.
type SecondFactors interface {
	// SecondFactor returns ErrNotFound if it does not exist.
	SecondFactor(ctx context.Context, user uuid.UUID) (SecondFactor, error)

	// StartSecondFactor makes a secret, or returns ErrConflict if a second factor is on.
	StartSecondFactor(ctx context.Context, who Principal, password string) error

	// SetUp returns the secret before its first code, or ErrNotFound.
	SetUp(ctx context.Context, user User) (SetUp, error)

	// ConfirmSecondFactor returns the recovery codes, or ErrNotFound without a pending secret.
	ConfirmSecondFactor(ctx context.Context, who Principal, code string) ([]string, error)

	// RenewRecoveryCodes returns other recovery codes.
	RenewRecoveryCodes(ctx context.Context, who Principal, password, code string) ([]string, error)

	// RemoveSecondFactor turns off codes.
	RemoveSecondFactor(ctx context.Context, who Principal, password, code string) error
}
