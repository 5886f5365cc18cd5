package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Exchange is one request on its way through the pipeline. Modules read it and
// change Projection and Report, and put text into the prompt by Inject, nothing else.
type Exchange struct {
	ID      uuid.UUID
	Scope   session.Scope
	Session uuid.UUID // the lane's; uuid.Nil if there is no lane
	Config  Config
	Codec   wire.Codec
	Request wire.Request
	Class   client.Class // what the request is to its client
	Body    *wire.Envelope

	Model  tokens.Model
	Limit  int     // tokens the prompt may have; 0: the model is unknown
	Takes  int     // tokens that the provider takes, however small a window the settings assume; 0 if unknown
	Factor float64 // the model's tokens per o200k token

	Fixed   int                   // o200k tokens of Request.Fixed
	Digests []conversation.Digest // of the body's messages
	Turns   []conversation.Turn   // of the body's messages
	Chain   []conversation.Hash   // Chain[i] is the link after i messages

	// MaxBytes is how many bytes the body may have by the provider's own word; 0: it
	// has said nothing.
	MaxBytes int

	// Projection is what stands for the first messages: the lane's current one
	// when the pipeline starts; nil: the originals.
	Projection *session.Projection

	// Summary is what a model has written in place of the lane's first messages,
	// for the next epoch to use; nil if none.
	Summary *session.Summary

	// NextProjection is the number of the lane's next projection; 0: one more
	// than Projection's.
	NextProjection int

	// Order is what someone asked of the lane's next epoch; nil if none.
	Order *session.Order

	// Pins are the messages, in order, whose turns are to stay as the client sent them.
	Pins []int

	// Met counts the leading messages that an earlier request of the session had.
	Met int

	// Reply is the answer that a module gives in the provider's place; nil if the provider
	// is asked.
	Reply *Reply

	// Left is the history that the client left behind with this request.
	Left session.Left

	// Inserts are what modules have put into the lane's history, those of this
	// exchange last. Modules add to them by Inject.
	Inserts []session.Insert

	// CountText counts the o200k tokens of a text as a message of its own.
	CountText func(text string) int

	// Settled says that the prompt takes no new inserts.
	Settled bool

	// Anchor is the size of an earlier prompt of the lane as the provider
	// reported it.
	Anchor session.Anchor

	// Now is when the request came; zero: there is no clock.
	Now time.Time

	// Heat is the last prompt of the lane that went to the provider.
	Heat session.Heat

	// Attempts are those of the lane at an epoch that came to nothing.
	Attempts session.Attempts

	// Plan is what was planned ahead for the lane; nil if none.
	Plan *session.Plan

	// Tried has the lane remember how an attempt at an epoch ended, whatever
	// becomes of the exchange; nil if no one remembers.
	Tried func(session.Attempts)

	// Commit makes the originals of the whole request and a new projection of
	// its lane durable. A projection may be used only after it returned nil.
	Commit func(context.Context, session.Projection) error

	Report Report

	large *largeMessages // nil: messages are parsed each time
}

// Message reads message i of the body.
func (e *Exchange) Message(i int) (conversation.Message, error) {
	raw := e.Body.Element(i)
	parse := func() (conversation.Message, error) { return e.Codec.Parse(raw) }
	if e.large != nil && len(raw) >= largeMessage {
		parse = func() (conversation.Message, error) { return e.large.message(i, raw, e.Codec) }
	}
	message, err := parse()
	if err != nil {
		return conversation.Message{}, fmt.Errorf("message %d: %w", i, err)
	}
	return message, nil
}

// Size estimates the prompt in the model's tokens if projection, which may be
// nil, stands for the first messages. Where the provider has reported the size
// of an earlier prompt with the same projection, only what came after it is
// estimated.
func (e *Exchange) Size(projection *session.Projection) int { return e.sized(projection, 0) }

