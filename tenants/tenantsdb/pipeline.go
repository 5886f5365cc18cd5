package tenantsdb

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// historyLength bounds the versions that PipelineHistory returns.
const historyLength = 100

// Pipelines stores the versions of each workspace's pipeline.
type Pipelines struct{ *core }

// Pipeline returns the newest version of a workspace's pipeline config, or version 0 if never saved.
func (db Pipelines) Pipeline(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, error) {
	versions, err := db.pipelines(ctx, workspace, 1)
	if err != nil {
		return tenants.PipelineConfig{}, err
	}
	if len(versions) == 0 {
		return tenants.PipelineConfig{Workspace: workspace}, nil
	}
	return versions[0], nil
}

// MemoryNarrowed implements tenants.Pipelines.
func (db Pipelines) MemoryNarrowed(ctx context.Context, workspace tenants.WorkspaceID) (time.Time, error) {
	var at sql.NullTime
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("workspaces").Select("memory_narrowed_at").Where("workspace_id = ?", workspace).Row().Scan(&at)
	})
	return at.Time, batchdb.Wrapf(err, "scope of the memory of workspace %s", workspace)
}

// PipelineHistory returns the saved versions of a workspace's pipeline config,
// the newest first, at most 100.
func (db Pipelines) PipelineHistory(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.PipelineConfig, error) {
	return db.pipelines(ctx, workspace, historyLength)
}

// PipelineVersions returns saved versions of a workspace's pipeline config with their authors, the newest
// first: at most limit of those before a version, where 0 means all.
func (db Pipelines) PipelineVersions(ctx context.Context, workspace tenants.WorkspaceID, before, limit int) ([]tenants.PipelineConfig, error) {
	versions, err := db.authored(ctx, workspace, func(query *gorm.DB) *gorm.DB {
		if before > 0 {
			query = query.Where("version < ?", before)
		}
		return query.Order("version DESC").Limit(limit)
	})
	return versions, batchdb.Wrapf(err, "versions of the pipeline of workspace %s", workspace)
}

// PipelineVersion returns one saved version of a workspace's pipeline config with its
// author. It returns tenants.ErrNotFound.
func (db Pipelines) PipelineVersion(ctx context.Context, workspace tenants.WorkspaceID, version int) (tenants.PipelineConfig, error) {
	versions, err := db.authored(ctx, workspace, func(query *gorm.DB) *gorm.DB { return query.Where("version = ?", version) })
	config, err := batchdb.First(versions, err, tenants.ErrNotFound)
	return config, batchdb.Wrapf(err, "version %d of the pipeline", version)
}

// SavePipeline stores a new version of a workspace's pipeline config and returns it. It returns
// tenants.ErrConflict if the newest version is not the expected one.
func (db Pipelines) SavePipeline(ctx context.Context, tenant tenants.Tenant, expectedVersion int, config tenants.PipelineConfig) (tenants.PipelineConfig, error) {
	workspace := tenant.Workspace()
	config.Workspace, config.Version = workspace, expectedVersion+1
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		return keepPipeline(tx, workspace, &config, tenants.Change{Action: tenants.PipelineSaved, After: config.Fields()})
	})
	return config, batchdb.Wrapf(err, "save version %d of the pipeline", config.Version)
}

// RestorePipeline stores a copy of an earlier version of a workspace's pipeline config as a new one, and
// returns it. It returns tenants.ErrNotFound, and tenants.ErrConflict if the newest version is not the
// expected one.
func (db Pipelines) RestorePipeline(ctx context.Context, workspace tenants.WorkspaceID, expectedVersion, version int, by uuid.UUID) (tenants.PipelineConfig, error) {
	var config tenants.PipelineConfig
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		earlier, err := find[tenants.PipelineConfig](tx.Table("pipeline_configs").Select(pipelineColumns).Where("workspace_id = ? AND version = ?", workspace, version))
		if err != nil {
			return err
		}
		config = earlier
		config.Version, config.SavedBy = expectedVersion+1, by
		after := config.Fields()
		after["restored_version"] = strconv.Itoa(version)
		return keepPipeline(tx, workspace, &config, tenants.Change{Action: tenants.PipelineRestored, After: after})
	})
	return config, batchdb.Wrapf(err, "restore version %d of the pipeline", version)
}

