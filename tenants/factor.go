package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrCodeNeeded says that the password is right, and that a code of the person's
// authenticator app, or a recovery code, is needed with it.
var ErrCodeNeeded = errors.New("a code is needed, too")

// CodeNeeded is ErrCodeNeeded with what proves that the password was right.
type CodeNeeded struct {
	// Pending is the token to log in with together with a code, for PendingAge.
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
	// RecoveryCodes is how many a person gets.
	RecoveryCodes = 10
)

// SecondFactor is the secret that a person's authenticator app makes codes from (TOTP,
// RFC 6238).
type SecondFactor struct {
	User        uuid.UUID
	Sealed      []byte // see vault.SealAbout
	CreatedAt   time.Time
	ConfirmedAt time.Time // zero: no code was typed yet, so none is asked for
	UsedAt      time.Time // zero: not yet
	LastStep    int64     // time step of the last accepted code
	Left        int       // recovery codes that have not been used
}

// IsOn reports whether a code is asked for.
func (f SecondFactor) IsOn() bool { return !f.ConfirmedAt.IsZero() }

// Factors are what a person logs in with beside their password.
type Factors struct {
	App      bool // an authenticator app
	Passkeys int
	Left     int // recovery codes that have not been used
}

// AreOn reports whether one of them is asked for after the password.
func (f Factors) AreOn() bool { return f.App || f.Passkeys > 0 }

// SetUp is a secret that waits for the first code made from it.
type SetUp struct {
	Secret string // base 32, as people type it into an app
	URL    string // otpauth://, as apps read it from a QR code
}

// AboutSecondFactor is what the secret of a person's second factor is sealed for.
func AboutSecondFactor(user uuid.UUID) string { return "second factor of user:" + user.String() }

// SecondFactors keeps second factors. What a person can mend is an Invalid that names
// password or code; too many attempts are a TooMany.
type SecondFactors interface {
	// SecondFactor returns ErrNotFound if it does not exist.
	SecondFactor(ctx context.Context, user uuid.UUID) (SecondFactor, error)

	// StartSecondFactor makes a secret, or returns ErrConflict if a second factor is on.
	StartSecondFactor(ctx context.Context, who Principal, password string) error

	// SetUp returns the secret that waits for its first code, or ErrNotFound.
	SetUp(ctx context.Context, user User) (SetUp, error)

	// ConfirmSecondFactor returns the recovery codes, or ErrNotFound if no secret waits.
	ConfirmSecondFactor(ctx context.Context, who Principal, code string) ([]string, error)

	// RenewRecoveryCodes returns other recovery codes.
	RenewRecoveryCodes(ctx context.Context, who Principal, password, code string) ([]string, error)

	// RemoveSecondFactor ends the asking for codes.
	RemoveSecondFactor(ctx context.Context, who Principal, password, code string) error
}