// sized is Size with so many o200k tokens more, rounded once.
func (e *Exchange) sized(projection *session.Projection, more int) int {
	number := 0
	if projection != nil {
		number = projection.Number
	}
	if e.Anchor.Tokens > 0 && e.Anchor.Projection == number && e.Anchor.Position <= len(e.Digests) {
		return e.Anchor.Tokens + e.scale(e.originals(e.Anchor.Position)+e.Fixed-e.Anchor.Fixed+e.Inserted(projection)-e.Anchor.Inserted+more)
	}
	return e.scale(e.Estimate(projection) + more)
}

// Estimate returns the prompt's o200k tokens, without any correction, if
// projection, which may be nil, stands for the first messages.
func (e *Exchange) Estimate(projection *session.Projection) int {
	estimate, from := e.Fixed, 0
	if projection != nil {
		from = projection.Covers
		for _, part := range projection.Parts {
			estimate += part.Tokens
		}
	}
	return estimate + e.originals(from) + e.Inserted(projection)
}

// Bytes returns the size of the body in bytes, without our cache markers, if
// projection, which may be nil, stands for the first messages.
func (e *Exchange) Bytes(projection *session.Projection) int {
	bytes := len(e.Body.Body()) + e.addedBytes(projection)
	if projection == nil {
		return bytes
	}
	for _, part := range projection.Parts {
		if part.Raw == nil {
			continue
		}
		bytes += len(part.Raw)
		for i := part.From; i < part.To; i++ {
			bytes -= len(e.Body.Element(i))
		}
	}
	return bytes
}

// Original estimates the prompt in the model's tokens as the client sent it: without
// what modules have put into it.
func (e *Exchange) Original() int {
	replaced := -e.Inserted(e.Projection)
	if e.Projection == nil {
		return max(0, e.sized(nil, replaced))
	}
	for _, digest := range e.Digests[:e.Projection.Covers] {
		replaced += digest.Tokens
	}
	for _, part := range e.Projection.Parts {
		replaced -= part.Tokens
	}
	return max(0, e.sized(e.Projection, replaced))
}

// Standing returns the report of the exchange as it stands, before any module has
// worked on it.
func (e *Exchange) Standing() Report {
	report := Report{
		Compression: None, Before: e.Original(), After: e.Size(e.Projection), Limit: e.Limit, Takes: e.Takes,
		Target: e.Config.Target(e.Limit), Levels: e.Levels(e.Projection),
	}
	switch {
	case e.Request.Frozen != "":
		report.Compression = Bypassed
	case e.Projection != nil:
		report.Compression = Frozen
	}
	return report
}

// Levels counts the turns at each level if projection, which may be nil, stands
// for the first messages. A turn counts with the deepest of its messages.
func (e *Exchange) Levels(projection *session.Projection) [4]int {
	var levels [4]int
	next := 0 // part
	for _, turn := range e.Turns {
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

// Pieces returns what the sealed body's list is made of.
func (e *Exchange) Pieces() []wire.Piece {
	if e.Projection == nil {
		return []wire.Piece{{From: 0, To: len(e.Digests)}}
	}
	pieces := make([]wire.Piece, 0, len(e.Projection.Parts)+1)
	for _, part := range e.Projection.Parts {
		pieces = append(pieces, wire.Piece{From: part.From, To: part.To, Raw: part.Raw})
	}
	return append(pieces, wire.Piece{From: e.Projection.Covers, To: len(e.Digests)})
}

// Originals returns the raw bytes of the body's messages from index from to to (excluded).
func (e *Exchange) Originals(from, to int) []json.RawMessage {
	raw := make([]json.RawMessage, 0, to-from)
	for i := from; i < to; i++ {
		raw = append(raw, e.Body.Element(i))
	}
	return raw
}

func (e *Exchange) originals(from int) int {
	sum := 0
	for _, digest := range e.Digests[from:] {
		sum += digest.Tokens
	}
	return sum
}

func (e *Exchange) scale(estimate int) int { return int(float64(estimate) * e.Factor) }
