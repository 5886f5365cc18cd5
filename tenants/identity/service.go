package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/pipeline/localcache"
	"palimpsest/tenants"
)

// Store stores people, their memberships and their logins. All fields are required.
type Store struct {
	Accounts
	LoginStore
	WorkspaceStore
	Factors
}

// Service signs people up, logs them in and out, and identifies them by their token. Each part has one duty
// and references the parts that it needs.
type Service struct {
	entrance      // who may sign up
	prover        // password checks
	secondFactors // second factors
	logins        // logins
	accounts      // changes to their own accounts
	requests      // requests by mail
	letters       // mails

	store    Store
	throttle tenants.Throttle
	now      func() time.Time
}

// parts are what changes to accounts, requests by mail and second factors have in common.
type parts struct {
	store    Store
	entrance *entrance
	prover   *prover
	logins   *logins
	letters  *letters
	now      func() time.Time
}

// NewService returns a Service. The first signing key signs tokens; all keys verify them.
func NewService(store Store, throttle tenants.Throttle, signingKeys [][]byte, now func() time.Time) (*Service, error) {
	passwords, err := newPasswords()
	if err != nil {
		return nil, err
	}
	known, err := localcache.New[[16]byte](localcache.Options[tenants.Principal]{MaximumSize: knownPrincipals, ExpireAfterWrite: principalAge, Now: now})
	if err != nil {
		return nil, fmt.Errorf("known principals: %w", err)
	}
	s := &Service{store: store, throttle: throttle, now: now}
	s.entrance = entrance{store: store, throttle: throttle}
	s.prover = prover{store: store, passwords: passwords, throttle: throttle, now: now}
	s.letters = letters{now: now}
	s.logins = logins{store: store, tokens: tokens{keys: signingKeys, now: now}, known: known, now: now}
	parts := &parts{store: store, entrance: &s.entrance, prover: &s.prover, logins: &s.logins, letters: &s.letters, now: now}
	s.requests, s.accounts, s.secondFactors = requests{parts}, accounts{parts}, secondFactors{parts: parts}
	return s, nil
}

// SignUp creates a user with a workspace and logs them in. It returns the login's token. Bad input is a
// tenants.Invalid or tenants.ErrEmailTaken; tenants.ErrInviteOnly and a tenants.TooMany mean that sign-up is
// closed or rate-limited. If addresses must be verified first, it returns tenants.ErrMailSent. If sign-ups
// are quiet, it then does the same work for known and unknown addresses.
func (s *Service) SignUp(ctx context.Context, email, password, workspace, userAgent string) (tenants.Principal, string, error) {
	email, err := tenants.CheckEmail(email)
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
	var letters []tenants.LinkMail
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

// LogIn logs a user in to their last used workspace, or without a workspace if they have no membership, and
// returns the login's token. For an unknown address and a wrong password it returns tenants.ErrWrongLogin
// after about the same time. It returns tenants.ErrTooMany, as a tenants.TooMany with the time to wait, after
// too many failures of one address from one place, of one place, or of one address from places where its
// person has not logged in. For a person with a second factor it returns a tenants.CodeNeeded, for
// LogInWithCode.
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

// VerifyPassword is the first half of LogIn: it returns the user with an address and a password, or the
// errors of LogIn. If addresses must be verified first, an unverified one is a wrong login like any other,
// because a sign-up with it got the same answer as one with a known address.
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

// OpenSignOn opens a login of a user from a workspace's single sign-on, which is limited to that workspace,
// and returns its token. It returns a tenants.CodeNeeded for a person with a second factor.
func (s *Service) OpenSignOn(ctx context.Context, user tenants.User, workspace tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error) {
	if err := s.needsCode(ctx, user, workspace); err != nil {
		return tenants.Principal{}, "", err
	}
	return s.openBound(ctx, user, workspace, userAgent)
}
