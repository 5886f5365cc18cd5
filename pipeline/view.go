package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// View is a module's read-only view of an exchange: the client's request, the state of its lane, and the
// changes of the modules before it. It is valid until the module returns. A module makes changes in a Draft.
type View struct {
	Conversation Conversation
	Limits       Limits
	Lane         Lane

	ID      uuid.UUID
	Scope   session.Scope
	Config  Config
	Request wire.Request
	Class   client.Class // the request's role for its client
	Model   tokens.Model

	// CountText counts the o200k tokens of a text as a separate message.
	CountText func(text string) int
	Committer Committer

	// Report lists the work of the modules before this one.
	Report Report
}

// Draft returns an unchanged draft for a module.
func (v *View) Draft(module string) *Draft {
	draft := &Draft{View: *v, module: module}
	draft.Report = v.Report.clone()
	return draft
}

// Limits hold the largest allowed prompt, and how its size is counted.
type Limits struct {
	Limit    int     // tokens the prompt may have; 0 if the model is unknown
	Takes    int     // tokens that the provider accepts, even if the settings assume a smaller window; 0 if unknown
	MaxBytes int     // bytes the body may have according to the provider; 0 if it named no limit
	Factor   float64 // the model's tokens per o200k token
	Fixed    int     // o200k tokens of Request.Fixed
}

// Lane is the known state of an exchange's lane.
type Lane struct {
	Place

	// Projection replaces the first messages. It is the lane's current one when the pipeline starts; nil for
	// the originals.
	Projection *session.Projection

	// NextProjection is the number of the lane's next projection; 0 means one more than Projection's.
	NextProjection int

	// Summary is a model's text in place of the lane's first messages, for the next epoch; nil if absent.
	Summary *session.Summary

	Order     *session.Order     // user request for the lane's next epoch; nil if absent
	Plan      *session.Plan      // epoch planned ahead for the lane; nil if absent
	Pins      []int              // messages, in order, whose turns must stay as the client sent them
	Inserts   []session.Insert   // inserts of modules in the lane's history, those of this exchange last
	Finalized bool               // the prompt takes no new inserts
	Met       int                // leading messages that an earlier request of the session had
	Left      session.Left       // the history that the client left behind with this request
	Anchor    session.Anchor     // the size of an earlier prompt of the lane as the provider reported it
	Heat      session.CacheState // the last prompt of the lane that went to the provider
	Attempts  session.Attempts   // the lane's attempts at an epoch that failed
	Now       time.Time          // when the request arrived; zero without a clock
}

// Place identifies the session and lane of an exchange.
type Place struct {
	Session uuid.UUID // uuid.Nil if there is no lane

	// Line is the lane of a session recognized by its content; uuid.Nil if the client names its session.
	// Earlier messages of that lane are the same conversation. Messages in other lanes of the session may
	// only share their beginning with it.
	Line uuid.UUID

	// Pinned says that someone has pinned the whole session: only an order compacts its prompts.
	Pinned bool

	// Lives are the lengths in messages of ended threads of the lane's kind, in order; nil if unknown.
	Lives []int
}

// Committer stores data of a lane that must last even if a module's draft is dropped.
type Committer interface {
	// Commit makes the originals of the whole request and a new projection of its lane durable. A projection
	// may be used only after Commit returned nil.
	Commit(ctx context.Context, projection session.Projection) error

	// Tried records for the lane how an attempt at an epoch ended.
	Tried(attempts session.Attempts)
}

// Forgetful is a Committer that discards its input and always succeeds.
type Forgetful struct{}

// Commit implements Committer.
func (Forgetful) Commit(context.Context, session.Projection) error { return nil }

// Tried implements Committer.
func (Forgetful) Tried(session.Attempts) {}

// Size estimates the prompt in the model's tokens if projection, which may be nil, replaces the first
// messages. If the provider has reported the size of an earlier prompt with the same projection, only the
// messages since then are estimated.
func (v *View) Size(projection *session.Projection) int { return v.sized(projection, 0) }

// sized is Size plus more o200k tokens, rounded once.
func (v *View) sized(projection *session.Projection, more int) int {
	number := 0
	if projection != nil {
		number = projection.Number
	}
	anchor := &v.Lane.Anchor
	if anchor.Tokens > 0 && anchor.Projection == number && anchor.Replaced == projection.Tokens() && anchor.Position <= len(v.Conversation.Digests) {
		return v.since(v.Estimate(projection)+more, v.originals(anchor.Position)+v.Limits.Fixed-anchor.Fixed+v.Inserted(projection)-anchor.Inserted+more)
	}
	return v.scale(max(0, v.Estimate(projection)+more))
}

// since returns the size of a prompt of estimate o200k tokens, added of which came after the anchor. If the
// prompt has lost something since (tools, for example) whose estimate exceeds the provider's whole count,
// only the estimate is used.
func (v *View) since(estimate, added int) int {
	size, plain := v.Lane.Anchor.Tokens+v.scale(added), v.scale(max(0, estimate))
	if added < 0 && 2*size < plain {
		return plain
	}
	return max(0, size)
}

// Estimate returns the prompt's o200k tokens, uncorrected, if projection, which may be nil, replaces the
// first messages.
func (v *View) Estimate(projection *session.Projection) int {
	estimate, from := v.Limits.Fixed, 0
	if projection != nil {
		from = projection.Covers
	}
	return estimate + projection.Tokens() + v.originals(from) + v.Inserted(projection)
}

