package identity

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"palimpsest/tenants"
)

const (
	// principalAge bounds how long an ended login is still believed.
	principalAge    = 2 * time.Second
	knownPrincipals = 10_000
)

// Store keeps people, what they belong to and where they are logged in. All of it must be set.
type Store struct {
	Accounts
	LoginStore
	WorkspaceStore
	Factors
}

// LoginStore keeps where people are logged in.
type LoginStore interface {
	CreateLogin(ctx context.Context, login tenants.Login) error
	// UsedPlace reports whether the person with an address has logged in from a place since
	// a time. It does the same for every address.
	UsedPlace(ctx context.Context, email, place string, since time.Time) (bool, error)
	// ActiveLogin returns who is logged in, or tenants.ErrLoginEnded.
	ActiveLogin(ctx context.Context, user, login uuid.UUID) (tenants.Principal, error)
	// Logins returns a user's active logins, the newest first.
	Logins(ctx context.Context, user uuid.UUID) ([]tenants.Login, error)
	RevokeLogin(ctx context.Context, user, login uuid.UUID) error
	RevokeLogins(ctx context.Context, user uuid.UUID) error
}

// Service signs people up, logs them in and out, and knows them by their token.
type Service struct {
	store     Store
	passwords *passwords
	tokens    tokens
	throttle  Throttle
	mails     Mails
	signUps   SignUps
	sealer    tenants.Sealer
	known     *otter.Cache[uuid.UUID, tenants.Principal]
	begun     atomic.Bool   // someone has signed up
	changes   atomic.Uint64 // times that logins changed
	now       func() time.Time
}

// NewService returns a Service. The first signing key signs tokens, all verify.
func NewService(store Store, throttle Throttle, signingKeys [][]byte, now func() time.Time) (*Service, error) {
	passwords, err := newPasswords()
	if err != nil {
		return nil, err
	}
	known, err := otter.New(&otter.Options[uuid.UUID, tenants.Principal]{
		MaximumSize:      knownPrincipals,
		Clock:            cacheClock(now),
		ExpiryCalculator: otter.ExpiryWriting[uuid.UUID, tenants.Principal](principalAge),
	})
	if err != nil {
		return nil, fmt.Errorf("known principals: %w", err)
	}
	return &Service{
		store: store, passwords: passwords, throttle: throttle, known: known, now: now,
		tokens: tokens{keys: signingKeys, now: now},
	}, nil
}

// IsNew reports whether nobody has signed up in this installation yet.
func (s *Service) IsNew(ctx context.Context) (bool, error) {
	if s.begun.Load() {
		return false, nil
	}
	has, err := s.store.HasWorkspaces(ctx)
	if has {
		s.begun.Store(true) // and stays so
	}
	return !has && err == nil, err
}

// SignUp creates a user with a workspace and logs them in. It returns the
// login's token. What a person can mend is a tenants.Invalid or
// tenants.ErrEmailTaken; tenants.ErrInviteOnly and a tenants.TooMany say that nobody
// signs up here, or not so often. Where addresses must be verified first, it answers
// tenants.ErrMailSent. Where sign-ups are quiet it does so after the same work for every
// address, known or not.
func (s *Service) SignUp(ctx context.Context, email, password, workspace, userAgent string) (tenants.Principal, string, error) {
	email, err := normalEmail(email)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	if err := checkPassword(password, email); err != nil {
		return tenants.Principal{}, "", err
	}
	if workspace, err = checkWorkspace(workspace); err != nil {
		return tenants.Principal{}, "", err
	}
	onlyFirst, err := s.maySignUp(ctx, email)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	byMail, onlyFirst, err := s.byMail(ctx, email, onlyFirst)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	if byMail {
		return tenants.Principal{}, "", s.askSignUp(ctx, email, password, workspace)
	}
	hash, err := s.hash(ctx, password)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	var letters []tenants.Letter
	if s.mails.PublicURL != "" {
		letters = append(letters, s.verifyLetter(email))
	}
	store := s.store.SignUp
	if onlyFirst {
		store = s.store.SignUpFirst
	}
	user, created, err := store(ctx, email, hash, workspace, letters...)
	if errors.Is(err, tenants.ErrNotFirst) {
		return tenants.Principal{}, "", s.notFirst(ctx, email, password, workspace)
	}
	if err != nil {
		return tenants.Principal{}, "", fmt.Errorf("sign up: %w", err)
	}
	return s.open(ctx, user, []tenants.Membership{{Workspace: created, Role: tenants.Owner}}, userAgent)
}

