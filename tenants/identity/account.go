package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
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
	SignUp(ctx context.Context, email, passwordHash, workspace string, letters ...tenants.Letter) (tenants.User, tenants.Workspace, error)
	// SignUpFirst does the same for the first person of the installation, or returns
	// tenants.ErrNotFirst.
	SignUpFirst(ctx context.Context, email, passwordHash, workspace string, letters ...tenants.Letter) (tenants.User, tenants.Workspace, error)
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
	AnswerRequest(ctx context.Context, request tenants.AccountRequest, letter tenants.Letter, known tenants.Mail) error
	// DropRequest takes a request out that is not answered.
	DropRequest(ctx context.Context, request tenants.AccountRequest) error
	// RefuseSignUp sends the mail refused instead, or known to the owner of an address
	// that is known, and makes no account.
	RefuseSignUp(ctx context.Context, request tenants.AccountRequest, refused, known tenants.Mail) error
	SendLetters(ctx context.Context, user uuid.UUID, letters []tenants.Letter, mails ...tenants.Mail) error
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

// AskReset has a link to set a password sent to anyone who has an address. It answers
// the same after the same work whether anybody has, and whether the address was sent too
// many links of late: then it is sent no other, and those it has go on to work. Too many
// requests from one place are a tenants.TooMany.
func (s *Service) AskReset(ctx context.Context, email, from string) error {
	return s.ask(ctx, tenants.RequestReset, email, from)
}

// AskVerification has a link to verify an address sent to anyone who has it and has not
// verified it. It answers as AskReset does.
func (s *Service) AskVerification(ctx context.Context, email, from string) error {
	return s.ask(ctx, tenants.RequestVerify, email, from)
}

func (s *Service) ask(ctx context.Context, kind tenants.RequestKind, email, from string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if err := s.throttle.Take(ctx, askingFrom(kind, from)); err != nil {
		return err
	}
	return s.store.AskAccount(ctx, tenants.AccountRequest{Kind: kind, Email: email, From: from})
}

// askSignUp keeps a sign-up for AnswerRequests and returns tenants.ErrMailSent.
func (s *Service) askSignUp(ctx context.Context, email, password, workspace string) error {
	from := tenants.ActorOf(ctx).From
	if err := s.throttle.Take(ctx, askingFrom(tenants.RequestSignUp, from)); err != nil {
		return err
	}
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	err = s.store.AskAccount(ctx, tenants.AccountRequest{
		Kind: tenants.RequestSignUp, Email: email, PasswordHash: hash, Workspace: workspace, From: from,
	})
	if err != nil {
		return err
	}
	return tenants.ErrMailSent
}

// AnswerRequests does what people asked for by their address. It may be run at any
// time, by several processes at once.
func (s *Service) AnswerRequests(ctx context.Context) error {
	requests, err := s.store.AccountRequests(ctx, requestsAtOne)
	if err != nil {
		return err
	}
	var failed []error
	for _, request := range requests {
		letter := s.verifyLetter(request.Email)
		if request.Kind == tenants.RequestReset {
			letter = s.resetLetter(request.Email)
		}
		failed = append(failed, s.answer(ctx, request, letter))
	}
	return errors.Join(failed...)
}

// answer answers one request, unless its address was sent too many mails of the kind. Who
// may sign up is asked again: of several who asked while nobody was there, one was the
// first, and settings may have changed.
func (s *Service) answer(ctx context.Context, request tenants.AccountRequest, letter tenants.Letter) error {
	mails := mailsTo(string(request.Kind), request.Email)
	err := s.throttle.Check(ctx, mails)
	if errors.Is(err, tenants.ErrTooMany) {
		return s.store.DropRequest(ctx, request)
	}
	if err == nil {
		err = s.answered(ctx, request, letter)
	}
	if err == nil {
		err = s.throttle.Take(ctx, mails) // now: what fails is tried again
	}
	if errors.Is(err, tenants.ErrTooMany) {
		return nil // another process sent one meanwhile
	}
	return err
}

func (s *Service) answered(ctx context.Context, request tenants.AccountRequest, letter tenants.Letter) (err error) {
	known := s.knownMail(request.Email)
	if request.Kind == tenants.RequestSignUp {
		request.OnlyFirst, err = s.takes(ctx, request.Email)
	}
	if err == nil {
		err = s.store.AnswerRequest(ctx, request, letter, known)
	}
	if isRefusal(err) || errors.Is(err, tenants.ErrNotFirst) {
		return s.store.RefuseSignUp(ctx, request, s.refusedMail(request.Email), known)
	}
	return err
}

// SendVerification sends a person who is logged in the link to verify their address
// again. Too many are a tenants.TooMany.
func (s *Service) SendVerification(ctx context.Context, user tenants.User) error {
	if user.VerifiedAt != nil {
		return nil
	}
	if err := s.throttle.Take(ctx, mailsTo(string(tenants.RequestVerify), user.Email)); err != nil {
		return err
	}
	return s.store.SendLetters(ctx, user.ID, []tenants.Letter{s.verifyLetter(user.Email)})
}

