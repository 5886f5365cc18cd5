package pipeline

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// View is what a module sees of an exchange: what the client asks, what is known of its lane,
// and what the modules before it have made of both. A module has it until it returns and changes
// nothing of it; what it wants changed it puts into a Draft.
type View struct {
	Conversation
	Limits
	Lane

	ID      uuid.UUID
	Scope   session.Scope
	Config  Config
	Request wire.Request
	Class   client.Class // what the request is to its client
	Model   tokens.Model

	// CountText counts the o200k tokens of a text as a message of its own.
	CountText func(text string) int
	Committer Committer

	// Report says what the modules before it have done.
	Report Report
}

// Draft returns a draft of a module's that changes nothing yet.
func (v *View) Draft(module string) *Draft {
	draft := &Draft{View: *v, module: module}
	draft.Report = v.Report.clone()
	return draft
}

// Limits say how large a prompt may be, and how its size is counted.
type Limits struct {
	Limit    int     // tokens the prompt may have; 0: the model is unknown
	Takes    int     // tokens that the provider takes, however small a window the settings assume; 0 if unknown
	MaxBytes int     // bytes the body may have by the provider's own word; 0 if it has said nothing
	Factor   float64 // the model's tokens per o200k token
	Fixed    int     // o200k tokens of Request.Fixed
}

// Lane is what is known of the lane of an exchange.
type Lane struct {
	Place

	// Projection is what stands for the first messages: the lane's current one
	// when the pipeline starts; nil: the originals.
	Projection *session.Projection

	// NextProjection is the number of the lane's next projection; 0: one more
	// than Projection's.
	NextProjection int

	// Summary is what a model has written in place of the lane's first messages,
	// for the next epoch to use; nil if none.
	Summary *session.Summary

	Order     *session.Order     // what someone asked of the lane's next epoch; nil if none
	Plan      *session.Plan      // what was planned ahead for the lane; nil if none
	Pins      []int              // messages, in order, whose turns are to stay as the client sent them
	Inserts   []session.Insert   // what modules have put into the lane's history, those of this exchange last
	Finalized bool               // the prompt takes no new inserts
	Met       int                // leading messages that an earlier request of the session had
	Left      session.Left       // the history that the client left behind with this request
	Anchor    session.Anchor     // the size of an earlier prompt of the lane as the provider reported it
	Heat      session.CacheState // the last prompt of the lane that went to the provider
	Attempts  session.Attempts   // those of the lane at an epoch that came to nothing
	Now       time.Time          // when the request came; zero: there is no clock
}

// Place is where an exchange belongs.
type Place struct {
	Session uuid.UUID // uuid.Nil if there is no lane

	// Line is the lane of a session that was recognized by its content: what stands before the
	// request in that lane is the same conversation, what stands elsewhere in the session may
	// only begin alike. uuid.Nil if the client names its session.
	Line uuid.UUID

	// Lives are the messages that threads of the lane's kind had at their ends, in order; nil if nothing is known.
	Lives []int
}

// Committer keeps for the lane of an exchange what must last whatever becomes of a module's draft.
type Committer interface {
	// Commit makes the originals of the whole request and a new projection of its lane
	// durable. A projection may be used only after it returned nil.
	Commit(ctx context.Context, projection session.Projection) error

	// Tried has the lane remember how an attempt at an epoch ended.
	Tried(attempts session.Attempts)
}

// Forgetful is a Committer that keeps nothing and refuses nothing.
type Forgetful struct{}

// Commit implements Committer.
func (Forgetful) Commit(context.Context, session.Projection) error { return nil }

// Tried implements Committer.
func (Forgetful) Tried(session.Attempts) {}

// Size estimates the prompt in the model's tokens if projection, which may be
// nil, stands for the first messages. Where the provider has reported the size
// of an earlier prompt with the same projection, only what came after it is
// estimated.
func (v *View) Size(projection *session.Projection) int { return v.sized(projection, 0) }

// sized is Size with so many o200k tokens more, rounded once.
func (v *View) sized(projection *session.Projection, more int) int {
	number := 0
	if projection != nil {
		number = projection.Number
	}
	if v.Anchor.Tokens > 0 && v.Anchor.Projection == number && v.Anchor.Position <= len(v.Digests) {
		return v.since(v.Estimate(projection)+more, v.originals(v.Anchor.Position)+v.Fixed-v.Anchor.Fixed+v.Inserted(projection)-v.Anchor.Inserted+more)
	}
	return v.scale(max(0, v.Estimate(projection)+more))
}

// since returns the size of a prompt of so many o200k tokens, of which so many came
// after the anchor. A prompt may have lost something since, tools for example, whose
// estimate exceeds all that the provider counted: then the estimate alone counts.
func (v *View) since(estimate, added int) int {
	size, plain := v.Anchor.Tokens+v.scale(added), v.scale(max(0, estimate))
	if added < 0 && 2*size < plain {
		return plain
	}
	return max(0, size)
}

// Estimate returns the prompt's o200k tokens, without any correction, if
// projection, which may be nil, stands for the first messages.
func (v *View) Estimate(projection *session.Projection) int {
	estimate, from := v.Fixed, 0
	if projection != nil {
		from = projection.Covers
		for _, part := range projection.Parts {
			estimate += part.Tokens
		}
	}
	return estimate + v.originals(from) + v.Inserted(projection)
}