// LogIn logs a user in, to the workspace that they used last or to none if they
// belong to none, and returns the login's token. It answers the same, in
// about the same time, for an unknown address and a wrong password:
// tenants.ErrWrongLogin. Too many failures of one address from one place, of one place, or
// of one address from places where its person has not logged in, are tenants.ErrTooMany,
// as a tenants.TooMany that says how long to wait. A person with a second factor is a
// tenants.CodeNeeded, for LogInWithCode.
func (s *Service) LogIn(ctx context.Context, email, password, from, userAgent string) (tenants.Principal, string, error) {
	user, err := s.VerifyPassword(ctx, email, password, from)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	if err := s.needsCode(ctx, user, tenants.WorkspaceID{}); err != nil {
		return tenants.Principal{}, "", err
	}
	return s.OpenLogin(tenants.WithActor(ctx, tenants.Actor{User: user.ID, Name: user.Email, From: from}), user, userAgent)
}

// VerifyPassword is the first half of LogIn: it returns who has an address and a
// password, or the errors of LogIn. Where addresses must be verified first, one that
// is not is a wrong login like any other: a sign-up with it was answered like one with
// a known address.
func (s *Service) VerifyPassword(ctx context.Context, email, password, from string) (tenants.User, error) {
	email, err := normalEmail(email)
	if err != nil {
		return tenants.User{}, tenants.ErrWrongLogin
	}
	tries := logInTries(email, from)
	user, err := s.verify(ctx, password, tries)
	if err != nil {
		return tenants.User{}, err
	}
	if (s.mails.RequireVerified || user.MustVerify) && user.VerifiedAt == nil {
		return tenants.User{}, s.failed(ctx, tries, tenants.ErrWrongLogin)
	}
	return user, nil
}

// OpenLogin is the second half of LogIn: it opens a login of a user who has proven
// who they are, and returns its token.
func (s *Service) OpenLogin(ctx context.Context, user tenants.User, userAgent string) (tenants.Principal, string, error) {
	memberships, err := s.store.Memberships(ctx, user.ID)
	if err != nil {
		return tenants.Principal{}, "", fmt.Errorf("log in: %w", err)
	}
	return s.open(ctx, user, memberships, userAgent)
}

// OpenSignOn opens a login of a user whom a workspace's single sign-on knows, which opens
// that workspace only, and returns its token. It returns a tenants.CodeNeeded for
// someone with a second factor.
func (s *Service) OpenSignOn(ctx context.Context, user tenants.User, workspace tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error) {
	if err := s.needsCode(ctx, user, workspace); err != nil {
		return tenants.Principal{}, "", err
	}
	return s.openBound(ctx, user, workspace, userAgent)
}

// openBound opens a login that opens one workspace only.
func (s *Service) openBound(ctx context.Context, user tenants.User, workspace tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error) {
	memberships, err := s.store.Memberships(ctx, user.ID)
	if err != nil {
		return tenants.Principal{}, "", fmt.Errorf("log in: %w", err)
	}
	for _, membership := range memberships {
		if membership.Workspace.ID == workspace {
			return s.openIn(ctx, user, memberships, membership, workspace, userAgent)
		}
	}
	return tenants.Principal{}, "", tenants.ErrNotFound
}

