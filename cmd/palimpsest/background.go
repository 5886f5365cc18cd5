package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// keyFlush is how often the last use of API keys is written.
const keyFlush = 30 * time.Second

// The archive is indexed every indexEvery, indexLanes lanes at a time.
const (
	indexEvery = 2 * time.Second
	indexLanes = 64
)

// search starts what indexes the archive, and returns what searches it.
func (p *program) search(originals *archivedb.DB, safe *vault.Vault) *archivedb.Index {
	known := codecs()
	index := archivedb.NewIndex(originals, termKeys{vault: safe}, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		codec, is := known[format]
		if !is {
			return conversation.Message{}, fmt.Errorf("format %q is unknown", format)
		}
		return codec.Parse(raw)
	})
	p.every(indexEvery, func(ctx context.Context) {
		for done := 1; done > 0 && !p.health.draining.Load(); {
			var err error
			if done, err = index.IndexPending(ctx, indexLanes); err != nil && ctx.Err() == nil {
				p.log.WarnContext(ctx, "messages are not found yet", "error", err)
				return
			}
		}
	})
	return index
}

// termKeys derives the keys of the search from the master key.
type termKeys struct{ vault *vault.Vault }

// TermKey implements archivedb.Keys.
func (k termKeys) TermKey(workspace uuid.UUID) ([]byte, error) {
	return k.vault.Derive("search terms of " + workspace.String()), nil
}

// every runs work again and again, and a last time when the program closes.
func (p *program) every(interval time.Duration, work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				work(ctx)
			case <-ctx.Done():
				work(context.WithoutCancel(ctx))
				return
			}
		}
	}()
	p.onClose(func() { cancel(); <-done })
}

// changes is what has to hear of changes that another replica makes.
type changes struct {
	people   *identity.Service
	keys     *identity.Keys
	settings *api.Settings
	lanes    *session.Resolver
}

// hear drops from memory what changes in the database, and everything after a
// time in which a change may have been missed.
func (p *program) hear(ctx context.Context, db *tenantsdb.DB, changes changes) error {
	listener := db.NewListener(p.log)
	listener.Handle(tenantsdb.LoginsChannel, func(string) { changes.people.Forget() }, changes.people.Forget)
	listener.Handle(tenantsdb.KeysChannel, func(string) { changes.keys.Forget() }, changes.keys.Forget)
	listener.Handle(tenantsdb.SettingsChannel, func(workspace string) {
		if id, err := uuid.Parse(workspace); err == nil {
			changes.settings.Forget(id)
		}
	}, changes.settings.ForgetAll)
	listener.Handle(sessiondb.Channel, ofLane(changes.lanes.Changed), changes.lanes.ForgetAll)
	listener.Handle(sessiondb.SummaryChannel, ofLane(changes.lanes.SummaryChanged), changes.lanes.ForgetAll)
	if err := listener.Start(ctx); err != nil {
		return err
	}
	p.onClose(listener.Stop)
	return nil
}

// ofLane returns what reads a notice about a lane, "workspace/lane/number".
func ofLane(changed func(lane uuid.UUID, number int)) func(payload string) {
	return func(payload string) {
		parts := strings.Split(payload, "/")
		if len(parts) != 3 {
			return
		}
		lane, err := uuid.Parse(parts[1])
		number, numberErr := strconv.Atoi(parts[2])
		if err == nil && numberErr == nil {
			changed(lane, number)
		}
	}
}
