package main

import (
	"context"
	"errors"
	"time"

	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
)

const (
	// upkeepEvery is the pause between two rounds of upkeep: what has expired is
	// gone well within a day.
	upkeepEvery = time.Hour
	// sweepLimit bounds the sessions that one round deletes.
	sweepLimit = 1000
)

// upkeep keeps what is stored as it should be: data keys are wrapped with the
// newest master key, nothing lies open that was stored before it was sealed, and
// no session is kept longer than its workspace wants.
type upkeep struct {
	db       *tenantsdb.DB
	keys     *datakeys.Keeper
	sessions *sessiondb.Store
}

// run does one round. It may run in several processes at once.
func (u upkeep) run(ctx context.Context) (rewrapped, sealed, deleted int, err error) {
	rewrapped, rewrapErr := u.keys.RewrapAll(ctx)
	workspaces, sealErr := u.db.AllWorkspaces(ctx)
	for _, workspace := range workspaces {
		count, err := u.sessions.Seal(ctx, workspace)
		sealed, sealErr = sealed+count, errors.Join(sealErr, err)
	}
	deleted, sweepErr := u.sessions.Sweep(ctx, time.Now(), sweepLimit)
	return rewrapped, sealed, deleted, errors.Join(rewrapErr, sealErr, sweepErr)
}

// keepUp runs upkeep at once and then every hour until the program closes.
func (p *program) keepUp(work upkeep) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(upkeepEvery)
		defer ticker.Stop()
		for {
			rewrapped, sealed, deleted, err := work.run(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				p.log.Warn("upkeep of what is stored", "error", err)
			case rewrapped+sealed+deleted > 0:
				p.log.Info("upkeep of what is stored", "rewrapped_keys", rewrapped, "sealed", sealed, "deleted_sessions", deleted)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	p.onClose(func() { cancel(); <-done })
}
