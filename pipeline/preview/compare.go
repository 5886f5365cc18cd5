package preview

import (
	"context"
	"reflect"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
)

const (
	// Newest is how many sessions a preview looks at unless it is told otherwise, and at
	// most.
	Newest, Most = 40, 200
	// fewest is how many sessions of its own a workspace needs for a preview of them.
	fewest = 5
)

// Store keeps conversations.
type Store interface {
	// Recorded returns the main conversations of a workspace's most recently active
	// sessions as they are counted, the newest first.
	Recorded(ctx context.Context, workspace uuid.UUID, sessions int) ([]session.Recorded, error)
}

// Preview compares settings on a workspace's newest sessions. It is safe for
// concurrent use.
type Preview struct {
	store  Store
	models Models
}

// Comparison is what two settings make of the same sessions.
type Comparison struct {
	IsSample bool    // of a bundled sample: the workspace has too few sessions of its own
	Was      Figures // what happened, under whatever the settings were then; of a sample nothing
	Saved    Figures // with the settings as they are saved
	Wanted   Figures // and with others
}

// New returns a Preview that knows models.
func New(store Store, models Models) *Preview { return &Preview{store: store, models: models} }

// Compare compares two configs on a workspace's newest sessions.
func (p *Preview) Compare(ctx context.Context, workspace uuid.UUID, sessions int, saved, wanted pipeline.Config) (Comparison, error) {
	recorded, err := p.store.Recorded(ctx, workspace, min(sessions, Most))
	if err != nil {
		return Comparison{}, err
	}
	var found Comparison
	if len(recorded) < fewest {
		recorded, found.IsSample = sample(), true
	} else {
		found.Was = Actual(recorded)
	}
	if found.Saved, err = p.run(ctx, saved, recorded); err != nil {
		return Comparison{}, err
	}
	if reflect.DeepEqual(saved, wanted) {
		found.Wanted = found.Saved
		return found, nil
	}
	found.Wanted, err = p.run(ctx, wanted, recorded)
	return found, err
}

// run runs a config. A pipeline without the module that compresses sends what it is
// sent.
func (p *Preview) run(ctx context.Context, config pipeline.Config, recorded []session.Recorded) (Figures, error) {
	if !config.Runs(ipc.Name) {
		config.IPC.DeepestLevel = 0
	}
	return Run(ctx, config, p.models, recorded)
}
