package previewdb_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestAdviceIsOneWorkspacesAndStaysDismissedWhileTheTriggerStays(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	store, workspace, other := previewdb.New(db.DB), tenants.NewWorkspaceID(), tenants.NewWorkspaceID()
	for _, id := range []tenants.WorkspaceID{workspace, other} {
		err := db.DB.InTenant(t.Context(), id, func(tx *gorm.DB) error {
			return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", id).Error
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func(advice preview.Advice) preview.Advice {
		t.Helper()
		if err := store.KeepAdvice(t.Context(), workspace, advice); err != nil {
			t.Fatal(err)
		}
		found, err := store.Advice(t.Context(), workspace)
		if err != nil {
			t.Fatal(err)
		}
		found.MadeAt, found.Since = found.MadeAt.UTC(), found.Since.UTC()
		return found
	}
	if _, err := store.Advice(t.Context(), workspace); !errors.Is(err, preview.ErrNoAdvice) {
		t.Errorf("before any was made: %v", err)
	}
	at := time.Date(2026, time.May, 4, 9, 0, 0, 0, time.UTC)
	advice := preview.Advice{
		MadeAt: at, Since: at.Add(-preview.AdviceSpan), Trigger: ipc.TriggerWindow, Sessions: 40, HasMore: true,
		Received: 1 << 40, Verbatim: 1 << 39, OtherVerbatim: 1 << 38, Cost: 1 << 41, OtherCost: 1 << 40,
	}
	if found := kept(advice); found != advice {
		t.Errorf("kept %+v, want %+v", found, advice)
	}
	if err := store.DismissAdvice(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Advice(t.Context(), other); !errors.Is(err, preview.ErrNoAdvice) {
		t.Errorf("of another workspace: %v", err)
	}
	if found := kept(advice); found.Dismissed {
		t.Error("another workspace has dismissed it")
	}
	if err := store.DismissAdvice(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	next := advice
	next.MadeAt, next.Cost = at.Add(24*time.Hour), 1<<42
	if found := kept(next); !found.Dismissed || found.Cost != next.Cost {
		t.Errorf("a day after it was dismissed: %+v", found)
	}
	next.Trigger = ipc.TriggerBreakEven
	if found := kept(next); found.Dismissed {
		t.Error("about the other trigger it was never dismissed")
	}
}