// keepPipeline stores a version, records the change and notifies all replicas.
func keepPipeline(tx *gorm.DB, workspace tenants.WorkspaceID, config *tenants.PipelineConfig, change tenants.Change) error {
	before, err := newestPipeline(tx, workspace)
	if err != nil {
		return err
	}
	if err := insertPipeline(tx, workspace, config); err != nil {
		return err
	}
	change.Target, change.Before = strconv.Itoa(config.Version), before.Fields()
	return errors.Join(audit(tx, workspace, change), notify(tx, SettingsChannel, workspace.String()))
}

// authored returns the versions of a query, with their authors.
func (db Pipelines) authored(ctx context.Context, workspace tenants.WorkspaceID, narrow func(*gorm.DB) *gorm.DB) ([]tenants.PipelineConfig, error) {
	return batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) ([]tenants.PipelineConfig, error) {
		return list[tenants.PipelineConfig](narrow(tx.Table("pipeline_configs").Select(pipelineColumns+authorColumn).Where("workspace_id = ?", workspace)))
	})
}

func (db Pipelines) pipelines(ctx context.Context, workspace tenants.WorkspaceID, limit int) ([]tenants.PipelineConfig, error) {
	versions, err := batchdb.Scan[[]tenants.PipelineConfig](ctx, db.tenant(workspace), sqlPipelines, workspace, limit)
	return versions, batchdb.Wrapf(err, "pipeline of workspace %s", workspace)
}

// newestPipeline returns the newest version; the zero config if absent.
func newestPipeline(tx *gorm.DB, workspace tenants.WorkspaceID) (tenants.PipelineConfig, error) {
	return batchdb.Query[tenants.PipelineConfig](tx, sqlPipelines, workspace, 1)
}

// insertPipeline inserts the version after the newest one; the primary key rejects a duplicate.
func insertPipeline(tx *gorm.DB, workspace tenants.WorkspaceID, config *tenants.PipelineConfig) error {
	inserted := tx.Raw(`INSERT INTO pipeline_configs (workspace_id, version, modules, yaml, saved_by)
		SELECT ?, ?, ?, ?, ?
		WHERE (SELECT coalesce(max(version), 0) FROM pipeline_configs WHERE workspace_id = ?) = ?
		RETURNING saved_at`,
		workspace, config.Version, storable(config.Modules), storable(config.YAML), config.SavedBy,
		workspace, config.Version-1).Scan(&config.SavedAt)
	if isDuplicate(inserted.Error) || inserted.Error == nil && inserted.RowsAffected == 0 {
		return tenants.ErrConflict
	}
	return inserted.Error
}

const (
	pipelineColumns = "workspace_id, version, modules, yaml, saved_by, saved_at"
	sqlPipelines    = "SELECT " + pipelineColumns + " FROM pipeline_configs WHERE workspace_id = ? ORDER BY version DESC LIMIT ?"
)

// authorColumn is the author of a version: a member, or an API key.
const authorColumn = `, coalesce((SELECT u.email FROM users u WHERE u.id = pipeline_configs.saved_by),
	(SELECT k.name FROM api_keys k WHERE k.workspace_id = pipeline_configs.workspace_id AND k.id = pipeline_configs.saved_by), '') AS author`

// ProxySettings holds the workspace settings that the proxy reads and learns. ProviderKeys and ModelWindows
// have methods of the same name, so they are embedded under other names.
type ProxySettings struct {
	Data
	Pipelines
	providerKeys
	modelWindows
}

type (
	providerKeys = ProviderKeys
	modelWindows = ModelWindows
)
