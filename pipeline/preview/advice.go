package preview

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// AdviceSpan is how far back the sessions go that advice is based on.
	AdviceSpan = 30 * 24 * time.Hour
	// advised bounds how many of them are replayed: the newest.
	advised = 100
	// AdviceEvery is how often the job looks for workspaces whose advice is old.
	AdviceEvery = time.Hour
	// AdviceTimeout bounds one look. Workspaces that it does not come to wait for the next.
	AdviceTimeout = 30 * time.Minute
	// adviceAge is how old advice gets before it is made again.
	adviceAge = 24 * time.Hour
	// worthSaying is from which share of the prompts' cost on a difference is worth saying.
	worthSaying = 0.01
)

// ErrNoAdvice says that no advice has been made for a workspace.
var ErrNoAdvice = errors.New("no advice has been made")

// Advice is what the other trigger would have come to in a workspace's recent sessions,
// beside the one that is set. Both are replayed: neither figure is what was really paid.
type Advice struct {
	MadeAt   time.Time
	Since    time.Time // sessions that were active since then were replayed
	Trigger  string    // that was set
	Sessions int       // that were replayed
	HasMore  bool      // there were more: the newest were replayed

	Received                int64 // tokens of their prompts
	Verbatim, OtherVerbatim int64 // of them, those that go out word for word
	Cost, OtherCost         int64 // of the prompts, in millionths of a US dollar at list prices

	Dismissed bool
}

// Saves returns what the other trigger would have saved; less than 0 where it would have
// cost more.
func (a *Advice) Saves() int64 { return a.Cost - a.OtherCost }

// IsWorthSaying reports whether the advice has a basis, and something to say about a
// workspace with a trigger that nobody has dismissed.
func (a *Advice) IsWorthSaying(trigger string) bool {
	difference := a.Saves()
	return !a.Dismissed && a.Trigger == trigger && a.Sessions >= fewest && float64(max(difference, -difference)) >= worthSaying*float64(max(1, a.Cost))
}

// AdviceStore keeps advice.
type AdviceStore interface {
	// Advice returns a workspace's advice. It returns ErrNoAdvice.
	Advice(ctx context.Context, workspace tenants.WorkspaceID) (Advice, error)

	// KeepAdvice keeps advice in place of that before. Advice for the same trigger stays
	// dismissed.
	KeepAdvice(ctx context.Context, workspace tenants.WorkspaceID, advice Advice) error
}

// Advisor makes advice in the background.
type Advisor struct {
	Preview *Preview
	Store   AdviceStore

	// Workspaces returns all workspaces.
	Workspaces func(ctx context.Context) ([]tenants.WorkspaceID, error)

	// Settings returns the pipeline of a workspace.
	Settings func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error)

	Now func() time.Time
}

// Pass makes the advice of all workspaces whose advice is a day old, or whose trigger
// has changed since, one workspace after the other. A failure in one workspace
// does not stop the rest.
func (a *Advisor) Pass(ctx context.Context) error {
	workspaces, err := a.Workspaces(ctx)
	for _, workspace := range workspaces {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if adviseErr := a.advise(ctx, workspace); adviseErr != nil {
			err = errors.Join(err, fmt.Errorf("advice for workspace %s: %w", workspace, adviseErr))
		}
	}
	return err
}

func (a *Advisor) advise(ctx context.Context, workspace tenants.WorkspaceID) error {
	config, err := a.Settings(ctx, workspace)
	if err != nil || !config.Runs(ipc.Name) {
		return err
	}
	now := a.Now()
	last, err := a.Store.Advice(ctx, workspace)
	switch {
	case errors.Is(err, ErrNoAdvice):
	case err != nil:
		return err
	case last.Trigger == pipeline.SettingsOf[ipc.Config](config).Trigger && now.Sub(last.MadeAt) < adviceAge:
		return nil
	}
	advice, err := a.Preview.advise(ctx, workspace, config, now.Add(-AdviceSpan))
	if err != nil {
		return err
	}
	advice.MadeAt = now
	return a.Store.KeepAdvice(ctx, workspace, advice)
}

// advise replays the newest sessions since a time with both triggers, one session after
// the other, since it runs in the background.
func (p *Preview) advise(ctx context.Context, workspace tenants.WorkspaceID, config pipeline.Config, since time.Time) (Advice, error) {
	recorded, err := p.store.Recorded(ctx, workspace, session.Selection{Newest: advised + 1, Since: since})
	if err != nil {
		return Advice{}, err
	}
	advice := Advice{Since: since, Trigger: pipeline.SettingsOf[ipc.Config](config).Trigger, HasMore: len(recorded) > advised}
	recorded = recorded[:min(advised, len(recorded))]
	other := config
	pipeline.Change[ipc.Config](&other).Trigger = ipc.OtherTrigger(pipeline.SettingsOf[ipc.Config](config).Trigger)
	set, err := p.run(ctx, workspace, config, recorded, 1)
	if err != nil {
		return Advice{}, err
	}
	instead, err := p.run(ctx, workspace, other, recorded, 1)
	if err != nil {
		return Advice{}, err
	}
	for i := range set {
		if set[i].Requests == 0 {
			continue // its messages are no longer kept
		}
		advice.Sessions++
		advice.Received += set[i].Received
		advice.Verbatim += set[i].Verbatim
		advice.OtherVerbatim += instead[i].Verbatim
		advice.Cost += set[i].Cost
		advice.OtherCost += instead[i].Cost
	}
	return advice, nil
}
