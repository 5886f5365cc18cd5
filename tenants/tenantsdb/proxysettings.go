package tenantsdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// modelList is a list of settings for models at provider keys, stored in the workspace's row.
type modelList[E any] struct {
	name   string // in the API; its column is model_<name>
	check  func([]E) ([]E, error)
	fields func([]E) tenants.Fields
	key    func(E) uuid.UUID
	action tenants.Action
}

func modelPrices() modelList[tenants.ModelPrice] {
	return modelList[tenants.ModelPrice]{
		"prices", tenants.CheckModelPrices, tenants.ModelPriceFields, func(price tenants.ModelPrice) uuid.UUID { return price.ProviderKey }, tenants.ModelPricesSet,
	}
}

func modelLimits() modelList[tenants.ModelLimit] {
	return modelList[tenants.ModelLimit]{
		"limits", tenants.CheckModelLimits, tenants.ModelLimitFields, func(limit tenants.ModelLimit) uuid.UUID { return limit.ProviderKey }, tenants.ModelLimitsSet,
	}
}

// ModelPrices implements tenants.Data.
func (db Data) ModelPrices(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelPrice, error) {
	return modelPrices().read(ctx, db.core, workspace)
}

// ChangeModelPrices implements tenants.Data.
func (db Data) ChangeModelPrices(ctx context.Context, tenant tenants.Tenant, change func([]tenants.ModelPrice) ([]tenants.ModelPrice, error)) error {
	return modelPrices().change(ctx, db.core, tenant, change)
}

// ModelLimits implements tenants.Data.
func (db Data) ModelLimits(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelLimit, error) {
	return modelLimits().read(ctx, db.core, workspace)
}

// ChangeModelLimits implements tenants.Data.
func (db Data) ChangeModelLimits(ctx context.Context, tenant tenants.Tenant, change func([]tenants.ModelLimit) ([]tenants.ModelLimit, error)) error {
	return modelLimits().change(ctx, db.core, tenant, change)
}

func (l modelList[E]) read(ctx context.Context, db *core, workspace tenants.WorkspaceID) (set []E, err error) {
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		set, err = l.find(tx, workspace, "")
		return err
	})
	return set, batchdb.Wrapf(err, "model %s of workspace %s", l.name, workspace)
}

func (l modelList[E]) change(ctx context.Context, db *core, tenant tenants.Tenant, change func([]E) ([]E, error)) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := l.find(tx, workspace, " FOR UPDATE")
		if err != nil {
			return err
		}
		after, err := change(slices.Clone(before))
		if err != nil {
			return err
		}
		if after, err = l.check(after); err != nil {
			return err
		}
		if err := l.checkProviderKeys(tx, workspace, after); err != nil {
			return err
		}
		raw, err := json.Marshal(after)
		if err != nil {
			return fmt.Errorf("write model %s: %w", l.name, err)
		}
		return errors.Join(batchdb.Write(tx, "UPDATE workspaces SET model_"+l.name+" = ?::jsonb WHERE workspace_id = ?", string(raw), workspace),
			audit(tx, workspace, tenants.Change{Action: l.action, Before: l.fields(before), After: l.fields(after)}),
			notify(tx, SettingsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "set model %s of workspace %s", l.name, workspace)
}

func (l modelList[E]) find(tx *gorm.DB, workspace tenants.WorkspaceID, lock string) (set []E, err error) {
	var rows []struct{ List []byte }
	err = tx.Raw("SELECT model_"+l.name+" AS list FROM workspaces WHERE workspace_id = ?"+lock, workspace).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(row.List, &set); err != nil {
		return nil, fmt.Errorf("read model %s: %w", l.name, err)
	}
	return set, nil
}

// checkProviderKeys returns an Invalid for a setting with an unknown provider key.
func (l modelList[E]) checkProviderKeys(tx *gorm.DB, workspace tenants.WorkspaceID, set []E) error {
	known, err := batchdb.Query[[]uuid.UUID](tx, "SELECT id FROM provider_keys WHERE workspace_id = ?", workspace)
	if err != nil {
		return err
	}
	for i, one := range set {
		if id := l.key(one); id != uuid.Nil && !slices.Contains(known, id) {
			return tenants.Invalid{Field: fmt.Sprintf("%s[%d].provider_key_id", l.name, i), Message: "is not a provider key of the workspace"}
		}
	}
	return nil
}

