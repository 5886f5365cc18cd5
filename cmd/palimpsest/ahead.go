package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"palimpsest/api/proxysettings"
	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

const (
	// aheadSince is how recently an entry must have been used to be read ahead, the time that providers
	// keep a session's cache.
	aheadSince = session.LongTTL
	// aheadMost limits the API keys, and the lanes, to read ahead, because each takes some milliseconds.
	aheadMost    = 1000
	aheadTimeout = time.Minute
)

// ahead loads recently used state into this process before its requests arrive, because the database may be
// away by then: API keys, workspace settings, and lanes that other replicas have compacted.
type ahead struct {
	base

	keys     *identity.Keys
	settings *proxysettings.Cache
	archive  *archive.Keys
	sessions *sessiondb.Store
	lanes    *session.Resolver
}

// start returns a function that starts the reading without waiting for it.
func (a ahead) start() func() {
	if a.Config.Storage.DatabaseURL == "" || !a.Config.Serving.Role.Proxies() { // no other replica, or no requests
		return func() {}
	}
	wanted := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-wanted:
			case <-ctx.Done():
				return
			}
			if err := a.read(ctx); err != nil && ctx.Err() == nil && !spool.IsAway(err) {
				a.Log.WarnContext(ctx, "what is in use is not read ahead: it is read when it is needed", "error", err)
			}
		}
	}()
	a.OnClose(func() { cancel(); <-done })
	return func() {
		select {
		case wanted <- struct{}{}:
		default: // it waits already
		}
	}
}

// read reads the recently used entries. It ends early if the database is away.
func (a ahead) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aheadTimeout)
	defer cancel()
	workspaces, err := a.db.Workspaces.AllWorkspaces(ctx)
	if err != nil {
		return err
	}
	since, left := a.Now().Add(-aheadSince), aheadMost
	var lanes []session.Active
	var failures []error
	for _, workspace := range workspaces {
		if left == 0 {
			break
		}
		keys, active, err := a.readWorkspace(ctx, workspace, since, left)
		if ctx.Err() != nil {
			return fmt.Errorf("it takes longer than %s: %w", aheadTimeout, ctx.Err())
		}
		if spool.IsAway(err) {
			return err
		}
		failures = append(failures, err)
		lanes, left = append(lanes, active...), left-keys
	}
	slices.SortFunc(lanes, func(a, b session.Active) int { return b.At.Compare(a.At) })
	return errors.Join(append(failures, a.lanes.ReadAhead(ctx, lanes[:min(aheadMost, len(lanes))]))...)
}

// readWorkspace reads up to most API keys of a workspace that were used or created since a time, and the
// workspace's settings. It returns the number of those keys and the compacted lanes.
func (a ahead) readWorkspace(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, most int) (keys int, lanes []session.Active, err error) {
	hashes, err := a.db.APIKeys.UsedAPIKeys(ctx, workspace, since, most)
	if err != nil || len(hashes) == 0 {
		return 0, nil, err
	}
	_, err = a.archive.Key(ctx, workspace)
	if err = errors.Join(a.keys.ReadAhead(ctx, hashes), a.settings.ReadAhead(ctx, workspace), err); err != nil {
		return len(hashes), nil, err
	}
	lanes, err = a.sessions.Active(ctx, workspace, since, aheadMost)
	return len(hashes), lanes, err
}
