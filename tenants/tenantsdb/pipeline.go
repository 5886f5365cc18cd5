package tenantsdb

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// historyLength bounds the versions that PipelineHistory returns.
const historyLength = 100

// Pipeline returns the newest version of a workspace's pipeline config. Where
// none has been saved its version is 0.
func (db *DB) Pipeline(ctx context.Context, workspace uuid.UUID) (tenants.PipelineConfig, error) {
	versions, err := db.pipelines(ctx, workspace, 1)
	if err != nil {
		return tenants.PipelineConfig{}, err
	}
	if len(versions) == 0 {
		return tenants.PipelineConfig{Workspace: workspace}, nil
	}
	return versions[0], nil
}

// PipelineHistory returns the saved versions of a workspace's pipeline config,
// the newest first, at most 100.
func (db *DB) PipelineHistory(ctx context.Context, workspace uuid.UUID) ([]tenants.PipelineConfig, error) {
	return db.pipelines(ctx, workspace, historyLength)
}

// SavePipeline keeps a new version of a workspace's pipeline config and returns
// it. It returns tenants.ErrConflict if the newest version is not the expected
// one.
func (db *DB) SavePipeline(ctx context.Context, workspace uuid.UUID, expectedVersion int, config tenants.PipelineConfig) (tenants.PipelineConfig, error) {
	config.Workspace, config.Version = workspace, expectedVersion+1
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, err := newestPipeline(tx, workspace)
		if err != nil {
			return err
		}
		if err := insertPipeline(tx, workspace, &config); err != nil {
			return err
		}
		saved := tenants.Change{Action: tenants.PipelineSaved, Target: strconv.Itoa(config.Version), Before: before.Fields(), After: config.Fields()}
		if err := audit(tx, workspace, saved); err != nil {
			return err
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	if err != nil {
		return tenants.PipelineConfig{}, fmt.Errorf("save version %d of the pipeline: %w", config.Version, err)
	}
	return config, nil
}

func (db *DB) pipelines(ctx context.Context, workspace uuid.UUID, limit int) ([]tenants.PipelineConfig, error) {
	var rows []pipelineRow
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("pipeline_configs").Select(pipelineColumns).
			Where("workspace_id = ?", workspace).Order("version DESC").Limit(limit).Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("pipeline of workspace %s: %w", workspace, err)
	}
	configs := make([]tenants.PipelineConfig, len(rows))
	for i, row := range rows {
		configs[i] = row.toPipelineConfig()
	}
	return configs, nil
}

// newestPipeline returns the newest version; the zero config where there is none.
func newestPipeline(tx *gorm.DB, workspace uuid.UUID) (tenants.PipelineConfig, error) {
	var row pipelineRow
	err := tx.Table("pipeline_configs").Select(pipelineColumns).Where("workspace_id = ?", workspace).
		Order("version DESC").Limit(1).Scan(&row).Error
	return row.toPipelineConfig(), err
}

// insertPipeline inserts the version that follows the newest one; the primary key
// refuses a second one.
func insertPipeline(tx *gorm.DB, workspace uuid.UUID, config *tenants.PipelineConfig) error {
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

const pipelineColumns = "workspace_id, version, modules, yaml, saved_by, saved_at"

type pipelineRow struct {
	WorkspaceID uuid.UUID
	Version     int
	Modules     string
	YAML        string
	SavedBy     uuid.UUID
	SavedAt     time.Time
}

func (r pipelineRow) toPipelineConfig() tenants.PipelineConfig {
	return tenants.PipelineConfig{
		Workspace: r.WorkspaceID, Version: r.Version, Modules: r.Modules, YAML: r.YAML,
		SavedBy: r.SavedBy, SavedAt: r.SavedAt,
	}
}
