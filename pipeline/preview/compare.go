package preview

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

const (
	// Newest is the default number of sessions in a preview.
	Newest = 40
	// Most limits the number of sessions.
	Most = 200
	// fewest is how many of its own sessions a workspace needs for a preview of them.
	fewest = 5
)

// The lifetime and number of cached comparisons. Moving a slider asks for the same one again and
// again.
const (
	remembered = 30 * time.Second
	most       = 64
)

// Preview compares settings on a workspace's newest sessions. It is safe for
// concurrent use.
type Preview struct {
	store  session.Records
	models *tokens.Models
	prices func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error) // nil means the catalog's
	known  *localcache.Cache[string, known]                                                   // by question
}

// question returns the key of a comparison's constant inputs while someone tries other settings.
func question(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved pipeline.Config) string {
	return fmt.Sprintf("%s %v %d %q %s %s", workspace, tenants.VisibleIn(ctx), picked.Newest, picked.Client, picked.Since, saved.YAML())
}

// known is the common beginning of all comparisons with the same saved settings.
type known struct {
	recorded []session.Recorded
	found    Comparison
}

// Comparison is the result of two settings on the same sessions.
type Comparison struct {
	IsSample bool    // of a bundled sample, because the workspace has too few sessions
	Was      Figures // as recorded, under the settings at the time; zero for a sample
	Saved    Figures // with the saved settings
	Wanted   Figures // with the other settings

	// HasLevels reports whether Was knows how much was sent word for word, how much as an outline, and the
	// deepest level.
	HasLevels bool

	// The same by session, the newest first.
	SavedEach, WantedEach []Session
}

// New returns a Preview that knows models.
func New(store session.Records, models *tokens.Models) *Preview {
	known, err := localcache.New[string](localcache.Options[known]{MaximumSize: most, ExpireAfterWrite: remembered})
	if err != nil {
		panic(err) // of constants
	}
	return &Preview{store: store, models: models, known: known}
}

// WithPrices makes p use the prices that read returns for a workspace instead of the catalog's, and
// returns p.
func (p *Preview) WithPrices(read func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error)) *Preview {
	p.prices = read
	return p
}

// Compare compares two configs on the picked sessions of a workspace. The sessions may be up to
// half a minute old.
func (p *Preview) Compare(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved, wanted pipeline.Config) (Comparison, error) {
	saves, err := p.remembered(ctx, workspace, picked, saved)
	if err != nil {
		return Comparison{}, err
	}
	found := saves.found
	found.Wanted, found.WantedEach = found.Saved, found.SavedEach
	if !reflect.DeepEqual(saved, wanted) {
		found.WantedEach, err = p.run(ctx, workspace, wanted, saves.recorded, runtime.GOMAXPROCS(0))
		found.Wanted = sum(found.WantedEach)
	}
	return found, err
}

// remembered returns the result of withSaved, up to half a minute old.
func (p *Preview) remembered(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved pipeline.Config) (known, error) {
	picked.Newest = min(picked.Newest, Most)
	visible := tenants.VisibleIn(ctx)
	return p.known.Load(ctx, question(ctx, workspace, picked, saved), func(ctx context.Context) (known, error) {
		return p.withSaved(tenants.WithVisible(ctx, visible), workspace, picked, saved)
	})
}

// withSaved returns the sessions and their figures with the saved settings.
func (p *Preview) withSaved(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved pipeline.Config) (known, error) {
	recorded, err := p.store.Recorded(ctx, workspace, picked)
	if err != nil {
		return known{}, err
	}
	var found Comparison
	if len(recorded) < fewest {
		recorded, found.IsSample = sample(), true
	} else {
		lookup, err := p.lookup(ctx, workspace)
		if err != nil {
			return known{}, err
		}
		found.Was = Actual(lookup, recorded)
		if found.HasLevels, err = p.levels(ctx, workspace, lookup, recorded, &found.Was); err != nil {
			return known{}, err
		}
	}
	found.SavedEach, err = p.run(ctx, workspace, saved, recorded, runtime.GOMAXPROCS(0))
	found.Saved = sum(found.SavedEach)
	return known{recorded, found}, err
}

// run runs a config.
func (p *Preview) run(ctx context.Context, workspace tenants.WorkspaceID, config pipeline.Config, recorded []session.Recorded, atOnce int) ([]Session, error) {
	lookup, err := p.lookup(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return each(ctx, compressing(config), lookup, recorded, atOnce)
}

// lookup returns a function that looks up models with the workspace's own prices.
func (p *Preview) lookup(ctx context.Context, workspace tenants.WorkspaceID) (func(name string) tokens.Model, error) {
	if p.prices == nil {
		return p.models.Lookup, nil
	}
	read, err := p.prices(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("prices of the workspace: %w", err)
	}
	set := tokens.Overrides{Prices: read.Prices} // keep the recorded windows
	return func(name string) tokens.Model { return set.On(p.models.Lookup(name), name) }, nil
}

// compressing returns a config for the module that compresses. A pipeline without the module sends
// prompts unchanged.
func compressing(config pipeline.Config) pipeline.Config {
	if !config.Runs(ipc.Name) {
		pipeline.Change[ipc.Config](&config).DeepestLevel = 0
	}
	return config
}
