package ipc

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// factorDrift is the share by which the calibration may move before an epoch planned ahead expires.
const factorDrift = 0.05

// Plan plans the epoch that Process would make of an exchange on a cold cache, without changing
// anything. It returns pipeline.ErrNoPlan if no plan is worth making. It doesn't need the
// exchange's Commit or Heat.
func (m *Module) Plan(ctx context.Context, exchange *pipeline.View) (*session.Plan, error) {
	config := configOf(exchange)
	size := exchange.Size(exchange.Lane.Projection)
	switch {
	case exchange.Request.ReadOnly != "" || exchange.Limits.Limit == 0 || config.DeepestLevel == 0 || !config.ArchiveToBlob || exchange.Class.IsSide():
		return nil, pipeline.ErrNoPlan
	case size <= config.IdleAbove(exchange.Limits.Limit):
		return nil, pipeline.ErrNoPlan
	case held(exchange, size, idle) != "" && exchange.Lane.Attempts.Reason != costGate:
		return nil, pipeline.ErrNoPlan
	}
	epoch, err := m.plan(ctx, exchange, size)
	if errors.Is(err, errNothingToFree) || errors.Is(err, errWorse) {
		return nil, fmt.Errorf("%w: %w", pipeline.ErrNoPlan, err)
	}
	if err != nil {
		return nil, fmt.Errorf("plan epoch ahead: %w", err)
	}
	if epoch.dropped > 0 || !epoch.reached {
		return nil, fmt.Errorf("%w: the target is out of reach", pipeline.ErrNoPlan)
	}
	return &session.Plan{Projection: epoch.projection, Settings: settings(exchange), Factor: exchange.Limits.Factor}, nil
}

// ahead returns the epoch that was planned ahead for an exchange of size tokens: the epoch of the
// lane's last request, with the turns since then unchanged. It returns nil if there is no such
// plan, or if the plan no longer frees enough.
func ahead(exchange *pipeline.View, size int) *epoch {
	plan := exchange.Lane.Plan
	if plan == nil || exchange.Lane.Order != nil || plan.Projection.Number != exchange.Lane.NextProjection || math.Abs(plan.Factor/exchange.Limits.Factor-1) > factorDrift {
		return nil
	}
	projection := plan.Projection
	if projection.Covers >= len(exchange.Conversation.Chain) || exchange.Conversation.Chain[projection.Covers] != projection.Chain || settings(exchange) != plan.Settings {
		return nil
	}
	b, after := measure(exchange, size), exchange.Estimate(&projection)
	if after > (b.goal+b.high)/2 || b.now-after < b.worth {
		return nil // the new messages are too large for the plan
	}
	projection.Before, projection.After = size, b.tokens(after)
	return newEpoch(exchange, b, &projection, true)
}

// settings returns a fingerprint of an epoch's inputs besides the history and the calibration.
func settings(exchange *pipeline.View) conversation.Hash {
	number := 0
	if exchange.Lane.Projection != nil {
		number = exchange.Lane.Projection.Number
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%d|%s|%q|%d|%d|%t|%v|", RenderVersion, exchange.Scope.Format, exchange.Model.Name, exchange.Limits.Limit, number, exchange.Request.ThinkingFirst, exchange.Lane.Pins)
	if exchange.Lane.Summary != nil {
		fmt.Fprintf(hash, "%d|%q|", exchange.Lane.Summary.Covers, exchange.Lane.Summary.Text)
	}
	if encoded, err := json.Marshal(configOf(exchange)); err == nil { // plain values
		hash.Write(encoded)
	}
	return conversation.Hash(hash.Sum(nil))
}