// Link returns what the secret of a link is good for, or tenants.ErrLinkEnded.
func (s *Service) Link(ctx context.Context, secret string) (tenants.Token, error) {
	return s.store.Token(ctx, hashToken(secret), s.now())
}

// ResetPassword sets the password of the person to whom a link was sent, and ends all
// their logins. It returns tenants.ErrLinkEnded, or a tenants.Invalid.
func (s *Service) ResetPassword(ctx context.Context, secret, password string) error {
	token, err := s.Link(ctx, secret)
	if err == nil && token.Kind != tenants.TokenReset {
		err = tenants.ErrLinkEnded
	}
	if err == nil {
		err = checkPassword(password, token.Email)
	}
	if err != nil {
		return err // before a password is hashed for nothing
	}
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	defer s.Forget()
	return s.store.ResetPassword(ctx, token.Hash, s.now(), hash, s.passwordMail)
}

// ConfirmEmail proves the address that a link was sent to: it verifies the account's
// or becomes it. It returns tenants.ErrLinkEnded or tenants.ErrEmailTaken.
func (s *Service) ConfirmEmail(ctx context.Context, secret string) (tenants.Token, error) {
	defer s.Forget()
	return s.store.ConfirmEmail(ctx, hashToken(secret), s.now(), s.emailChangedMail)
}

// ChangePassword gives someone who is logged in, and knows their password, another
// one, and ends their other logins. It returns a tenants.Invalid that names
// current_password or password, or a tenants.TooMany.
func (s *Service) ChangePassword(ctx context.Context, who tenants.Principal, current, password string) error {
	if err := checkPassword(password, who.User.Email); err != nil {
		return err
	}
	if err := s.confirm(ctx, who, "current_password", current); err != nil {
		return err
	}
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	defer s.Forget()
	return s.store.ChangePassword(ctx, who.User, who.Login.ID, hash, s.passwordMail(who.User))
}

// AskEmail sends a link to the address that is to become that of someone who is
// logged in and knows their password, and tells the old one. It returns a
// tenants.Invalid that names email or password, or a tenants.TooMany; never whether
// someone else has the address.
func (s *Service) AskEmail(ctx context.Context, who tenants.Principal, password, email string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if email == who.User.Email {
		return tenants.Invalid{Field: "email", Message: "is your address already"}
	}
	if err := s.confirm(ctx, who, "password", password); err != nil {
		return err
	}
	if err := s.throttle.Take(ctx, mailsTo("change of address", email)); err != nil {
		return err
	}
	return s.store.SendLetters(ctx, who.User.ID, []tenants.Letter{s.emailLetter(email)}, s.emailAskedMail(who.User.Email, email))
}

// confirm has a person who is logged in prove that they know their password. What they
// do then sends them a mail, so confirm bounds that too.
func (s *Service) confirm(ctx context.Context, who tenants.Principal, field, password string) error {
	_, err := s.verify(ctx, password, confirmTries(who.User, tenants.ActorOf(ctx).Place()))
	if errors.Is(err, tenants.ErrWrongLogin) {
		return tenants.Invalid{Field: field, Message: "is not your password"}
	}
	if err != nil {
		return err
	}
	return s.throttle.Take(ctx, Count{"changes of " + who.User.ID.String(), changesOfOne, signUpWindow})
}

// Logins returns the active logins of a user, the newest first.
func (s *Service) Logins(ctx context.Context, user uuid.UUID) ([]tenants.Login, error) {
	return s.store.Logins(ctx, user)
}

// EndLogin ends a login of a user, or returns tenants.ErrNotFound.
func (s *Service) EndLogin(ctx context.Context, user, id uuid.UUID) error {
	logins, err := s.store.Logins(ctx, user)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(logins, func(login tenants.Login) bool { return login.ID == id }) {
		return tenants.ErrNotFound
	}
	return s.LogOut(ctx, tenants.Login{ID: id, UserID: user})
}

// EndLogins ends all logins of a user.
func (s *Service) EndLogins(ctx context.Context, user uuid.UUID) error {
	defer s.Forget()
	return s.store.RevokeLogins(ctx, user)
}

// hash hashes a password when it is its turn.
func (s *Service) hash(ctx context.Context, password string) (string, error) {
	release, err := s.passwords.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return s.passwords.hash(password)
}

// newToken returns the secret of a link and what is kept of it.
func (s *Service) newToken(kind tenants.TokenKind, email string, age time.Duration) (secret string, token tenants.Token) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	secret = base64.RawURLEncoding.EncodeToString(random)
	now := s.now()
	return secret, tenants.Token{Hash: hashToken(secret), Kind: kind, Email: email, CreatedAt: now, ExpiresAt: now.Add(age)}
}

func hashToken(secret string) []byte {
	sum := sha256.Sum256([]byte("palimpsest link " + secret))
	return sum[:]
}
