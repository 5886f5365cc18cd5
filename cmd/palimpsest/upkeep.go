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
	// upkeepEvery is the pause between two rounds of upkeep: what has expired is
	// gone well within a day.
	upkeepEvery   = time.Hour
	upkeepTimeout = 50 * time.Minute
	// foldEvery bounds how many appended rows those who read sums add up themselves.
	foldEvery   = time.Minute
	foldTimeout = 10 * time.Minute
	// sweepLimit is how many sessions are deleted before it is asked whether to go on.
	sweepLimit = 1000
)

// upkeep keeps what is stored as it should be: provider keys and data keys are sealed
// with the newest master key, and no session is kept longer than its workspace wants.
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

// sweep deletes everything that has expired, however much it is: a round that is cut
// off is followed by the next one.
func (u upkeep) sweep(ctx context.Context) (deleted int, err error) {
	for {
		some, err := u.sessions.Cleaner().Sweep(ctx, u.now(), sweepLimit)
		deleted += some
		if some < sweepLimit { // also where some workspaces fail: the others go on
			return deleted, err
		}
	}
}
