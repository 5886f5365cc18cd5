package main

import (
	"context"

	"github.com/google/uuid"

	"palimpsest/api/proxysettings"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/miner"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// openPatterns makes what keeps patterns and what serves them from memory, and has quiet
// sessions read for more of them again and again.
func openPatterns(b base, of stored) (*patternsdb.Store, *patterns.Cache) {
	store := patternsdb.New(b.db)
	reader := miner.New(miner.Config{
		Store: store, Archive: of.originals, Inserts: of.sessions.Browser(), Codecs: formats.ByFormat(), Log: b.log, Now: b.now,
		Settings: settingsIn(b),
	})
	b.work.Every("patterns", miner.Every, miner.Timeout, reader.Pass)
	return store, patterns.NewCache(store.Approved, b.now)
}

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
