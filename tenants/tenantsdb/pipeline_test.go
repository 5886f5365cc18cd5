package tenantsdb_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestPipelineBeginsAtVersionZero(t *testing.T) {
	t.Parallel()
	b := setup(t)

	config, err := b.Pipelines.Pipeline(t.Context(), b.workspace)
	if err != nil || config.Version != 0 || config.Workspace != b.workspace || config.YAML != "" {
		t.Fatalf("config %+v (%v)", config, err)
	}
}

func TestSavedPipelineIsTheNewestVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	by := uuid.New()
	for version, yaml := range []string{"ipc: {}\n", "ipc:\n  targetUtilization: 0.5\n"} {
		saved, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, version, tenants.PipelineConfig{Modules: "ipc", YAML: yaml, SavedBy: by})
		if err != nil {
			t.Fatal(err)
		}
		newest, err := b.Pipelines.Pipeline(t.Context(), b.workspace)
		if err != nil || newest != saved || newest.Version != version+1 || newest.YAML != yaml || newest.SavedBy != by {
			t.Fatalf("newest %+v (%v), saved %+v", newest, err, saved)
		}
	}

	history, err := b.Pipelines.PipelineHistory(t.Context(), b.workspace)
	if err != nil || len(history) != 2 || history[0].Version != 2 || history[1].Version != 1 {
		t.Fatalf("history %+v (%v)", history, err)
	}
}

func TestPipelineOfAnotherVersionIsNotOverwritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, expected := range []int{1, -1} {
		if _, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, expected, tenants.PipelineConfig{}); !errors.Is(err, tenants.ErrConflict) {
			t.Errorf("expecting version %d: %v, want ErrConflict", expected, err)
		}
	}

	const savers = 8
	var saved, refused atomic.Int32
	var group sync.WaitGroup
	for range savers {
		group.Go(func() {
			switch _, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, 0, tenants.PipelineConfig{YAML: "x"}); {
			case err == nil:
				saved.Add(1)
			case errors.Is(err, tenants.ErrConflict):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if saved.Load() != 1 || refused.Load() != savers-1 {
		t.Errorf("of %d who save at once, %d succeed and %d are refused", savers, saved.Load(), refused.Load())
	}
}

func TestVersionsAreReadPageByPageWithTheirAuthors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, _ := b.addKey(t, b.workspace)
	for version, by := range []uuid.UUID{b.user.ID, key.ID, uuid.New()} {
		if _, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, version, tenants.PipelineConfig{YAML: "x", SavedBy: by}); err != nil {
			t.Fatal(err)
		}
	}

	newest, err := b.Pipelines.PipelineVersions(t.Context(), b.workspace, 0, 2)
	if err != nil || len(newest) != 2 || newest[0].Version != 3 || newest[0].Author != "" || newest[1].Author != key.Name {
		t.Errorf("newest %+v, %v", newest, err)
	}
	older, err := b.Pipelines.PipelineVersions(t.Context(), b.workspace, 2, 2)
	if err != nil || len(older) != 1 || older[0].Version != 1 || older[0].Author != b.user.Email {
		t.Errorf("older %+v, %v", older, err)
	}
	one, err := b.Pipelines.PipelineVersion(t.Context(), b.workspace, 2)
	if err != nil || one.Version != 2 || one.Author != key.Name || one.SavedAt.IsZero() {
		t.Errorf("one %+v, %v", one, err)
	}
	for _, version := range []int{0, 4, -1} {
		if _, err := b.Pipelines.PipelineVersion(t.Context(), b.workspace, version); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// S3, S32
func TestRestoredPipelineIsNextVersionThatSaysWhatItWas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	for version, yaml := range []string{"ipc: {minClear: 0.2}", "ipc: {minClear: 0.3}"} {
		if _, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, version, tenants.PipelineConfig{Modules: "ipc", YAML: yaml, SavedBy: uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}

	for _, c := range []struct {
		workspace         tenants.WorkspaceID
		expected, version int
		want              error
	}{{b.workspace, 1, 1, tenants.ErrConflict}, {b.workspace, 3, 1, tenants.ErrConflict}, {b.workspace, 2, 7, tenants.ErrNotFound}, {other, 0, 1, tenants.ErrNotFound}} {
		if _, err := b.Pipelines.RestorePipeline(t.Context(), c.workspace, c.expected, c.version, b.user.ID); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	restored, err := b.Pipelines.RestorePipeline(t.Context(), b.workspace, 2, 1, b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := b.Pipelines.Pipeline(t.Context(), b.workspace)
	if err != nil || newest != restored || newest.Version != 3 || newest.Modules != "ipc" || newest.YAML != "ipc: {minClear: 0.2}" || newest.SavedBy != b.user.ID {
		t.Errorf("newest %+v, %v", newest, err)
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Action: "pipeline"})
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	noted := entries[0]
	if noted.Action != tenants.PipelineRestored || noted.Target != "3" || noted.After["restored_version"] != "1" || noted.Before["settings"] != "ipc: {minClear: 0.3}" {
		t.Errorf("noted %+v", noted)
	}
}
