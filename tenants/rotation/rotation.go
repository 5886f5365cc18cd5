// Package rotation reseals data of older master keys with the newest one, so that the older ones can be
// removed. Each function returns the number of values that it resealed. After it returns without an error,
// its data needs no older master key. It may run at any time, alongside requests that read the secrets and
// people who replace them.
package rotation

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// ProviderKeys reseals the secrets of provider keys. It continues after a key that does not open.
func ProviderKeys(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (int, error) {
	return inEach(ctx, db, "provider keys", func(workspace tenants.WorkspaceID) (int, error) {
		keys, err := db.ProviderKeys.ProviderKeys(ctx, workspace)
		if err != nil {
			return 0, fmt.Errorf("reseal provider keys: %w", err)
		}
		resealed := 0
		var failures []error
		for _, key := range keys {
			sealed, needed, err := safe.Reseal(key)
			if err == nil && needed {
				err = db.ProviderKeys.ResealProviderKey(ctx, workspace, key.ID, key.Sealed, sealed)
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("reseal provider key %s: %w", key.ID, err))
				continue
			}
			if needed {
				resealed++
			}
		}
		return resealed, errors.Join(failures...)
	})
}

// AlertChannels reseals the URLs and secrets of alert channels.
func AlertChannels(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (int, error) {
	return inEach(ctx, db, "alert channels", func(workspace tenants.WorkspaceID) (int, error) {
		channels, err := db.Alerts.AlertChannels(ctx, workspace)
		resealed, failures := 0, []error{err}
		for _, channel := range channels {
			needed, err := alertChannel(ctx, db, safe, workspace, channel)
			if err != nil {
				failures = append(failures, fmt.Errorf("reseal alert channel %s: %w", channel.ID, err))
			}
			if needed && err == nil {
				resealed++
			}
		}
		return resealed, errors.Join(failures...)
	})
}

func alertChannel(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault, workspace tenants.WorkspaceID, channel tenants.AlertChannel) (needed bool, err error) {
	if channel.Sealed == nil {
		return false, nil
	}
	sealed, needed, err := safe.ResealAbout(tenants.AboutAlertChannel(workspace, channel.ID), channel.Sealed)
	if err != nil || !needed {
		return false, err
	}
	return true, db.Alerts.ResealAlertChannel(ctx, workspace, channel.ID, channel.Sealed, sealed)
}

// SignOns reseals the client secrets of single sign-on.
func SignOns(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (int, error) {
	return inEach(ctx, db, "sign-ons", func(workspace tenants.WorkspaceID) (int, error) {
		needed, err := signOn(ctx, db, safe, workspace)
		if err != nil {
			return 0, fmt.Errorf("reseal sign-on of %s: %w", workspace, err)
		}
		if !needed {
			return 0, nil
		}
		return 1, nil
	})
}

func signOn(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault, workspace tenants.WorkspaceID) (needed bool, err error) {
	signOn, err := db.SignOn.SignOn(ctx, workspace)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sealed, needed, err := safe.ResealAbout(tenants.AboutSignOn(workspace, signOn.Issuer, signOn.ClientID), signOn.Sealed)
	if err != nil || !needed {
		return false, err
	}
	return true, db.SignOn.ResealSignOn(ctx, workspace, signOn.Sealed, sealed)
}

// inEach reseals something in every workspace. It continues after a workspace that fails.
func inEach(ctx context.Context, db *tenantsdb.DB, what string, reseal func(workspace tenants.WorkspaceID) (int, error)) (int, error) {
	workspaces, err := db.Workspaces.AllWorkspaces(ctx)
	if err != nil {
		return 0, fmt.Errorf("reseal %s: %w", what, err)
	}
	resealed := 0
	var failures []error
	for _, workspace := range workspaces {
		count, err := reseal(workspace)
		resealed, failures = resealed+count, append(failures, err)
	}
	return resealed, errors.Join(failures...)
}

// SecondFactors reseals the secrets of second factors.
func SecondFactors(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (int, error) {
	users, err := db.Factors.SecondFactorUsers(ctx)
	if err != nil {
		return 0, fmt.Errorf("reseal second factors: %w", err)
	}
	resealed := 0
	var failures []error
	for _, user := range users {
		needed, err := secondFactor(ctx, db, safe, user)
		if err != nil {
			failures = append(failures, fmt.Errorf("reseal second factor of %s: %w", user, err))
		}
		if needed && err == nil {
			resealed++
		}
	}
	return resealed, errors.Join(failures...)
}

func secondFactor(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault, user uuid.UUID) (needed bool, err error) {
	factor, err := db.Factors.SecondFactor(ctx, user)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sealed, needed, err := safe.ResealAbout(tenants.AboutSecondFactor(user), factor.Sealed)
	if err != nil || !needed {
		return false, err
	}
	return true, db.Factors.ResealSecondFactor(ctx, user, factor.Sealed, sealed)
}

// Proof reseals the proof of the database's master key, and reports whether this was needed.
func Proof(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (bool, error) {
	needed, err := proof(ctx, db, safe)
	if err != nil {
		return false, fmt.Errorf("reseal proof of the master key: %w", err)
	}
	return needed, nil
}

func proof(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) (bool, error) {
	kept, err := db.DataKeys.MasterProof(ctx)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sealed, needed, err := safe.ResealProof(kept)
	if err != nil || !needed {
		return false, err
	}
	return true, db.DataKeys.ResealMasterProof(ctx, kept, sealed)
}
