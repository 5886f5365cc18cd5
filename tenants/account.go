package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Account errors that callers distinguish.
var (
	// ErrLinkEnded says that a link was used, has expired, or never existed.
	ErrLinkEnded = errors.New("link has ended")
	// ErrMailSent says that the request continues only after the link in a mail is opened. Every sign-up gets
	// this answer, so that it does not reveal whether the address is known.
	ErrMailSent = errors.New("a mail with a link was sent")
)

// TokenKind is the purpose of a mailed link.
type TokenKind string

// The kinds of tokens.
const (
	TokenReset  TokenKind = "reset"  // to set a password
	TokenVerify TokenKind = "verify" // to verify the account's address
	TokenEmail  TokenKind = "email"  // verifies the address that an account changes to
)

// How long a token is valid.
const (
	ResetAge  = time.Hour
	VerifyAge = 24 * time.Hour
)

// Token is the stored part of a link's secret. It works once, before it expires, and for the address that the
// link was sent to.
type Token struct {
	Hash      []byte // SHA-256 of the secret, which has 256 random bits
	Kind      TokenKind
	User      uuid.UUID // set by the store
	Email     string    // lower case
	CreatedAt time.Time
	ExpiresAt time.Time
}

// LinkMail is a mail with the token of the link in it.
type LinkMail struct {
	Token Token
	Mail  Mail
}

// RequestKind names the requests that need an address only.
type RequestKind string

// The kinds of requests.
const (
	RequestSignUp RequestKind = "signup"
	RequestReset  RequestKind = "reset"
	RequestVerify RequestKind = "verify"
)

// AccountRequest is a request by an address. It is stored without checking whether the address is known, so
// that the answer cannot reveal it.
type AccountRequest struct {
	ID           uuid.UUID
	Kind         RequestKind
	Email        string // lower case
	PasswordHash string // of a sign-up
	Workspace    string // name, of a sign-up
	From         string // address of the client

	// OnlyFirst answers a sign-up only if it is the installation's first person. It is not stored.
	OnlyFirst bool
}

// Joining is a sign-up through an invitation.
type Joining struct {
	PasswordHash string
	Workspace    string                        // name of their own workspace; "" if absent
	Mails        func(email string) []LinkMail // mails to them
	Known        func(email string) Mail       // mail to the owner of a known address, not sent without To; nil if only the caller is notified
}

// AboutMail returns the context to which the sealed text of a queued mail is bound.
func AboutMail(id uuid.UUID, to string) string { return "mail:" + id.String() + "|to:" + to }

// WaitingMail is an unsent mail.
type WaitingMail struct {
	Mail

	ID        uuid.UUID
	CreatedAt time.Time
	Attempts  int  // including the next one
	Shut      bool // its text does not open because the master key that sealed it was removed
}

// Accounts changes people's addresses and passwords, and lists their logins.
type Accounts interface {
	// AskReset sends a link to set a password. It answers the same for known and
	// unknown addresses: nil, an Invalid or a TooMany.
	AskReset(ctx context.Context, email, from string) error

	// AskVerification sends a link to verify an address, and answers like AskReset.
	AskVerification(ctx context.Context, email, from string) error

	// Link returns the token of a link's secret, or ErrLinkEnded.
	Link(ctx context.Context, secret string) (Token, error)

	// ResetPassword sets a password and ends all logins. It returns ErrLinkEnded or
	// an Invalid.
	ResetPassword(ctx context.Context, secret, password string) error

	// ConfirmEmail proves the address that a link was sent to. It returns ErrLinkEnded
	// or ErrEmailTaken.
	ConfirmEmail(ctx context.Context, secret string) (Token, error)

	// ChangePassword ends all other logins. It returns an Invalid that names
	// current_password or password, or a TooMany.
	ChangePassword(ctx context.Context, who Principal, current, password string) error

	// AskEmail sends a link to the person's new address. It returns an Invalid for email or password, or a
	// TooMany.
	AskEmail(ctx context.Context, who Principal, password, email string) error

	// SendVerification sends the link to verify the address again, or returns a TooMany.
	SendVerification(ctx context.Context, user User) error

	// Logins returns a person's active logins, the newest first.
	Logins(ctx context.Context, user uuid.UUID) ([]Login, error)

	// EndLogin returns ErrNotFound if the login is not the person's.
	EndLogin(ctx context.Context, user, id uuid.UUID) error

	// EndLogins ends all logins of a person.
	EndLogins(ctx context.Context, user uuid.UUID) error

	// DeleteAccount returns an Invalid for password, a TooMany, an OnlyOwner, ErrOperator, or ErrSignOnOnly.
	DeleteAccount(ctx context.Context, who Principal, password string, revokeKeys bool) error
}

// Identity signs people up, logs them in and out, and identifies them by their token.
type Identity interface {
	Accounts
	SecondFactors

	// SignUp creates a user with a workspace and returns their login's token. Bad input is an Invalid or
	// ErrEmailTaken. If addresses must be verified first, it returns ErrMailSent for each. ErrInviteOnly and
	// a TooMany mean that sign-up is closed or rate-limited.
	SignUp(ctx context.Context, email, password, workspace, userAgent string) (Principal, string, error)

	// TakesSignUps reports whether people without an invitation may try to sign up.
	TakesSignUps(ctx context.Context) (bool, error)

	// IsNew reports whether the installation has no users yet.
	IsNew(ctx context.Context) (bool, error)

	// LogIn returns the token of a new login, or ErrWrongLogin, a TooMany, or a
	// CodeNeeded for someone with a second factor.
	LogIn(ctx context.Context, email, password, from, userAgent string) (Principal, string, error)

	// LogInWithCode exchanges the token of a CodeNeeded and a code for the token of a new login. It returns
	// ErrWrongLogin for a wrong code, ErrLoginEnded for an expired log-in, or a TooMany.
	LogInWithCode(ctx context.Context, pending, code, userAgent string) (Principal, string, error)

	// PendingFactors returns the factors that a login waits for, or ErrLoginEnded.
	PendingFactors(ctx context.Context, pending string) (Factors, error)

	// LogOut ends a login; a login that has ended already is not an error.
	LogOut(ctx context.Context, login Login) error

	// Authenticate returns the principal of a token, or ErrLoginEnded.
	Authenticate(ctx context.Context, token string) (Principal, error)

	// Confirm returns ErrWrongLogin if the password is not the user's, or ErrTooMany.
	Confirm(ctx context.Context, user User, password, from string) error
}
