package tenants

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers distinguish.
var (
	ErrNotFound     = errors.New("not found")
	ErrEmailTaken   = errors.New("an account with this e-mail address exists")
	ErrWrongLogin   = errors.New("e-mail or password is wrong")
	ErrLoginEnded   = errors.New("login has ended")
	ErrTooMany      = errors.New("too many attempts")
	ErrKeyMalformed = errors.New("API key is malformed")
	ErrKeyUnknown   = errors.New("API key is unknown")
	ErrKeyRevoked   = errors.New("API key is revoked")
	ErrKeyExpired   = errors.New("API key has expired")
	ErrScopeMissing = errors.New("API key lacks the scope")
	ErrNoProvider   = errors.New("no provider key is stored")
	ErrDenied       = errors.New("role does not allow this")
	ErrLastOwner    = errors.New("the workspace would have no owner")
	ErrOperator     = errors.New("an operator's account is not deleted")
	ErrInvitation   = errors.New("invitation cannot be accepted any more")
	ErrOtherAddress = errors.New("invitation is for another address")
	ErrTextDenied   = errors.New("workspace does not let this reader see what was said")
	ErrConflict     = errors.New("someone else saved in the meantime")

	// ErrAway says that the database does not answer or rejects writes at the moment. A retry may succeed.
	ErrAway = errors.New("the database does not answer")
)

// TooMany is ErrTooMany with the time to wait.
type TooMany struct {
	Wait time.Duration
	What string // the limited thing, for people; "" for attempts
}

// Error implements error.
func (e TooMany) Error() string {
	return fmt.Sprintf("%s; try again in %s", ErrTooMany, e.Wait.Round(time.Second))
}

// Unwrap returns ErrTooMany.
func (e TooMany) Unwrap() error { return ErrTooMany }

// Invalid is a wrong value that a person or a script can correct.
type Invalid struct {
	Field   string // path of the field: "email", "ipc.targetUtilization"
	Message string // the problem and the allowed values
}

// Error implements error.
func (e Invalid) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Message) }
