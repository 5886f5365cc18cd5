package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

const (
	// upkeepEvery is the pause between two rounds of upkeep, so that expired data is gone well within a
	// day.
	upkeepEvery   = time.Hour
	upkeepTimeout = 50 * time.Minute
	// foldEvery limits how many appended rows readers of sums must add up themselves.
	foldEvery   = time.Minute
	foldTimeout = 10 * time.Minute
	// sweepLimit is the maximum number of sessions that one call of Sweep deletes.
	sweepLimit = 1000
)

// upkeep maintains stored data: it seals provider keys and data keys with the newest master key, and
// deletes sessions after the retention of their workspace.
type upkeep struct {
	db       *tenantsdb.DB
	keys     *datakeys.Manager
	vault    *vault.Vault
	rotation *masterRotation
	sessions *sessiondb.Store
	log      *slog.Logger
	now      func() time.Time
}

// run does one round.
func (u upkeep) run(ctx context.Context) error {
	rewrapErr := u.rotation.run(ctx, u.db, u.keys, u.vault, u.log)
	deleted, sweepErr := u.sweep(ctx)
	if deleted > 0 {
		u.log.InfoContext(ctx, "upkeep of what is stored", "deleted_sessions", deleted)
	}
	return errors.Join(rewrapErr, sweepErr)
}

// sweep deletes all expired data, however much it is. The next round continues a round that was cut off.
func (u upkeep) sweep(ctx context.Context) (deleted int, err error) {
	for {
		some, err := u.sessions.Cleaner().Sweep(ctx, u.now(), sweepLimit)
		deleted += some
		if some < sweepLimit { // also if some workspaces fail, because the others continue
			return deleted, err
		}
	}
}
