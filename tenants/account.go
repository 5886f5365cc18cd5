package tenants

import (
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

// Letter is a mail with the token of the link in it.
type Letter struct {
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
	Workspace    string                      // name of one of their own; "" for none
	Letters      func(email string) []Letter // that they are sent
	Known        func(email string) Mail     // to the owner of an address that is known, to nobody if it has no To; nil to tell the caller alone
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
