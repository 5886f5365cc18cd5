package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// AlertStore keeps the alert channels of all workspaces.
type AlertStore interface {
	AlertChannels(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.AlertChannel, error)

	// ResealAlertChannel replaces what is sealed of a channel, unless it has been replaced already.
	ResealAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, sealed []byte) error
}

// ResealAlertChannels does for the URLs and secrets of alert channels what ResealAll does for
// provider keys.
func (v *Vault) ResealAlertChannels(ctx context.Context, all Workspaces, store AlertStore) (int, error) {
	workspaces, err := all.AllWorkspaces(ctx)
	if err != nil {
		return 0, fmt.Errorf("reseal alert channels: %w", err)
	}
	resealed := 0
	var failures []error
	for _, workspace := range workspaces {
		channels, err := store.AlertChannels(ctx, workspace)
		failures = append(failures, err)
		for _, channel := range channels {
			needed, err := v.resealAlertChannel(ctx, store, workspace, channel)
			if err != nil {
				failures = append(failures, fmt.Errorf("reseal alert channel %s: %w", channel.ID, err))
			}
			if needed && err == nil {
				resealed++
			}
		}
	}
	return resealed, errors.Join(failures...)
}

func (v *Vault) resealAlertChannel(ctx context.Context, store AlertStore, workspace tenants.WorkspaceID, channel tenants.AlertChannel) (needed bool, err error) {
	if channel.Sealed == nil {
		return false, nil
	}
	about := tenants.AboutAlertChannel(workspace, channel.ID)
	secret, newest, err := v.OpenAbout(about, channel.Sealed)
	if err != nil || newest {
		return false, err
	}
	sealed, err := v.SealAbout(about, secret)
	if err != nil {
		return false, err
	}
	return true, store.ResealAlertChannel(ctx, workspace, channel.ID, channel.Sealed, sealed)
}
