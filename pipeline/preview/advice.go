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
	// AdviceSpan is the age limit of the sessions that advice is based on.
	AdviceSpan = 30 * 24 * time.Hour
	// advised limits how many of them are replayed, the newest first.
	advised = 100
	// AdviceEvery is how often the job looks for workspaces with old advice.
	AdviceEvery = time.Hour
	// AdviceTimeout bounds one pass. Workspaces that it does not reach wait for the next.
	AdviceTimeout = 30 * time.Minute
	// adviceAge is the age at which advice is renewed.
	adviceAge = 24 * time.Hour
	// worthSaying is the minimum difference worth showing, as a share of the prompts' cost.
	worthSaying = 0.01
)

// ErrNoAdvice means that a workspace has no advice yet.
var ErrNoAdvice = errors.New("no advice has been made")

// Advice compares the current trigger with the other one on a workspace's recent sessions. Both are
// replayed: neither figure is a real payment.
type Advice struct {
	MadeAt   time.Time
	Since    time.Time // only sessions active since then were replayed
	Trigger  string    // the current one
	Sessions int       // replayed
	HasMore  bool      // there were more sessions than the newest ones replayed

	Received                int64 // tokens of their prompts
	Verbatim, OtherVerbatim int64 // of them, those sent word for word
	Cost, OtherCost         int64 // of the prompts, in millionths of a US dollar at list prices

	Dismissed bool
}

// Saves returns how much the other trigger would have saved; negative if it would have cost more.
func (a *Advice) Saves() int64 { return a.Cost - a.OtherCost }

// IsWorthSaying reports whether the advice has enough data and a noticeable difference for a
// workspace with a trigger, and isn't dismissed.
func (a *Advice) IsWorthSaying(trigger string) bool {
	difference := a.Saves()
	return !a.Dismissed && a.Trigger == trigger && a.Sessions >= fewest && float64(max(difference, -difference)) >= worthSaying*float64(max(1, a.Cost))
}

// AdviceStore keeps advice.
type AdviceStore interface {
	// Advice returns a workspace's advice. It returns ErrNoAdvice.
	Advice(ctx context.Context, workspace tenants.WorkspaceID) (Advice, error)

	// KeepAdvice replaces a workspace's advice. Advice for the same trigger stays dismissed.
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

// Pass makes the advice of all workspaces whose advice is a day old, or whose trigger has changed
// since, one workspace after the other. A failure in one workspace does not stop the rest.
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
			continue // its messages are no longer stored
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
