package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// FactorStore keeps the second factors of all people.
type FactorStore interface {
	SecondFactorUsers(ctx context.Context) ([]uuid.UUID, error)
	// SecondFactor returns tenants.ErrNotFound for somebody who has none any more.
	SecondFactor(ctx context.Context, user uuid.UUID) (tenants.SecondFactor, error)

	// ResealSecondFactor replaces a sealed secret, unless it has been replaced already.
	ResealSecondFactor(ctx context.Context, user uuid.UUID, old, sealed []byte) error
}

// ResealFactors does for the secrets of second factors what ResealAll does for provider
// keys.
func (v *Vault) ResealFactors(ctx context.Context, store FactorStore) (int, error) {
	users, err := store.SecondFactorUsers(ctx)
	if err != nil {
		return 0, fmt.Errorf("seal second factors anew: %w", err)
	}
	resealed := 0
	var failures []error
	for _, user := range users {
		needed, err := v.resealFactor(ctx, store, user)
		if err != nil {
			failures = append(failures, fmt.Errorf("seal second factor of %s anew: %w", user, err))
		}
		if needed && err == nil {
			resealed++
		}
	}
	return resealed, errors.Join(failures...)
}

func (v *Vault) resealFactor(ctx context.Context, store FactorStore, user uuid.UUID) (needed bool, err error) {
	factor, err := store.SecondFactor(ctx, user)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	about := tenants.AboutSecondFactor(user)
	secret, newest, err := v.OpenAbout(about, factor.Sealed)
	if err != nil || newest {
		return false, err
	}
	sealed, err := v.SealAbout(about, secret)
	if err != nil {
		return false, err
	}
	return true, store.ResealSecondFactor(ctx, user, factor.Sealed, sealed)
}