// drop removes the settings of a deleted provider key.
func (l modelList[E]) drop(tx *gorm.DB, workspace tenants.WorkspaceID, key uuid.UUID) error {
	column := "model_" + l.name
	return batchdb.Write(tx, "UPDATE workspaces SET "+column+" = (SELECT coalesce(jsonb_agg(one), '[]') FROM jsonb_array_elements("+column+`) one
		WHERE one->>'provider_key_id' IS DISTINCT FROM ?) WHERE workspace_id = ? AND `+column+" <> '[]'", key.String(), workspace)
}

// learntWindows bounds the windows learned for one workspace, because the names come from requests.
const learntWindows = 1000

// ModelWindows stores the workspaces' context windows, set or learned.
type ModelWindows struct{ *core }

// ModelWindows returns a workspace's context windows of models, by the models' names.
func (db ModelWindows) ModelWindows(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelWindow, error) {
	windows, err := all[tenants.ModelWindow](ctx, db.tenant(workspace), "model_windows", "model", "workspace_id = ?", workspace)
	return windows, batchdb.Wrapf(err, "model windows of workspace %s", workspace)
}

// SetModelWindow stores the window that a person set for a model, and returns it.
func (db ModelWindows) SetModelWindow(ctx context.Context, tenant tenants.Tenant, model string, tokens int, by uuid.UUID) (tenants.ModelWindow, error) {
	workspace := tenant.Workspace()
	var window tenants.ModelWindow
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := windowFields(tx, workspace, model)
		if err != nil {
			return err
		}
		window, err = batchdb.Query[tenants.ModelWindow](tx, `INSERT INTO model_windows (workspace_id, model, window_tokens, source, set_by) VALUES (?, ?, ?, 'override', ?)
			ON CONFLICT (workspace_id, model) DO UPDATE
			SET window_tokens = excluded.window_tokens, source = 'override', set_by = excluded.set_by, set_at = now()
			RETURNING workspace_id, model, window_tokens, source, set_by, set_at`,
			workspace, storable(model), tokens, by)
		if err != nil {
			return err
		}
		change := tenants.Change{Action: tenants.ModelWindowSet, Target: model, Before: before, After: tenants.Fields{"tokens": strconv.Itoa(tokens)}}
		return errors.Join(audit(tx, workspace, change), notify(tx, SettingsChannel, workspace.String()))
	})
	return window, batchdb.Wrapf(err, "set window of a model")
}

// LearnModelWindow stores the window that a provider named for a model, unless a person has set one. A
// workspace learns the windows of 1000 models.
func (db ModelWindows) LearnModelWindow(ctx context.Context, workspace tenants.WorkspaceID, model string, tokens int) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		learned := tx.Exec(`INSERT INTO model_windows (workspace_id, model, window_tokens, source)
			SELECT ?, ?, ?, 'learnt' WHERE (SELECT count(*) FROM model_windows WHERE workspace_id = ? AND source = 'learnt') < ?
			ON CONFLICT (workspace_id, model) DO UPDATE SET window_tokens = excluded.window_tokens, set_at = now()
			WHERE model_windows.source = 'learnt' AND model_windows.window_tokens <> excluded.window_tokens`,
			workspace, storable(model), tokens, workspace, learntWindows)
		if learned.Error != nil || learned.RowsAffected == 0 {
			return learned.Error
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "learn window of a model")
}

// DeleteModelWindow removes a model's window, set or learned, so that the table of models applies again. It
// returns tenants.ErrNotFound.
func (db ModelWindows) DeleteModelWindow(ctx context.Context, workspace tenants.WorkspaceID, model string) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, err := windowFields(tx, workspace, model)
		if err != nil {
			return err
		}
		err = changedOne(tx.Exec("DELETE FROM model_windows WHERE workspace_id = ? AND model = ?", workspace, storable(model)), tenants.ErrNotFound)
		if err != nil {
			return err
		}
		return errors.Join(audit(tx, workspace, tenants.Change{Action: tenants.ModelWindowRemoved, Target: model, Before: before}),
			notify(tx, SettingsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "delete window of a model")
}

// windowFields returns a model's window for the audit log; nil if neither set nor learned.
func windowFields(tx *gorm.DB, workspace tenants.WorkspaceID, model string) (tenants.Fields, error) {
	tokens, err := batchdb.Query[[]int](tx, "SELECT window_tokens FROM model_windows WHERE workspace_id = ? AND model = ?", workspace, storable(model))
	if err != nil || len(tokens) == 0 {
		return nil, err
	}
	return tenants.Fields{"tokens": strconv.Itoa(tokens[0])}, nil
}
