package sessiondb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// S55: in a context without a decision about what its reader may see, the store answers with nothing.
func TestContextWithoutADecisionSeesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	since := time.Now().Add(-time.Hour)
	c := f.conversationOf(3)
	if err := f.store.Inject(t.Context(), c.update(), []session.Insert{c.insert(1, 0, "[turn]")}); err != nil {
		t.Fatal(err)
	}
	browser, workspace := f.store.Browser(), f.scope.Workspace

	for name, read := range map[string]func(ctx context.Context) (int, error){
		"sessions": func(ctx context.Context) (int, error) {
			page, err := browser.Sessions(ctx, workspace, session.Filter{})
			return len(page.Sessions), err
		},
		"counts": func(ctx context.Context) (int, error) {
			counts, err := browser.Counts(ctx, workspace, session.Filter{})
			return counts.Workspace, err
		},
		"active": func(ctx context.Context) (int, error) { return browser.Active(ctx, workspace, since) },
		"recorded": func(ctx context.Context) (int, error) {
			return count(browser.Recorded(ctx, workspace, session.Selection{Newest: 5}))
		},
		"models": func(ctx context.Context) (int, error) {
			models, err := sessiondb.Models(ctx, browser, workspace, since)
			return len(models), err
		},
		"made": func(ctx context.Context) (int, error) {
			made, err := browser.Made(ctx, workspace, since)
			return len(made.Inserts), err
		},
		"session": func(ctx context.Context) (int, error) {
			_, err := browser.Session(ctx, workspace, c.session)
			if errors.Is(err, session.ErrNotFound) {
				return 0, nil
			}
			return 1, err
		},
	} {
		if found, err := read(t.Context()); err != nil || found != 0 {
			t.Errorf("%s: %d seen, %v", name, found, err)
		}
		if found, err := read(tenants.OwnWork(t.Context())); err != nil || found == 0 {
			t.Errorf("%s: the program itself sees %d, %v", name, found, err)
		}
	}
}

func count[T any](found []T, err error) (int, error) { return len(found), err }
