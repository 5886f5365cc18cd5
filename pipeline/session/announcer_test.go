package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// A workspace whose lanes are announced all the time takes turns with the others, however slow the store is.
func TestWorkspacesTakeTurnsToBeAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := session.Update{Scope: session.Scope{Workspace: tenants.NewWorkspaceID()}}
		var late atomic.Int64
		announcer := session.NewAnnouncer(func(context.Context, tenants.WorkspaceID, []session.Update) error {
			<-time.After(100 * time.Millisecond)
			return nil
		}, session.NewOutage(time.Now), func(error) { late.Add(1) })
		busy, stop := context.WithCancel(t.Context())
		for range 4 {
			workspace := tenants.NewWorkspaceID()
			go func() {
				for ticks := time.NewTicker(20 * time.Millisecond); busy.Err() == nil; <-ticks.C {
					announcer.Announce(session.Update{Scope: session.Scope{Workspace: workspace}})
				}
			}()
		}
		<-time.After(300 * time.Millisecond)

		began := time.Now()
		announcer.Announce(quiet).Wait(t.Context())
		if waited := time.Since(began); waited > 250*time.Millisecond {
			t.Errorf("the answer of a quiet workspace waited %s, want two writes at most", waited)
		}
		stop()
		synctest.Wait()
		announcer.Stop()
		if late.Load() > 0 {
			t.Errorf("%d answers waited in vain", late.Load())
		}
	})
}

// An answer that does not wait any longer is counted: its lane may split.
func TestAnnouncementThatTakesTooLongIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		announcer := session.NewAnnouncer(func(context.Context, tenants.WorkspaceID, []session.Update) error {
			<-time.After(1500 * time.Millisecond)
			return nil
		}, session.NewOutage(time.Now), func(error) { late.Add(1) })
		announcer.Announce(session.Update{Scope: session.Scope{Workspace: tenants.NewWorkspaceID()}}).Wait(t.Context())
		announcer.Stop()
		if late.Load() != 1 {
			t.Errorf("%d answers waited in vain, want 1", late.Load())
		}
	})
}
