package identity

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

const (
	tokenBytes    = 32 // random bytes of a link's secret
	requestsAtOne = 50 // that one pass answers
)

// Accounts keeps what people change of themselves, and what they ask for by mail. An
// operation that sends something sends it if and only if it is done.
type Accounts interface {
	// SignUp stores a user with a workspace of their own and sends them letters, or
	// returns tenants.ErrEmailTaken.
	SignUp(ctx context.Context, email, passwordHash, workspace string, letters ...tenants.LinkMail) (tenants.User, tenants.Workspace, error)
	// SignUpFirst does the same for the first person of the installation, or returns
	// tenants.ErrNotFirst.
	SignUpFirst(ctx context.Context, email, passwordHash, workspace string, letters ...tenants.LinkMail) (tenants.User, tenants.Workspace, error)
	// HasWorkspaces reports whether anybody has signed up yet.
	HasWorkspaces(ctx context.Context) (bool, error)
	// UserByEmail returns a user with the password's hash, or tenants.ErrNotFound.
	UserByEmail(ctx context.Context, email string) (user tenants.User, passwordHash string, err error)

	// AskAccount keeps a request; it does the same for every address.
	AskAccount(ctx context.Context, request tenants.AccountRequest) error
	// AccountRequests returns what waits for an answer.
	AccountRequests(ctx context.Context, limit int) ([]tenants.AccountRequest, error)
	// AnswerRequest sends the letter where there is someone to send it to; known goes
	// to the owner of an address that someone signed up with again.
	AnswerRequest(ctx context.Context, request tenants.AccountRequest, letter tenants.LinkMail, known tenants.Mail) error
	// DropRequest takes a request out that is not answered.
	DropRequest(ctx context.Context, request tenants.AccountRequest) error
	// RefuseSignUp sends the mail refused instead, or known to the owner of an address
	// that is known, and makes no account.
	RefuseSignUp(ctx context.Context, request tenants.AccountRequest, refused, known tenants.Mail) error
	SendLetters(ctx context.Context, user uuid.UUID, letters []tenants.LinkMail, mails ...tenants.Mail) error
	// Token returns a token that is good at a time, or tenants.ErrLinkEnded.
	Token(ctx context.Context, hash []byte, at time.Time) (tenants.Token, error)
	// ResetPassword returns tenants.ErrLinkEnded.
	ResetPassword(ctx context.Context, hash []byte, at time.Time, passwordHash string, notice func(tenants.User) tenants.Mail) error
	ChangePassword(ctx context.Context, user tenants.User, keep uuid.UUID, passwordHash string, notice tenants.Mail) error
	// RenewPasswordHash keeps another hash of the same password, if the old is still kept.
	RenewPasswordHash(ctx context.Context, user uuid.UUID, old, hash string) error
	// ConfirmEmail returns tenants.ErrLinkEnded or tenants.ErrEmailTaken.
	ConfirmEmail(ctx context.Context, hash []byte, at time.Time, notice func(before, after string) tenants.Mail) (tenants.Token, error)
	// DeleteAccount returns a tenants.OnlyOwner or tenants.ErrOperator.
	DeleteAccount(ctx context.Context, user uuid.UUID, revokeKeys bool) error
}

// Mails says what mails hold and what waits for them.
type Mails struct {
	// PublicURL is where links lead, without a slash at its end; empty: no one is sent
	// a link at sign-up.
	PublicURL string

	// RequireVerified has nobody logged in before they have opened the link that their
	// sign-up sent them.
	RequireVerified bool
}

// SetMails says what mails hold. It must be called before the service is used.
func (s *Service) SetMails(mails Mails) { s.mails = mails }

// accounts are what people change of themselves.
type accounts struct {
	store   Store
	prover  *prover
	logins  *logins
	letters *letters
	now     func() time.Time
}

// Link returns what the secret of a link is good for, or tenants.ErrLinkEnded.
func (a *accounts) Link(ctx context.Context, secret string) (tenants.Token, error) {
	return a.store.Token(ctx, hashToken(secret), a.now())
}

// ResetPassword sets the password of the person to whom a link was sent, and ends all
// their logins. It returns tenants.ErrLinkEnded, or a tenants.Invalid.
func (a *accounts) ResetPassword(ctx context.Context, secret, password string) error {
	token, err := a.Link(ctx, secret)
	if err == nil && token.Kind != tenants.TokenReset {
		err = tenants.ErrLinkEnded
	}
	if err == nil {
		err = checkPassword(password, token.Email)
	}
	if err != nil {
		return err // before a password is hashed for nothing
	}
	hash, err := a.prover.hash(ctx, password)
	if err != nil {
		return err
	}
	defer a.logins.Forget()
	return a.store.ResetPassword(ctx, token.Hash, a.now(), hash, a.letters.passwordMail)
}

// ConfirmEmail proves the address that a link was sent to: it verifies the account's
// or becomes it. It returns tenants.ErrLinkEnded or tenants.ErrEmailTaken.
func (a *accounts) ConfirmEmail(ctx context.Context, secret string) (tenants.Token, error) {
	defer a.logins.Forget()
	return a.store.ConfirmEmail(ctx, hashToken(secret), a.now(), a.letters.emailChangedMail)
}

// ChangePassword gives someone who is logged in, and knows their password, another
// one, and ends their other logins. It returns a tenants.Invalid that names
// current_password or password, or a tenants.TooMany.
func (a *accounts) ChangePassword(ctx context.Context, who tenants.Principal, current, password string) error {
	if err := checkPassword(password, who.User.Email); err != nil {
		return err
	}
	if err := a.prover.confirm(ctx, who, "current_password", current); err != nil {
		return err
	}
	hash, err := a.prover.hash(ctx, password)
	if err != nil {
		return err
	}
	defer a.logins.Forget()
	return a.store.ChangePassword(ctx, who.User, who.Login.ID, hash, a.letters.passwordMail(who.User))
}

// AskEmail sends a link to the address that is to become that of someone who is
// logged in and knows their password, and tells the old one. It returns a
// tenants.Invalid that names email or password, or a tenants.TooMany; never whether
// someone else has the address.
func (a *accounts) AskEmail(ctx context.Context, who tenants.Principal, password, email string) error {
	email, err := tenants.CheckEmail(email)
	if err != nil {
		return err
	}
	if email == who.User.Email {
		return tenants.Invalid{Field: "email", Message: "is your address already"}
	}
	if err := a.prover.confirm(ctx, who, "password", password); err != nil {
		return err
	}
	if err := a.prover.throttle.Take(ctx, mailsTo("change of address", email)); err != nil {
		return err
	}
	return a.store.SendLetters(ctx, who.User.ID, []tenants.LinkMail{a.letters.emailLetter(email)}, a.letters.emailAskedMail(who.User.Email, email))
}

func hashToken(secret string) []byte {
	sum := sha256.Sum256([]byte("palimpsest link " + secret))
	return sum[:]
}
