package identity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

const (
	tokenBytes    = 32 // random bytes of a link's secret
	requestsAtOne = 50 // answered in one pass
)

// Accounts stores people's own changes and mail requests. An operation and its mails are committed together.
type Accounts interface {
	// SignUp stores a user with a workspace of their own and sends them letters, or
	// returns tenants.ErrEmailTaken.
	SignUp(ctx context.Context, email, passwordHash, workspace string, letters ...tenants.LinkMail) (tenants.User, tenants.Workspace, error)
	// SignUpFirst is SignUp for the first person of the installation, or returns tenants.ErrNotFirst.
	SignUpFirst(ctx context.Context, email, passwordHash, workspace string, letters ...tenants.LinkMail) (tenants.User, tenants.Workspace, error)
	// HasWorkspaces reports whether anyone has signed up.
	HasWorkspaces(ctx context.Context) (bool, error)
	// UserByEmail returns a user with the password's hash, or tenants.ErrNotFound.
	UserByEmail(ctx context.Context, email string) (user tenants.User, passwordHash string, err error)

	// AskAccount stores a request; it does the same for every address.
	AskAccount(ctx context.Context, request tenants.AccountRequest) error
	// AccountRequests returns unanswered requests.
	AccountRequests(ctx context.Context, limit int) ([]tenants.AccountRequest, error)
	// AnswerRequest sends the letter if it has a recipient, or known to the owner of an address that signed
	// up again.
	AnswerRequest(ctx context.Context, request tenants.AccountRequest, letter tenants.LinkMail, known tenants.Mail) error
	// DropRequest deletes a request without an answer.
	DropRequest(ctx context.Context, request tenants.AccountRequest) error
	// RefuseSignUp sends the mail refused instead, or known to the owner of a known address, and creates no
	// account.
	RefuseSignUp(ctx context.Context, request tenants.AccountRequest, refused, known tenants.Mail) error
	SendLetters(ctx context.Context, user uuid.UUID, letters []tenants.LinkMail, mails ...tenants.Mail) error
	// Token returns a token valid at a time, or tenants.ErrLinkEnded.
	Token(ctx context.Context, hash []byte, at time.Time) (tenants.Token, error)
	// ResetPassword returns tenants.ErrLinkEnded.
	ResetPassword(ctx context.Context, hash []byte, at time.Time, passwordHash string, notice func(tenants.User) tenants.Mail) error
	ChangePassword(ctx context.Context, user tenants.User, keep uuid.UUID, passwordHash string, notice tenants.Mail) error
	// RenewPasswordHash stores another hash of the same password, unless the old one has been replaced.
	RenewPasswordHash(ctx context.Context, user uuid.UUID, old, hash string) error
	// ConfirmEmail returns tenants.ErrLinkEnded or tenants.ErrEmailTaken.
	ConfirmEmail(ctx context.Context, hash []byte, at time.Time, notice func(before, after string) tenants.Mail) (tenants.Token, error)
	// DeleteAccount returns a tenants.OnlyOwner or tenants.ErrOperator.
	DeleteAccount(ctx context.Context, user uuid.UUID, revokeKeys bool) error
}

// Mails configures the contents and delivery of mails.
type Mails struct {
	// PublicURL is the base URL of links, without a slash at its end; "" sends no links at sign-up.
	PublicURL string

	// RequireVerified refuses log-ins until the person has opened the link from their sign-up.
	RequireVerified bool
}

// SetMails configures mails. It must be called before the service is used.
func (s *Service) SetMails(mails Mails) { s.mails = mails }

// accounts handles people's changes to their own accounts.
type accounts struct{ parts *parts }

// Link returns the token of a link's secret, or tenants.ErrLinkEnded.
func (a *accounts) Link(ctx context.Context, secret string) (tenants.Token, error) {
	return a.parts.store.Token(ctx, hashToken(secret), a.parts.now())
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
		return err // before hashing a password unnecessarily
	}
	hash, err := a.parts.prover.hash(ctx, password)
	if err != nil {
		return err
	}
	defer a.parts.logins.Forget()
	return a.parts.store.ResetPassword(ctx, token.Hash, a.parts.now(), hash, a.parts.letters.passwordMail)
}

