package tenantsdb_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

func TestWindowsOfModelsAreSetLearntAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	by := uuid.New()
	set, err := b.ModelWindows.SetModelWindow(t.Context(), b.workspace, "gpt-5.5", 400_000, by)
	if err != nil || set.Tokens != 400_000 || set.Source != tenants.WindowOverride || set.SetBy != by || set.SetAt.IsZero() {
		t.Fatalf("set: %+v (%v)", set, err)
	}
	for model, tokens := range map[string]int{"someone/new": 65_536, "gpt-5.5": 1000} {
		if err := b.ModelWindows.LearnModelWindow(t.Context(), b.workspace, model, tokens); err != nil {
			t.Fatal(err)
		}
	}
	windows, err := b.ModelWindows.ModelWindows(t.Context(), b.workspace)
	if err != nil || len(windows) != 2 || windows[0] != set {
		t.Fatalf("%+v (%v): what someone set has to stay", windows, err)
	}
	learned := windows[1]
	if learned.Model != "someone/new" || learned.Tokens != 65_536 || learned.Source != tenants.WindowLearnt || learned.SetBy != uuid.Nil || learned.Workspace != b.workspace {
		t.Errorf("learnt: %+v", learned)
	}

	if err := b.ModelWindows.LearnModelWindow(t.Context(), b.workspace, "someone/new", 32_768); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ModelWindows.SetModelWindow(t.Context(), b.workspace, "gpt-5.5", 300_000, by); err != nil {
		t.Fatal(err)
	}
	if windows, _ = b.ModelWindows.ModelWindows(t.Context(), b.workspace); windows[0].Tokens != 300_000 || windows[1].Tokens != 32_768 {
		t.Errorf("after a change: %+v", windows)
	}
	if err := b.ModelWindows.DeleteModelWindow(t.Context(), b.workspace, "gpt-5.5"); err != nil {
		t.Fatal(err)
	}
	if err := b.ModelWindows.DeleteModelWindow(t.Context(), b.workspace, "gpt-5.5"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	_, other := b.signUp(t, "eve@example.com")
	if err := b.ModelWindows.DeleteModelWindow(t.Context(), other, "someone/new"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another workspace's: %v", err)
	}
}

// The names of models come from requests: they must not fill the database.
func TestAWorkspaceLearnsAThousandWindows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.database.Owner(t).Exec(t.Context(), `INSERT INTO model_windows (workspace_id, model, window_tokens, source)
		SELECT $1, 'model-' || n, 1000, 'learnt' FROM generate_series(1, 999) n`, b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"the last", "one too many"} {
		if err := b.ModelWindows.LearnModelWindow(t.Context(), b.workspace, model, 2000); err != nil {
			t.Fatal(err)
		}
	}
	windows, err := b.ModelWindows.ModelWindows(t.Context(), b.workspace)
	if err != nil || len(windows) != 1000 {
		t.Errorf("%d windows (%v), want 1000", len(windows), err)
	}
}

// All replicas hear of a change, and of nothing if nothing changed.
func TestChangedWindowsAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told := make(chan string, 10)
	listener := b.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(tenantsdb.SettingsChannel, func(workspace string) { told <- workspace }, func() {})
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)

	changes := []func() error{
		func() error { return b.ModelWindows.LearnModelWindow(t.Context(), b.workspace, "new", 8192) },
		func() error {
			_, err := b.ModelWindows.SetModelWindow(t.Context(), b.workspace, "new", 9000, uuid.New())
			return err
		},
		func() error { return b.ModelWindows.DeleteModelWindow(t.Context(), b.workspace, "new") },
	}
	for i, change := range changes {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if workspace := <-told; workspace != b.workspace.String() {
			t.Errorf("change %d: told of %s", i, workspace)
		}
	}
}
