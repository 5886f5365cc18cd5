package passkey_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/passkey"
)

// counting counts what is asked of a store. It has no other method: what it does not count
// panics.
type counting struct {
	passkey.Store

	db     passkey.Store
	owners int
}

func (c *counting) PasskeyOwner(ctx context.Context, user uuid.UUID) (tenants.User, []tenants.Passkey, error) {
	c.owners++
	return c.db.PasskeyOwner(ctx, user)
}

// S11: to begin a log-in with a passkey takes no address and asks nothing of the store; to
// answer for a person who exists asks the same as for one who does not.
func TestPasskeyLogInIsTheSameWorkForKnownAndUnknownPeople(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	store := &counting{db: h.DB.Factors}
	config := h.service.Config
	config.Store = store
	service := passkey.New(config)
	for name, user := range map[string]uuid.UUID{"a known person": h.who.User.ID, "an unknown person": uuid.New()} {
		stranger := *h
		stranger.device.Options.UserHandle, stranger.key = user[:], newKey()
		options, held, err := service.Ask()
		if err != nil || store.owners != 0 {
			t.Fatalf("begin: asked for %d people, %v", store.owners, err)
		}
		if _, err := service.LogIn(t.Context(), held, stranger.assert(t, options), "test"); !errors.Is(err, tenants.ErrPasskey) || store.owners != 1 {
			t.Errorf("%s: asked for %d people, %v", name, store.owners, err)
		}
		store.owners = 0
	}
}