// Bytes returns the size of the body in bytes, without our cache markers, if projection, which may be nil,
// replaces the first messages.
func (v *View) Bytes(projection *session.Projection) int {
	bytes := v.Conversation.BodyLength() + v.addedBytes(projection)
	if projection == nil {
		return bytes
	}
	for _, part := range projection.Parts {
		if part.Raw == nil {
			continue
		}
		bytes += len(part.Raw)
		for i := part.From; i < part.To; i++ {
			bytes -= v.Conversation.Length(i)
		}
	}
	return bytes
}

// Original estimates the prompt in the model's tokens as the client sent it, without the inserts of modules.
func (v *View) Original() int {
	replaced := -v.Inserted(v.Lane.Projection)
	if v.Lane.Projection == nil {
		return max(0, v.sized(nil, replaced))
	}
	for _, digest := range v.Conversation.Digests[:v.Lane.Projection.Covers] {
		replaced += digest.Tokens
	}
	return max(0, v.sized(v.Lane.Projection, replaced-v.Lane.Projection.Tokens()))
}

// Levels counts the turns at each level if projection, which may be nil, replaces the first messages. A turn
// counts at the deepest level among its messages.
func (v *View) Levels(projection *session.Projection) [4]int {
	var levels [4]int
	next := 0 // part
	for _, turn := range v.Conversation.Turns {
		deepest := 0
		for projection != nil && next < len(projection.Parts) && projection.Parts[next].From < turn.To {
			deepest = max(deepest, projection.Parts[next].Level)
			if projection.Parts[next].To > turn.To {
				break // continues in the next turn
			}
			next++
		}
		levels[deepest]++
	}
	return levels
}

func (v *View) originals(from int) int {
	sum := 0
	for _, digest := range v.Conversation.Digests[from:] {
		sum += digest.Tokens
	}
	return sum
}

func (v *View) scale(estimate int) int { return int(float64(estimate) * v.Limits.Factor) }

// Injected returns a module's inserts in the lane's history, those of this exchange last, including inserts
// that an epoch has folded.
func (v *View) Injected(module string) []session.Insert {
	var own []session.Insert
	for _, insert := range v.Lane.Inserts {
		if insert.Module == module {
			own = append(own, insert)
		}
	}
	return own
}

// Added returns the o200k tokens of the inserts at messages from index from to to (excluded), even if a
// projection replaces these.
func (v *View) Added(from, to int) int {
	sum := 0
	for i := range v.Lane.Inserts {
		insert := &v.Lane.Inserts[i]
		if from <= insert.Message && insert.Message < to {
			sum += insert.Tokens
		}
	}
	return sum
}

// Inserted returns the o200k tokens of all inserts in the prompt if projection, which may be nil, replaces
// the first messages.
func (v *View) Inserted(projection *session.Projection) int {
	sum := 0
	for i := range v.Lane.Inserts {
		if v.Lane.Inserts[i].Stands(projection) {
			sum += v.Lane.Inserts[i].Tokens
		}
	}
	return sum
}

// LastLength returns how many of the messages were in the lane's last prompt.
func (v *View) LastLength() int {
	if v.Lane.Heat.At.IsZero() {
		return 0
	}
	return v.Lane.Heat.Position
}

// place returns the newest user message, provided that it is new to the provider, accepts a text, and isn't
// covered by a compaction of the provider.
func (v *View) place(text string) (message int, found bool) {
	for i := len(v.Conversation.Digests) - 1; i >= v.LastLength(); i-- {
		digest := &v.Conversation.Digests[i]
		if digest.Role == conversation.Assistant && digest.Flags.Has(conversation.IsPinned) {
			return 0, false
		}
		if digest.Role != conversation.User || digest.Flags.Has(conversation.IsPinned) {
			continue
		}
		return i, v.Conversation.takes(i, text) && v.Lane.Projection.Keeps(i)
	}
	return 0, false
}

// addedBytes returns the bytes that inserts add to the body.
func (v *View) addedBytes(projection *session.Projection) int {
	bytes := 0
	for i := range v.Lane.Inserts {
		if insert := &v.Lane.Inserts[i]; insert.Stands(projection) {
			bytes += len(wire.Quote(insert.Text)) + len(`,{"type":"text","text":}`)
		}
	}
	return bytes
}

// UnmarkedWithInserts is Unmarked with the inserts of modules appended to the message.
func (v *View) UnmarkedWithInserts(message int) json.RawMessage {
	raw := v.Conversation.sendable(message)
	var texts []string
	for i := range v.Lane.Inserts {
		if v.Lane.Inserts[i].Message == message {
			texts = append(texts, v.Lane.Inserts[i].Text)
		}
	}
	if len(texts) > 0 {
		if longer, err := v.Conversation.codec.Append(raw, texts...); err == nil {
			raw = longer
		}
	}
	return v.Conversation.codec.Mark(raw, "")
}

// Standing returns the report of an exchange in its current state, before any module has worked on it.
func (v *View) Standing() Report {
	report := Report{
		Compression: None, Before: v.Original(), After: v.Size(v.Lane.Projection), Limit: v.Limits.Limit, Takes: v.Limits.Takes,
		Target: v.Config.Target(v.Limits.Limit), Levels: v.Levels(v.Lane.Projection),
	}
	switch {
	case v.Request.ReadOnly != "":
		report.Compression = Bypassed
	case v.Lane.Projection != nil:
		report.Compression = Replayed
	}
	return report
}
