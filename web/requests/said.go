package requests

import (
	"context"
	"errors"
	"fmt"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/web/components"
	sessionpage "palimpsest/web/session"
)

// message is one side's message, or the reason why it is not shown.
type message struct {
	Shown templ.Component // nil if Why is set
	Why   string
}

// readMessages reads the request's last message and its answer.
func (h *Handler) readMessages(ctx context.Context, o *opened, exchange *tenants.Exchange) {
	codec := h.codecOf(exchange.Request.Endpoint)
	switch {
	case codec == nil:
		o.Asked = message{Why: "This request carries no conversation."}
		o.Answered = message{Why: "Its answer is not kept."}
		return
	case !o.MayRead:
		o.Asked = message{Why: "The workspace does not let you read this conversation."}
		o.Answered = o.Asked
		return
	}
	var err error
	if o.Asked, err = h.asked(ctx, codec, exchange); err != nil {
		o.Asked.Why = "The request’s text could not be read. Reference " + h.failed(ctx, "what was asked", err) + "."
	}
	if o.Answered, err = h.answered(ctx, codec, exchange); err != nil {
		o.Answered.Why = "The answer could not be read. Reference " + h.failed(ctx, "answer", err) + "."
	}
}

// codecOf returns the codec of an endpoint's messages, or nil.
func (h *Handler) codecOf(endpoint string) wire.Codec {
	codec, _ := formats.AtPath(endpoint)
	return codec
}

func (h *Handler) asked(ctx context.Context, codec wire.Codec, exchange *tenants.Exchange) (message, error) {
	if exchange.Request.Lane == uuid.Nil || exchange.Request.Position == 0 {
		return message{Why: "The request’s text is not kept: storing was off, or its session was deleted or has expired."}, nil
	}
	entry, err := h.deps.Archive.Original(ctx, exchange.Workspace, exchange.Request.Lane, exchange.Request.Position-1)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return message{Why: "The request’s text is not in the archive, or not yet."}, nil
	case errors.Is(err, archive.ErrDamaged):
		return message{Why: "The request’s text is damaged in the archive."}, nil
	case errors.Is(err, archive.ErrAway):
		return message{Why: "The request’s text is in a bucket that does not answer. It is not lost. Try again in a minute."}, nil
	case err != nil:
		return message{}, fmt.Errorf("newest message of request %s: %w", exchange.ID, err)
	}
	return message{Shown: sessionpage.Said(codec, entry.Raw)}, nil
}

func (h *Handler) answered(ctx context.Context, codec wire.Codec, exchange *tenants.Exchange) (message, error) {
	if len(exchange.Answer.Answer) != len(conversation.Hash{}) {
		return message{Why: unanswered(exchange)}, nil
	}
	objects, err := h.deps.Archive.Objects(ctx, exchange.Workspace, []conversation.Hash{conversation.Hash(exchange.Answer.Answer)})
	if errors.Is(err, archive.ErrAway) {
		return message{Why: "The answer is in a bucket that does not answer. It is not lost. Try again in a minute."}, nil
	}
	if err != nil {
		return message{}, fmt.Errorf("answer of request %s: %w", exchange.ID, err)
	}
	object := objects[0]
	if object.Damage == nil {
		return message{Shown: sessionpage.Said(codec, object.Raw)}, nil
	}
	if errors.Is(object.Damage, archive.ErrNotFound) {
		return message{Why: "The answer is not in the archive, or not yet."}, nil
	}
	return message{Why: "The answer is damaged in the archive."}, nil
}

// unanswered explains why there is no stored answer.
func unanswered(exchange *tenants.Exchange) string {
	switch {
	case exchange.Answer.Status >= 400 || exchange.Answer.ErrorFrom != "":
		return "No answer: the request failed."
	case exchange.Request.Session == uuid.Nil:
		return "The answer is not kept: storing was off, or its session was deleted or has expired."
	}
	return "No answer is kept: it was incomplete or empty."
}

// between describes the changes to the prompt in a sentence.
func (o *opened) between() string {
	before, after := components.Short(int64(o.Prompt.TokensBefore)), components.Short(int64(o.Prompt.TokensAfter))
	turns := o.Prompt.Levels[1] + o.Prompt.Levels[2] + o.Prompt.Levels[3]
	switch {
	case o.Prompt.TokensBefore == 0:
		return ""
	case o.Report.Answered == pipeline.AnsweredCompaction:
		return "The prompt of " + before + " tokens was not sent: the request was answered from Palimpsest’s compaction of the same history, at no cost."
	case turns == 0 && o.Prompt.TokensBefore == o.Prompt.TokensAfter:
		return "The prompt of " + before + " tokens was sent unchanged."
	case turns == 0:
		return "The prompt had " + before + " tokens and was sent with " + after + "."
	}
	return fmt.Sprintf("The prompt had %s tokens and was sent with %s. Shortened: %s.", before, after, components.Plural(int64(turns), "turn"))
}
