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

	config, err := b.Pipeline(t.Context(), b.workspace)
	if err != nil || config.Version != 0 || config.Workspace != b.workspace || config.YAML != "" {
		t.Fatalf("config %+v (%v)", config, err)
	}
}

func TestSavedPipelineIsTheNewestVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	by := uuid.New()
	for version, yaml := range []string{"ipc: {}\n", "ipc:\n  targetUtilization: 0.5\n"} {
		saved, err := b.SavePipeline(t.Context(), b.workspace, version, tenants.PipelineConfig{Modules: "ipc", YAML: yaml, SavedBy: by})
		if err != nil {
			t.Fatal(err)
		}
		newest, err := b.Pipeline(t.Context(), b.workspace)
		if err != nil || newest != saved || newest.Version != version+1 || newest.YAML != yaml || newest.SavedBy != by {
			t.Fatalf("newest %+v (%v), saved %+v", newest, err, saved)
		}
	}

	history, err := b.PipelineHistory(t.Context(), b.workspace)
	if err != nil || len(history) != 2 || history[0].Version != 2 || history[1].Version != 1 {
		t.Fatalf("history %+v (%v)", history, err)
	}
}

func TestPipelineOfAnotherVersionIsNotOverwritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, expected := range []int{1, -1} {
		if _, err := b.SavePipeline(t.Context(), b.workspace, expected, tenants.PipelineConfig{}); !errors.Is(err, tenants.ErrConflict) {
			t.Errorf("expecting version %d: %v, want ErrConflict", expected, err)
		}
	}

	const savers = 8
	var saved, refused atomic.Int32
	var group sync.WaitGroup
	for range savers {
		group.Go(func() {
			switch _, err := b.SavePipeline(t.Context(), b.workspace, 0, tenants.PipelineConfig{YAML: "x"}); {
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
