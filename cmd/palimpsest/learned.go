package main

import (
	"context"

	"github.com/google/uuid"

	"palimpsest/api/proxysettings"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

// settingsIn returns a function that reads a workspace's pipeline from the database.
func settingsIn(b base) func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
	return func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
		saved, err := b.db.Pipelines.Pipeline(ctx, workspace)
		if err != nil {
			return pipeline.Config{}, err
		}
		config, _, err := modules.Catalog().Resolve(b.config.defaults(), pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
		return config, err
	}
}

// advise schedules the replay of recent sessions with the other trigger. It returns the preview service and
// the store of its results.
func advise(b base, sessions *sessiondb.Store, models *tokens.Models, settings *proxysettings.Cache) (*preview.Preview, *previewdb.Store) {
	prices := func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error) {
		return settings.Overrides(ctx, workspace, uuid.Nil)
	}
	compares, store := preview.New(sessions.Browser(), models).WithPrices(prices), previewdb.New(b.db)
	advisor := preview.Advisor{Preview: compares, Store: store, Workspaces: b.db.Workspaces.AllWorkspaces, Settings: settingsIn(b), Now: b.now}
	b.work.Every("trigger_advice", preview.AdviceEvery, preview.AdviceTimeout, advisor.Pass)
	return compares, store
}
