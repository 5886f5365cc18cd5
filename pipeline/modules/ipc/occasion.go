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

// nearLimit is the share of the limit above which an epoch is no longer put off for its price, because
// an estimate may be off. Only the newest messages are estimated: the provider has counted the others.
const nearLimit = 0.98

// breakEvenReason is the reason of an epoch made once the cost of reading on had reached its price.
const breakEvenReason = "break-even"

// bytesReason is the reason of an epoch for a prompt with too many bytes.
const bytesReason = "bytes"

// occasion is why an epoch may be made now.
type occasion int

// The occasions, in the order of their urgency.
const (
	noOccasion  occasion = iota
	idle                 // the cache has gone cold, and the prompt is larger than necessary
	brokeEven            // reading removable content has cost as much as the epoch
	atTarget             // the prompt is above its target
	atNearLimit          // it is above its target and will soon not fit
	asked                // someone has asked for it
	overBytes            // it exceeds its byte limit
	overLimit            // it does not fit
)

// occasionOf returns the occasion for an epoch of a prompt of so many tokens.
func occasionOf(exchange *pipeline.View, size int) occasion {
	config := configOf(exchange)
	share := float64(size) / float64(exchange.Limits.Limit)
	switch {
	case exchange.Limits.Limit > 0 && size > exchange.Limits.Limit:
		return overLimit
	case isHeavy(exchange):
		return overBytes
	case exchange.Limits.Limit == 0, exchange.Class.IsSide():
		return noOccasion // a side call's prompt comes only once, and reads the conversation's cache
	case exchange.Lane.Order != nil && config.DeepestLevel > 0:
		return asked
	case share > max(nearLimit, config.TargetUtilization):
		return atNearLimit
	case share > config.TargetUtilization:
		return atTarget
	case byBreakEven(exchange):
		return breakEvenOccasion(exchange, size)
	case share > config.IdleUtilization && isFree(exchange):
		return idle
	}
	return noOccasion
}

// isFree reports whether rewriting the prompt costs nothing extra because the cache of the lane's
// last prompt has gone cold.
func isFree(exchange *pipeline.View) bool {
	config := configOf(exchange)
	return exchange.Lane.Heat.Cooled(exchange.Lane.Now) && config.DeepestLevel > 0 && config.ArchiveToBlob
}

// isWarm reports whether the provider's cache is likely to hold the lane's prompt.
func isWarm(exchange *pipeline.View) bool {
	return !exchange.Lane.Heat.Cold(exchange.Lane.Now, exchange.Request.Model)
}

// isTooSoon reports whether an epoch of a prompt of size tokens above its target would free too little,
// or so little that the next one would follow soon, because system prompt and tools take much of the
// window. While its cache is warm, such a prompt may grow until an epoch frees half of the target's share
// of the part that can change, but at most to the bound for a warm cache. An epoch that can't reach its
// target, or would free too little even at that bound, isn't put off.
func isTooSoon(exchange *pipeline.View, size int) bool {
	b, config := measure(exchange, size), configOf(exchange)
	most := config.most(float64(b.limit), float64(b.fixed))
	enough := float64(b.goal + b.worth)
	if b.goal > b.high || enough > most {
		return false
	}
	if isWarm(exchange) {
		share := config.TargetUtilization * float64(b.limit-b.fixed)
		enough = max(enough, min(float64(b.goal)+share/2, most))
	}
	return float64(b.now) < enough
}

// reason returns the reason of an epoch made on the occasion.
func (o occasion) reason() string {
	switch o {
	case idle:
		return session.ReasonIdle
	case brokeEven:
		return breakEvenReason
	case asked:
		return "manual"
	case overBytes:
		return bytesReason
	case overLimit:
		return "limit"
	default:
		return "target"
	}
}

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
