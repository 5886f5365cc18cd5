package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// PipelineConfig is one saved version of a workspace's pipeline.
type PipelineConfig struct {
	Workspace WorkspaceID `gorm:"column:workspace_id"`
	Version   int         // 1 for the first saved one; 0 for the default, before the first save
	Modules   string      // the modules in order, comma-separated; empty: the default pipeline
	YAML      string      // settings that differ from the defaults
	SavedBy   uuid.UUID
	Author    string `gorm:"->"` // their e-mail address or API key's name, in lists only; "" if they left, or for the product
	SavedAt   time.Time
}

// Fields returns the config's fields for the audit log; nil for the unsaved default.
func (c PipelineConfig) Fields() Fields {
	if c.Version == 0 {
		return nil
	}
	return Fields{"modules": c.Modules, "settings": c.YAML}
}

// Pipelines stores the versions of each workspace's pipeline.
type Pipelines interface {
	// Pipeline returns the newest version, or version 0 if never saved.
	Pipeline(ctx context.Context, workspace WorkspaceID) (PipelineConfig, error)

	// MemoryNarrowed returns when the default scope of the workspace's memory was narrowed to the session;
	// zero for workspaces created later.
	MemoryNarrowed(ctx context.Context, workspace WorkspaceID) (time.Time, error)

	// PipelineHistory returns the saved versions, the newest first, at most 100.
	PipelineHistory(ctx context.Context, workspace WorkspaceID) ([]PipelineConfig, error)

	// PipelineVersions returns up to limit saved versions before a version, with their
	// authors, the newest first; before 0 means all.
	PipelineVersions(ctx context.Context, workspace WorkspaceID, before, limit int) ([]PipelineConfig, error)

	// PipelineVersion returns ErrNotFound for an unsaved version.
	PipelineVersion(ctx context.Context, workspace WorkspaceID, version int) (PipelineConfig, error)

	// SavePipeline stores the version after the expected one. It returns ErrConflict if the expected version
	// is not the newest.
	SavePipeline(ctx context.Context, tenant Tenant, expectedVersion int, config PipelineConfig) (PipelineConfig, error)

	// RestorePipeline stores an earlier version as the version after the expected one. It returns the errors
	// of PipelineVersion and SavePipeline.
	RestorePipeline(ctx context.Context, workspace WorkspaceID, expectedVersion, version int, by uuid.UUID) (PipelineConfig, error)
}

// ConfigChange is one change that an import makes to a workspace's configuration.
type ConfigChange struct {
	Place  string // in the file: "pipeline.ipc.minClear", "api_keys.laptop.concurrency"
	Before string // "" if absent
	After  string // "" if removed
}

// ConfigImport is the result of importing a configuration file into a workspace.
type ConfigImport struct {
	Changes []ConfigChange
	ByHand  []string // parts of the file that an import skips, with instructions, as sentences
}
