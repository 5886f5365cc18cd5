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
	// SecondFactor returns tenants.ErrNotFound for someone who has none any more.
	SecondFactor(ctx context.Context, user uuid.UUID) (tenants.SecondFactor, error)

	// ResealSecondFactor replaces a sealed secret, unless it has been replaced already.
	ResealSecondFactor(ctx context.Context, user uuid.UUID, old, sealed []byte) error
}

// ResealFactors does for the secrets of second factors what ResealAll does for provider
// keys.
func (v *Vault) ResealFactors(ctx context.Context, store FactorStore) (int, error) {
	users, err := store.SecondFactorUsers(ctx)
	if err != nil {
		return 0, fmt.Errorf("reseal second factors: %w", err)
	}
	resealed := 0
	var failures []error
	for _, user := range users {
		needed, err := v.resealFactor(ctx, store, user)
		if err != nil {
			failures = append(failures, fmt.Errorf("reseal second factor of %s: %w", user, err))
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

// SignOnStore keeps the single sign-on of all workspaces.
type SignOnStore interface {
	// SignOn returns tenants.ErrNotFound for a workspace that has none.
	SignOn(ctx context.Context, workspace tenants.WorkspaceID) (tenants.SignOn, error)

	// ResealSignOn replaces a sealed client secret, unless it has been replaced already.
	ResealSignOn(ctx context.Context, workspace tenants.WorkspaceID, old, sealed []byte) error
}

// ResealSignOns does for the client secrets of single sign-on what ResealAll does for
// provider keys.
func (v *Vault) ResealSignOns(ctx context.Context, all Workspaces, store SignOnStore) (int, error) {
	workspaces, err := all.AllWorkspaces(ctx)
	if err != nil {
		return 0, fmt.Errorf("reseal sign-ons: %w", err)
	}
	resealed := 0
	var failures []error
	for _, workspace := range workspaces {
		needed, err := v.resealSignOn(ctx, store, workspace)
		if err != nil {
			failures = append(failures, fmt.Errorf("reseal sign-on of %s: %w", workspace, err))
		}
		if needed && err == nil {
			resealed++
		}
	}
	return resealed, errors.Join(failures...)
}

func (v *Vault) resealSignOn(ctx context.Context, store SignOnStore, workspace tenants.WorkspaceID) (needed bool, err error) {
	signOn, err := store.SignOn(ctx, workspace)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	about := tenants.AboutSignOn(workspace, signOn.Issuer, signOn.ClientID)
	secret, newest, err := v.OpenAbout(about, signOn.Sealed)
	if err != nil || newest {
		return false, err
	}
	sealed, err := v.SealAbout(about, secret)
	if err != nil {
		return false, err
	}
	return true, store.ResealSignOn(ctx, workspace, signOn.Sealed, sealed)
}
