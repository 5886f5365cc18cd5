package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// The kinds of failure of accounts that callers tell apart.
var (
	// ErrLinkEnded says that a link of a mail was used, has expired, or never was one.
	ErrLinkEnded = errors.New("link has ended")
	// ErrMailSent says that nothing goes on before the link in a mail is opened. It is
	// the answer to every sign-up, whether the address is known or not.
	ErrMailSent = errors.New("a mail with a link was sent")
)

// TokenKind says what a link of a mail is good for.
type TokenKind string

// The kinds of tokens.
const (
	TokenReset  TokenKind = "reset"  // to set a password
	TokenVerify TokenKind = "verify" // to prove that the account's address is one's own
	TokenEmail  TokenKind = "email"  // to prove the same of the address that is to become the account's
)

// How long a token is good for.
const (
	ResetAge  = time.Hour
	VerifyAge = 24 * time.Hour
)

// Token is what is kept of the secret in a link: it works once, until it expires, and
// for the address that the link was sent to.
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

// RequestKind names what people ask for by their address alone.
type RequestKind string

// The kinds of requests.
const (
	RequestSignUp RequestKind = "signup"
	RequestReset  RequestKind = "reset"
	RequestVerify RequestKind = "verify"
)

// AccountRequest is what someone asked for by an address. It is kept without a look
// at whether the address is known, so that the answer cannot tell.
type AccountRequest struct {
	ID           uuid.UUID
	Kind         RequestKind
	Email        string // lower case
	PasswordHash string // of a sign-up
	Workspace    string // name, of a sign-up
	From         string // address of the client

	// OnlyFirst has a sign-up answered for the first person of an installation alone. It
	// is not kept.
	OnlyFirst bool
}

// Joining is how a person signs up through an invitation.
type Joining struct {
	PasswordHash string
	Workspace    string                        // name of one of their own; "" for none
	Mails        func(email string) []LinkMail // that they are sent
	Known        func(email string) Mail       // to the owner of an address that is known, to nobody if it has no To; nil to tell the caller alone
}

// AboutMail is what the text of a mail is sealed for while it waits.
func AboutMail(id uuid.UUID, to string) string { return "mail:" + id.String() + "|to:" + to }

// WaitingMail is a mail that has not been sent.
type WaitingMail struct {
	Mail

	ID        uuid.UUID
	CreatedAt time.Time
	Attempts  int  // with the one that is due
	Shut      bool // its text does not open: the master key that sealed it is gone
}

// Accounts changes what people are known by, and knows where they are logged in.
type Accounts interface {
	// AskReset sends a link to set a password. It answers the same for known and
	// unknown addresses: nil, an Invalid or a TooMany.
	AskReset(ctx context.Context, email, from string) error

	// AskVerification sends a link to verify an address, and answers like AskReset.
	AskVerification(ctx context.Context, email, from string) error

	// Link returns what the secret of a link is good for, or ErrLinkEnded.
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

	// AskEmail sends a link to the address that is to become the person's. It returns an
	// Invalid that names email or password, or a TooMany.
	AskEmail(ctx context.Context, who Principal, password, email string) error

	// SendVerification sends the link to verify the address again, or returns a TooMany.
	SendVerification(ctx context.Context, user User) error

	// Logins returns a person's active logins, the newest first.
	Logins(ctx context.Context, user uuid.UUID) ([]Login, error)

	// EndLogin returns ErrNotFound for a login that the person does not have.
	EndLogin(ctx context.Context, user, id uuid.UUID) error

	// EndLogins ends all logins of a person.
	EndLogins(ctx context.Context, user uuid.UUID) error

	// DeleteAccount returns an Invalid that names password, a TooMany, an OnlyOwner,
	// ErrOperator, or ErrSignOnOnly.
	DeleteAccount(ctx context.Context, who Principal, password string, revokeKeys bool) error
}

// Identity signs people up, logs them in and out, and knows them by their token.
type Identity interface {
	Accounts
	SecondFactors

	// SignUp creates a user with a workspace and returns their login's token. What a
	// person can mend is an Invalid or ErrEmailTaken. Where addresses must be verified
	// first, it returns ErrMailSent for each. ErrInviteOnly and a TooMany say that no
	// one signs up here, or not so often.
	SignUp(ctx context.Context, email, password, workspace, userAgent string) (Principal, string, error)

	// TakesSignUps reports whether someone who was not invited may try.
	TakesSignUps(ctx context.Context) (bool, error)

	// IsNew reports whether no one has signed up in this installation yet.
	IsNew(ctx context.Context) (bool, error)

	// LogIn returns the token of a new login, or ErrWrongLogin, a TooMany, or a
	// CodeNeeded for someone with a second factor.
	LogIn(ctx context.Context, email, password, from, userAgent string) (Principal, string, error)

	// LogInWithCode returns the token of a new login for that of a CodeNeeded and a
	// code, or ErrWrongLogin for a wrong code, ErrLoginEnded for a log-in that waited
	// too long, or a TooMany.
	LogInWithCode(ctx context.Context, pending, code, userAgent string) (Principal, string, error)

	// PendingFactors returns what a log-in waits for, or ErrLoginEnded.
	PendingFactors(ctx context.Context, pending string) (Factors, error)

	// LogOut ends a login; one that has ended already is not an error.
	LogOut(ctx context.Context, login Login) error

	// Authenticate returns who a token belongs to, or ErrLoginEnded.
	Authenticate(ctx context.Context, token string) (Principal, error)

	// Confirm returns ErrWrongLogin if the password is not the user's, or ErrTooMany.
	Confirm(ctx context.Context, user User, password, from string) error
}
