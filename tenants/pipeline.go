package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// PipelineConfig is one saved version of a workspace's pipeline.
type PipelineConfig struct {
	Workspace WorkspaceID
	Version   int    // 1 for the first saved one; 0: the default, nothing saved yet
	Modules   string // the modules in order, comma-separated; empty: the default pipeline
	YAML      string // settings that differ from the defaults
	SavedBy   uuid.UUID
	Author    string // who that is: an e-mail address or an API key's name, in lists only; empty: they left, or the product
	SavedAt   time.Time
}

// Fields returns what the audit log shows of a config; nil where nothing was saved.
func (c PipelineConfig) Fields() Fields {
	if c.Version == 0 {
		return nil
	}
	return Fields{"modules": c.Modules, "settings": c.YAML}
}

// Pipelines keeps each workspace's pipeline, version by version.
type Pipelines interface {
	// Pipeline returns the newest version; one with the version 0 if none was
	// ever saved.
	Pipeline(ctx context.Context, workspace WorkspaceID) (PipelineConfig, error)

	// MemoryNarrowed returns when the default scope of the workspace's memory was narrowed to the session;
	// the zero time for a workspace made since.
	MemoryNarrowed(ctx context.Context, workspace WorkspaceID) (time.Time, error)

	// PipelineHistory returns the saved versions, the newest first, at most 100.
	PipelineHistory(ctx context.Context, workspace WorkspaceID) ([]PipelineConfig, error)

	// PipelineVersions returns up to limit saved versions before a version, with their
	// authors, the newest first; before 0 means all.
	PipelineVersions(ctx context.Context, workspace WorkspaceID, before, limit int) ([]PipelineConfig, error)

	// PipelineVersion returns ErrNotFound for a version that was never saved.
	PipelineVersion(ctx context.Context, workspace WorkspaceID, version int) (PipelineConfig, error)

	// SavePipeline stores the version that follows the expected one. It returns
	// ErrConflict if that is not the newest.
	SavePipeline(ctx context.Context, tenant Tenant, expectedVersion int, config PipelineConfig) (PipelineConfig, error)

	// RestorePipeline stores an earlier version as the one that follows the expected
	// one. Its errors are those of PipelineVersion and SavePipeline.
	RestorePipeline(ctx context.Context, workspace WorkspaceID, expectedVersion, version int, by uuid.UUID) (PipelineConfig, error)
}