// verify returns the user with the address of tries and a password.
func (s *Service) verify(ctx context.Context, password string, tries tries) (tenants.User, error) {
	if err := s.mayTry(ctx, tries); err != nil {
		return tenants.User{}, err
	}
	release, err := s.passwords.acquire(ctx)
	if err != nil {
		return tenants.User{}, err
	}
	defer release()
	// Again: of many attempts at once, those before this one have failed by now.
	if err := s.mayTry(ctx, tries); err != nil {
		return tenants.User{}, err
	}
	user, hash, err := s.store.UserByEmail(ctx, tries.email)
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return tenants.User{}, fmt.Errorf("log in: %w", err)
	}
	matches, current, err := s.passwords.matches(password, hash)
	if err != nil {
		return tenants.User{}, err
	}
	if !matches {
		return tenants.User{}, s.failed(ctx, tries, tenants.ErrWrongLogin)
	}
	if !current {
		return user, s.renewHash(ctx, user, password, hash)
	}
	return user, nil
}

// renewHash keeps a password, which was right, under a hash as they are made now. The caller
// holds a slot.
func (s *Service) renewHash(ctx context.Context, user tenants.User, password, old string) error {
	hash, err := s.passwords.hash(password)
	if err != nil {
		return err
	}
	return s.store.RenewPasswordHash(ctx, user.ID, old, hash)
}

// LogOut ends a login: its token is refused everywhere within two seconds. One
// that has ended already is no error.
func (s *Service) LogOut(ctx context.Context, login tenants.Login) error {
	if err := s.store.RevokeLogin(ctx, login.UserID, login.ID); err != nil {
		return fmt.Errorf("log out: %w", err)
	}
	s.changes.Add(1) // a read under way may still find it active
	s.known.Invalidate(login.ID)
	return nil
}

// Forget makes the next use of every token ask the store: a login has ended, or works
// elsewhere or with another role.
func (s *Service) Forget() {
	s.changes.Add(1)
	s.known.InvalidateAll()
}

// Authenticate returns who a token belongs to, or tenants.ErrLoginEnded.
func (s *Service) Authenticate(ctx context.Context, token string) (tenants.Principal, error) {
	user, id, err := s.tokens.login(token)
	if err != nil {
		return tenants.Principal{}, err
	}
	if principal, ok := s.known.GetIfPresent(id); ok {
		return principal, nil
	}
	changes := s.changes.Load()
	principal, err := s.store.ActiveLogin(ctx, user, id)
	if err != nil {
		return tenants.Principal{}, fmt.Errorf("authenticate: %w", err)
	}
	s.known.Set(id, principal)
	if s.changes.Load() != changes {
		s.known.Invalidate(id) // what was read may be from before
	}
	return principal, nil
}

// open creates a login in the workspace that was used last.
func (s *Service) open(ctx context.Context, user tenants.User, memberships []tenants.Membership, userAgent string) (tenants.Principal, string, error) {
	return s.openIn(ctx, user, memberships, lastUsed(memberships), tenants.WorkspaceID{}, userAgent)
}

// openIn creates a login in the workspace of a membership, which came through a single
// sign-on or not.
func (s *Service) openIn(ctx context.Context, user tenants.User, memberships []tenants.Membership, membership tenants.Membership, signOn tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error) {
	now := s.now()
	login := tenants.Login{
		ID: uuid.Must(uuid.NewV7()), UserID: user.ID, Workspace: membership.Workspace.ID, SignOn: signOn, UserAgent: userAgent,
		Place: tenants.ActorOf(ctx).Place(), CreatedAt: now, ExpiresAt: now.Add(tenants.LoginAge),
	}
	ctx = tenants.WithActor(ctx, tenants.Actor{User: user.ID, Name: user.Email, From: tenants.ActorOf(ctx).From})
	if err := s.store.CreateLogin(ctx, login); err != nil {
		return tenants.Principal{}, "", fmt.Errorf("create login: %w", err)
	}
	token, err := s.tokens.issue(login)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	return tenants.Principal{
		User: user, Login: login, Workspace: membership.Workspace, Role: membership.Role, Memberships: memberships,
	}.Bound(), token, nil
}
