package identity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// slowLogins is a store whose logins are read slowly.
type slowLogins struct {
	identity.Store

	read chan struct{} // one when a login has been read
	on   chan struct{} // one to go on with what was read
}

// ActiveLogin implements identity.Store.
func (s *slowLogins) ActiveLogin(ctx context.Context, user, login uuid.UUID) (tenants.Principal, error) {
	principal, err := s.Store.ActiveLogin(ctx, user, login)
	s.read <- struct{}{}
	<-s.on
	return principal, err
}

// S9: a session that ends while the store is being read is refused on the next request,
// though it was found active. The clock stands still: nothing ends by its age.
func TestSessionRevokedDuringReadIsNotRemembered(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*identity.Service, tenants.Login) error{
		"told by another replica": func(service *identity.Service, _ tenants.Login) error { service.Forget(); return nil },
		"logged out here":         func(service *identity.Service, login tenants.Login) error { return service.LogOut(t.Context(), login) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			principal, token := b.signUp(t, "ada@example.com")
			store := &slowLogins{Store: storeOf(b.DB), read: make(chan struct{}, 2), on: make(chan struct{}, 2)}
			service, err := identity.NewService(identity.Store{Accounts: store, LoginStore: store, WorkspaceStore: store, Factors: store}, nil, [][]byte{b.signing}, b.clock.Now)
			if err != nil {
				t.Fatal(err)
			}
			outcome := make(chan error)
			go func() { _, err := service.Authenticate(context.WithoutCancel(t.Context()), token); outcome <- err }()
			<-store.read
			if err := b.DB.Logins.RevokeLogin(t.Context(), principal.User.ID, principal.Login.ID); err != nil {
				t.Fatal(err)
			}
			if err := tell(service, principal.Login); err != nil {
				t.Fatal(err)
			}
			store.on <- struct{}{}
			if err := <-outcome; err != nil {
				t.Fatal(err)
			}

			store.on <- struct{}{}
			if _, err := service.Authenticate(t.Context(), token); !errors.Is(err, tenants.ErrLoginEnded) {
				t.Errorf("the next request: %v, want ErrLoginEnded", err)
			}
		})
	}
}