// ConfirmEmail proves the address that a link was sent to: it verifies the account's address or changes it.
// It returns tenants.ErrLinkEnded or tenants.ErrEmailTaken.
func (a *accounts) ConfirmEmail(ctx context.Context, secret string) (tenants.Token, error) {
	defer a.parts.logins.Forget()
	return a.parts.store.ConfirmEmail(ctx, hashToken(secret), a.parts.now(), a.parts.letters.emailChangedMail)
}

// ChangePassword changes the password of a logged-in person who knows it, and ends their other logins. It
// returns a tenants.Invalid for current_password or password, or a tenants.TooMany.
func (a *accounts) ChangePassword(ctx context.Context, who tenants.Principal, current, password string) error {
	if err := checkPassword(password, who.User.Email); err != nil {
		return err
	}
	if err := a.parts.prover.confirm(ctx, who, "current_password", current); err != nil {
		return err
	}
	hash, err := a.parts.prover.hash(ctx, password)
	if err != nil {
		return err
	}
	defer a.parts.logins.Forget()
	return a.parts.store.ChangePassword(ctx, who.User, who.Login.ID, hash, a.parts.letters.passwordMail(who.User))
}

// AskEmail sends a link to the new address of a logged-in person who knows their password, and notifies the
// old address. It returns a tenants.Invalid for email or password, or a tenants.TooMany. It never reveals
// whether someone else has the address.
func (a *accounts) AskEmail(ctx context.Context, who tenants.Principal, password, email string) error {
	email, err := tenants.CheckEmail(email)
	if err != nil {
		return err
	}
	if email == who.User.Email {
		return tenants.Invalid{Field: "email", Message: "is your address already"}
	}
	if err := a.parts.prover.confirm(ctx, who, "password", password); err != nil {
		return err
	}
	if err := a.parts.prover.throttle.Take(ctx, mailsTo("change of address", email)); err != nil {
		return err
	}
	return a.parts.store.SendLetters(ctx, who.User.ID, []tenants.LinkMail{a.parts.letters.emailLetter(email)}, a.parts.letters.emailAskedMail(who.User.Email, email))
}

func hashToken(secret string) []byte {
	sum := sha256.Sum256([]byte("palimpsest link " + secret))
	return sum[:]
}

// DeleteAccount deletes the account of a logged-in person, with their memberships, logins, second factors and
// passkeys. They know their password or, if the account has no password because single sign-on created it,
// logged in within tenants.RecentLogin. Their API keys are revoked, or continue to send requests for another
// owner of the workspace. It returns a tenants.Invalid for password, a tenants.TooMany, a tenants.OnlyOwner
// of a workspace without another owner, tenants.ErrOperator, and tenants.ErrSignOnOnly for a login limited to
// one workspace while the person belongs to others too.
func (a *accounts) DeleteAccount(ctx context.Context, who tenants.Principal, password string, revokeKeys bool) error {
	if err := a.confirmDeletion(ctx, who, password); err != nil {
		return err
	}
	defer a.parts.logins.Forget()
	if err := a.parts.store.DeleteAccount(ctx, who.User.ID, revokeKeys); err != nil {
		return fmt.Errorf("delete account: %w", err)
	}
	return nil
}

// confirmDeletion requires proof that the account is the person's. For an account in one workspace only, that
// workspace's identity provider can prove it.
func (a *accounts) confirmDeletion(ctx context.Context, who tenants.Principal, password string) error {
	if !who.Login.SignOn.IsZero() {
		memberships, err := a.parts.store.Memberships(ctx, who.User.ID)
		if err != nil {
			return fmt.Errorf("delete account: %w", err)
		}
		for _, membership := range memberships {
			if membership.Workspace.ID != who.Login.SignOn {
				return tenants.ErrSignOnOnly
			}
		}
	}
	_, hash, err := a.parts.store.UserByEmail(ctx, who.User.Email)
	if err != nil {
		return fmt.Errorf("delete account: %w", err)
	}
	if hash != "" {
		return a.parts.prover.confirm(ctx, who, "password", password)
	}
	if a.parts.now().Sub(who.Login.CreatedAt) > tenants.RecentLogin {
		return tenants.Invalid{Field: "password", Message: "is not set for your account: log out and log in again, then delete it within 15 minutes"}
	}
	return nil
}