// Bytes returns the size of the body in bytes, without our cache markers, if
// projection, which may be nil, stands for the first messages.
func (v *View) Bytes(projection *session.Projection) int {
	bytes := v.BodyLength() + v.addedBytes(projection)
	if projection == nil {
		return bytes
	}
	for _, part := range projection.Parts {
		if part.Raw == nil {
			continue
		}
		bytes += len(part.Raw)
		for i := part.From; i < part.To; i++ {
			bytes -= v.Length(i)
		}
	}
	return bytes
}

// Original estimates the prompt in the model's tokens as the client sent it: without
// what modules have put into it.
func (v *View) Original() int {
	replaced := -v.Inserted(v.Projection)
	if v.Projection == nil {
		return max(0, v.sized(nil, replaced))
	}
	for _, digest := range v.Digests[:v.Projection.Covers] {
		replaced += digest.Tokens
	}
	for _, part := range v.Projection.Parts {
		replaced -= part.Tokens
	}
	return max(0, v.sized(v.Projection, replaced))
}

// Levels counts the turns at each level if projection, which may be nil, stands
// for the first messages. A turn counts with the deepest of its messages.
func (v *View) Levels(projection *session.Projection) [4]int {
	var levels [4]int
	next := 0 // part
	for _, turn := range v.Turns {
		deepest := 0
		for projection != nil && next < len(projection.Parts) && projection.Parts[next].From < turn.To {
			deepest = max(deepest, projection.Parts[next].Level)
			if projection.Parts[next].To > turn.To {
				break // goes on in the next turn
			}
			next++
		}
		levels[deepest]++
	}
	return levels
}

func (v *View) originals(from int) int {
	sum := 0
	for _, digest := range v.Digests[from:] {
		sum += digest.Tokens
	}
	return sum
}

func (v *View) scale(estimate int) int { return int(float64(estimate) * v.Factor) }

// Injected returns what a module has put into the lane's history, those of this
// exchange last, whether it is still in the prompt or folded by an epoch.
func (v *View) Injected(module string) []session.Insert {
	var own []session.Insert
	for _, insert := range v.Inserts {
		if insert.Module == module {
			own = append(own, insert)
		}
	}
	return own
}

// Added returns the o200k tokens of the inserts at messages from index from to to
// (excluded), whatever stands for these; of the pointers, those that stand.
func (v *View) Added(from, to int) int {
	sum := 0
	for i := range v.Inserts {
		insert := &v.Inserts[i]
		if from <= insert.Message && insert.Message < to && (!insert.IsPointer() || insert.Stands(v.Projection)) {
			sum += insert.Tokens
		}
	}
	return sum
}

// Inserted returns the o200k tokens of all inserts that are in the prompt if
// projection, which may be nil, stands for the first messages.
func (v *View) Inserted(projection *session.Projection) int {
	sum := 0
	for i := range v.Inserts {
		if v.Inserts[i].Stands(projection) {
			sum += v.Inserts[i].Tokens
		}
	}
	return sum
}

// LastLength returns how many of the messages the lane's last prompt had.
func (v *View) LastLength() int {
	if v.Heat.At.IsZero() {
		return 0
	}
	return v.Heat.Position
}

// place returns the newest message of the user, if the provider has not seen it, it
// takes a text, and no compaction of the provider's own stands for it.
func (v *View) place(text string) (message int, found bool) {
	for i := len(v.Digests) - 1; i >= v.LastLength(); i-- {
		digest := &v.Digests[i]
		if digest.Role == conversation.Assistant && digest.Flags.Has(conversation.IsPinned) {
			return 0, false
		}
		if digest.Role != conversation.User || digest.Flags.Has(conversation.IsPinned) {
			continue
		}
		return i, v.takes(i, text) && v.Projection.Keeps(i)
	}
	return 0, false
}

// addedBytes returns by how many bytes the inserts make the body longer. That pointers make
// it shorter does not count: of what is too heavy, text is the least.
func (v *View) addedBytes(projection *session.Projection) int {
	bytes := 0
	for i := range v.Inserts {
		if insert := &v.Inserts[i]; !insert.IsPointer() && insert.Stands(projection) {
			bytes += len(wire.Quote(insert.Text)) + len(`,{"type":"text","text":}`)
		}
	}
	return bytes
}

// Points reports whether a pointer stands in place of a block of a message.
func (v *View) Points(message, block int) bool {
	return slices.ContainsFunc(v.Inserts, func(insert session.Insert) bool {
		return insert.IsPointer() && insert.Message == message && insert.Block == block+1 && insert.Stands(v.Projection)
	})
}

// UnmarkedWithInserts returns what Unmarked does, with what modules have put behind the message.
func (v *View) UnmarkedWithInserts(message int) json.RawMessage {
	raw := v.sendable(message)
	var texts []string
	for i := range v.Inserts {
		if v.Inserts[i].Message == message && !v.Inserts[i].IsPointer() {
			texts = append(texts, v.Inserts[i].Text)
		}
	}
	if len(texts) > 0 {
		if longer, err := v.codec.Append(raw, texts...); err == nil {
			raw = longer
		}
	}
	return v.codec.Mark(raw, "")
}

// Standing returns the report of an exchange as it stands, before any module has
// worked on it.
func (v *View) Standing() Report {
	report := Report{
		Compression: None, Before: v.Original(), After: v.Size(v.Projection), Limit: v.Limit, Takes: v.Takes,
		Target: v.Config.Target(v.Limit), Levels: v.Levels(v.Projection),
	}
	switch {
	case v.Request.ReadOnly != "":
		report.Compression = Bypassed
	case v.Projection != nil:
		report.Compression = Replayed
	}
	return report
}
