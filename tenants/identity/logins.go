package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/localcache"
	"palimpsest/tenants"
)

const (
	// principalAge bounds how long an ended login is still accepted.
	principalAge    = 2 * time.Second
	knownPrincipals = 10_000
)

// LoginStore stores logins.
type LoginStore interface {
	CreateLogin(ctx context.Context, login tenants.Login) error
	// UsedPlace reports whether the person with an address has logged in from a place since a time. It does
	// the same work for every address.
	UsedPlace(ctx context.Context, email, place string, since time.Time) (bool, error)
	// ActiveLogin returns the principal of a login, or tenants.ErrLoginEnded.
	ActiveLogin(ctx context.Context, user, login uuid.UUID) (tenants.Principal, error)
	// Logins returns a user's active logins, the newest first.
	Logins(ctx context.Context, user uuid.UUID) ([]tenants.Login, error)
	RevokeLogin(ctx context.Context, user, login uuid.UUID) error
	RevokeLogins(ctx context.Context, user uuid.UUID) error
}

// logins opens, checks and ends logins.
type logins struct {
	store   Store
	tokens  tokens
	known   *localcache.Cache[[16]byte, tenants.Principal] // by login
	changes localcache.Changes
	now     func() time.Time
}

// OpenLogin is the second half of LogIn: it opens a login of a user whose identity is proven, and returns its
// token.
func (l *logins) OpenLogin(ctx context.Context, user tenants.User, userAgent string) (tenants.Principal, string, error) {
	memberships, err := l.store.Memberships(ctx, user.ID)
	if err != nil {
		return tenants.Principal{}, "", fmt.Errorf("log in: %w", err)
	}
	return l.open(ctx, user, memberships, userAgent)
}

// openBound opens a login limited to one workspace.
func (l *logins) openBound(ctx context.Context, user tenants.User, workspace tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error) {
	memberships, err := l.store.Memberships(ctx, user.ID)
	if err != nil {
		return tenants.Principal{}, "", fmt.Errorf("log in: %w", err)
	}
	for _, membership := range memberships {
		if membership.Workspace.ID == workspace {
			return l.openIn(ctx, user, memberships, membership, workspace, userAgent)
		}
	}
	return tenants.Principal{}, "", tenants.ErrNotFound
}

// open creates a login in the last used workspace.
func (l *logins) open(ctx context.Context, user tenants.User, memberships []tenants.Membership, userAgent string) (tenants.Principal, string, error) {
	return l.openIn(ctx, user, memberships, lastUsed(memberships), tenants.WorkspaceID{}, userAgent)
}

// openIn creates a login in the workspace of a membership, with or without single sign-on.
func (l *logins) openIn(ctx context.Context, user tenants.User, memberships []tenants.Membership, membership tenants.Membership, signOn tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error) {
	now := l.now()
	login := tenants.Login{
		ID: uuid.Must(uuid.NewV7()), UserID: user.ID, Workspace: membership.Workspace.ID, SignOn: signOn, UserAgent: userAgent,
		Place: tenants.ActorOf(ctx).Place(), CreatedAt: now, ExpiresAt: now.Add(tenants.LoginAge),
	}
	ctx = tenants.WithActor(ctx, tenants.Actor{User: user.ID, Name: user.Email, From: tenants.ActorOf(ctx).From})
	if err := l.store.CreateLogin(ctx, login); err != nil {
		return tenants.Principal{}, "", fmt.Errorf("create login: %w", err)
	}
	token, err := l.tokens.issue(login)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	return tenants.Principal{
		User: user, Login: login, Workspace: membership.Workspace, Role: membership.Role, Memberships: memberships,
	}.Bound(), token, nil
}

// LogOut ends a login: its token is refused everywhere within two seconds. A login that has ended already is
// not an error.
func (l *logins) LogOut(ctx context.Context, login tenants.Login) error {
	if err := l.store.RevokeLogin(ctx, login.UserID, login.ID); err != nil {
		return fmt.Errorf("log out: %w", err)
	}
	l.changes.Heard(func(uint64) { l.known.Delete(login.ID) }) // a concurrent read may still find it active
	return nil
}

// Forget makes the next use of every token ask the store, because a login has ended, or its workspace or role
// has changed.
func (l *logins) Forget() { l.changes.Heard(func(uint64) { l.known.Clear() }) }

// Authenticate returns the principal of a token, or tenants.ErrLoginEnded.
func (l *logins) Authenticate(ctx context.Context, token string) (tenants.Principal, error) {
	user, id, err := l.tokens.login(token)
	if err != nil {
		return tenants.Principal{}, err
	}
	if principal, ok := l.known.Get(id); ok {
		return principal, nil
	}
	changes := l.changes.Count()
	principal, err := l.store.ActiveLogin(ctx, user, id)
	if err != nil {
		return tenants.Principal{}, fmt.Errorf("authenticate: %w", err)
	}
	l.changes.Keep(changes, func() { l.known.Set(id, principal) })
	return principal, nil
}

// Logins returns the active logins of a user, the newest first.
func (l *logins) Logins(ctx context.Context, user uuid.UUID) ([]tenants.Login, error) {
	return l.store.Logins(ctx, user)
}

// EndLogin ends a login of a user, or returns tenants.ErrNotFound.
func (l *logins) EndLogin(ctx context.Context, user, id uuid.UUID) error {
	logins, err := l.store.Logins(ctx, user)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(logins, func(login tenants.Login) bool { return login.ID == id }) {
		return tenants.ErrNotFound
	}
	return l.LogOut(ctx, tenants.Login{ID: id, UserID: user})
}

// EndLogins ends all logins of a user.
func (l *logins) EndLogins(ctx context.Context, user uuid.UUID) error {
	defer l.Forget()
	return l.store.RevokeLogins(ctx, user)
}
