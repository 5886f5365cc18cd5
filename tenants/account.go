package tenants

import (
	"context"
	"errors"
	"fmt"
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
	User      uuid.UUID `gorm:"column:user_id"` // set by the store
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
	From         string `gorm:"column:address"` // address of the client

	// OnlyFirst answers a sign-up only if it is the installation's first person. It is not stored.
	OnlyFirst bool `gorm:"-"`
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
	Shut      bool `gorm:"-"` // its text does not open because the master key that sealed it was removed
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

// The bounds of new passwords, in characters.
const (
	MinPassword = 12
	MaxPassword = 200
)

// PasswordHint returns the hint beside the field for a new password.
func PasswordHint() string {
	return fmt.Sprintf("%d characters or more, and not a common password. Several words are good.", MinPassword)
}

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
	User        uuid.UUID `gorm:"column:user_id"`
	Sealed      []byte    // see vault.SealAbout
	CreatedAt   time.Time
	ConfirmedAt time.Time // zero: not confirmed, so log-ins ask for no code yet
	UsedAt      time.Time // zero: not yet
	LastStep    int64     // time step of the last accepted code
	Left        int       `gorm:"column:codes"` // recovery codes that have not been used
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
	Credential []byte   // the authenticator's id of it
	PublicKey  []byte   // COSE, RFC 9052
	SignCount  uint32   // highest seen so far; 0 if the authenticator does not count
	Transports []string `gorm:"serializer:list"`
	CreatedAt  time.Time
	UsedAt     time.Time `gorm:"serializer:null"` // zero: not yet
	CopiedAt   time.Time `gorm:"serializer:null"` // zero: no copy was seen

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
