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

// settingsIn returns what reads a workspace's pipeline from the database.
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

// advise has recent sessions replayed with the other trigger again and again, and returns
// what compares settings and keeps what came of it.
func advise(b base, sessions *sessiondb.Store, models *tokens.Models, settings *proxysettings.Cache) (*preview.Preview, *previewdb.Store) {
	prices := func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error) {
		return settings.Overrides(ctx, workspace, uuid.Nil)
	}
	compares, store := preview.New(sessions.Browser(), models).WithPrices(prices), previewdb.New(b.db)
	advisor := preview.Advisor{Preview: compares, Store: store, Workspaces: b.db.Workspaces.AllWorkspaces, Settings: settingsIn(b), Now: b.now}
	b.work.Every("trigger_advice", preview.AdviceEvery, preview.AdviceTimeout, advisor.Pass)
	return compares, store
}
