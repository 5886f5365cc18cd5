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
	// Newest is how many sessions a preview looks at unless it is told otherwise.
	Newest = 40
	// Most bounds how many it looks at.
	Most = 200
	// fewest is how many sessions of its own a workspace needs for a preview of them.
	fewest = 5
)

// What someone who moves a slider asks for again and again is remembered for a while,
// of so many of them.
const (
	remembered = 30 * time.Second
	most       = 64
)

// Preview compares settings on a workspace's newest sessions. It is safe for
// concurrent use.
type Preview struct {
	store  session.Records
	models *tokens.Models
	prices func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error) // nil if the catalog's hold
	known  *localcache.Cache[string, known]                                                   // by question
}

// question names what stays the same while someone tries other settings.
func question(workspace tenants.WorkspaceID, picked session.Selection, saved pipeline.Config) string {
	return fmt.Sprintf("%s %d %q %s %s", workspace, picked.Newest, picked.Client, picked.Since, saved.YAML())
}

// known is what every comparison with the same saved settings begins with.
type known struct {
	recorded []session.Recorded
	found    Comparison
}

// Comparison is what two settings make of the same sessions.
type Comparison struct {
	IsSample bool    // of a bundled sample: the workspace has too few sessions of its own
	Was      Figures // what happened, under whatever the settings were then; of a sample nothing
	Saved    Figures // with the settings as they are saved
	Wanted   Figures // and with others

	// The same session by session, the newest first.
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

// WithPrices has the prices that read returns of a workspace hold in place of the catalog's, and returns p.
func (p *Preview) WithPrices(read func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error)) *Preview {
	p.prices = read
	return p
}

// Compare compares two configs on the sessions of a workspace that are picked, as they
// were at most half a minute ago.
func (p *Preview) Compare(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved, wanted pipeline.Config) (Comparison, error) {
	standing, err := p.remembered(ctx, workspace, picked, saved)
	if err != nil {
		return Comparison{}, err
	}
	found := standing.found
	found.Wanted, found.WantedEach = found.Saved, found.SavedEach
	if !reflect.DeepEqual(saved, wanted) {
		found.WantedEach, err = p.run(ctx, workspace, wanted, standing.recorded, runtime.GOMAXPROCS(0))
		found.Wanted = sum(found.WantedEach)
	}
	return found, err
}

// remembered returns what standing does, as it was at most half a minute ago.
func (p *Preview) remembered(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved pipeline.Config) (known, error) {
	picked.Newest = min(picked.Newest, Most)
	return p.known.Load(ctx, question(workspace, picked, saved), func(ctx context.Context) (known, error) {
		return p.standing(ctx, workspace, picked, saved)
	})
}

// standing returns the sessions and what the saved settings make of them.
func (p *Preview) standing(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, saved pipeline.Config) (known, error) {
	recorded, err := p.store.Recorded(ctx, workspace, picked)
	if err != nil {
		return known{}, err
	}
	var found Comparison
	if len(recorded) < fewest {
		recorded, found.IsSample = sample(), true
	} else {
		found.Was = Actual(recorded)
	}
	found.SavedEach, err = p.run(ctx, workspace, saved, recorded, runtime.GOMAXPROCS(0))
	found.Saved = sum(found.SavedEach)
	return known{recorded, found}, err
}

// run runs a config.
func (p *Preview) run(ctx context.Context, workspace tenants.WorkspaceID, config pipeline.Config, recorded []session.Recorded, atOnce int) ([]Session, error) {
	var set tokens.Overrides
	if p.prices != nil {
		read, err := p.prices(ctx, workspace)
		if err != nil {
			return nil, fmt.Errorf("prices of the workspace: %w", err)
		}
		set.Prices = read.Prices // windows are those that were recorded
	}
	lookup := func(name string) tokens.Model { return set.On(p.models.Lookup(name), name) }
	return each(ctx, compressing(config), lookup, recorded, atOnce)
}

// compressing returns a config for the module that compresses. A pipeline without the
// module sends what it is sent.
func compressing(config pipeline.Config) pipeline.Config {
	if !config.Runs(ipc.Name) {
		pipeline.Change[ipc.Config](&config).DeepestLevel = 0
	}
	return config
}
