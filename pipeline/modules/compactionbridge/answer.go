package compactionbridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
)

// The events about a client's request for a summary if the setting asks for an answer.
const (
	Answered = "answered" // answered, with the counts below
	Passed   = "passed"   // passed to the provider, for the event's reason
)

// The counts of an Answered event.
const (
	AnswerTokens   = "answer_tokens"   // o200k
	CoveredTokens  = "covered_tokens"  // of the history, covered by the finished compaction
	HistoryTokens  = "history_tokens"  // o200k
	SavedMicroUSD  = "saved_microusd"  // the provider's minimum price for its own answer
	StandingOrders = "directives"      // in the answer
	ChangedFiles   = "files"           // named in the answer
	OpenTasks      = "open_tasks"      // in the answer
	UserMessages   = "typed_messages"  // quoted in the answer
	NewestTurns    = "newest_turns"    // quoted in the answer
	EarlierSummary = "earlier_summary" // 1 if the answer repeats the client's previous summary
)

// The reasons for passing a client's request for a summary to the provider.
const (
	notEdited    = "the history must not be edited"
	otherFormat  = "the format has no client whose request is known"
	moreThanText = "the request asks for more than text"
	sealedPart   = "a part of the history is sealed by the provider"
	notReady     = "no compaction of this history is ready"
	tooLittle    = "the compaction that is ready covers too little of the history"
	notProven    = "the history is not the one that was recorded"
	tooMuch      = "the summary before takes too much of the answer"
	tooLong      = "the answer is longer than the request allows"
	notShorter   = "the answer is no shorter than the history"
)

// leastCovered is the share of a history's tokens that a finished compaction must cover.
const leastCovered = 0.5

// Notes returns a shortened text of the first messages of an exchange within so many o200k tokens.
type Notes func(ctx context.Context, exchange *pipeline.View, messages, tokens int) (string, error)

// Answering returns the module with the notes that it needs to answer clients' own requests for a
// summary, for workspaces that have turned that on.
func (m *Module) Answering(notes Notes) *Module {
	return &Module{counter: m.counter, past: m.past, notes: notes}
}

// Answer implements pipeline.Replier: it answers a client's own request for a summary from a
// finished compaction of the same history.
func (m *Module) Answer(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	if m.notes == nil || configOf(exchange).ClientCompaction != ClientCompactionAnswer || exchange.Class.Kind != client.Compaction {
		return nil, nil //nolint:nilnil // the provider is asked
	}
	draft := exchange.Draft(Name)
	wanted, covered, reason := ready(exchange)
	if reason != "" {
		draft.Event(Passed, reason, nil)
		return draft, nil
	}
	asked, err := readAsked(exchange, wanted)
	if err != nil {
		return nil, err
	}
	if asked.instructs {
		draft.Event(Passed, client.CustomInstructions, nil)
		return draft, nil
	}
	text, counts, reason, err := m.compose(ctx, exchange, asked)
	if err != nil {
		return nil, err
	}
	size := m.counter.Count(text)
	history := tokensOf(exchange.Conversation.Digests[:wanted.Message])
	switch limit := exchange.Request.MaxOutput; {
	case reason != "":
	case limit > 0 && int(float64(size)*exchange.Limits.Factor) > limit:
		reason = tooLong
	case size >= history:
		reason = notShorter
	}
	if reason != "" {
		draft.Event(Passed, reason, nil)
		return draft, nil
	}
	counts[AnswerTokens], counts[HistoryTokens], counts[CoveredTokens] = size, history, covered
	output := int(float64(size) * exchange.Limits.Factor)
	counts[SavedMicroUSD] = int(exchange.Model.Price.MicroUSD(0, exchange.Report.Before, 0, 0, output))
	draft.Event(Answered, "", counts)
	draft.Reply = &pipeline.Reply{ID: replyID(&exchange.Conversation, text), Text: text}
	if exchange.Lane.Projection != nil {
		draft.Reply.At = exchange.Lane.Projection.At
	}
	return draft, nil
}

// ready finds out whether a request for a summary can be answered. It returns the request's
// details, and how many tokens of the history the finished compaction covers; reason is the
// obstacle, or "".
func ready(exchange *pipeline.View) (wanted client.Wanted, covered int, reason string) {
	if exchange.Request.ReadOnly != "" {
		return wanted, 0, notEdited
	}
	if !exchange.Conversation.CanReply() {
		return wanted, 0, otherFormat
	}
	if wanted, reason = exchange.Conversation.WantedSummary(); reason != "" {
		return wanted, 0, reason
	}
	if !exchange.Conversation.WantsText() {
		return wanted, 0, moreThanText
	}
	for _, digest := range exchange.Conversation.Digests {
		if digest.Flags.Has(conversation.IsBoundary) {
			return wanted, 0, sealedPart
		}
	}
	messages := 0
	if exchange.Lane.Projection != nil {
		messages = exchange.Lane.Projection.Covers
	}
	if exchange.Lane.Summary != nil {
		messages = max(messages, exchange.Lane.Summary.Covers)
	}
	if messages == 0 {
		return wanted, 0, notReady
	}
	if messages > wanted.Message || !isProven(exchange, wanted) {
		return wanted, 0, notProven
	}
	covered = tokensOf(exchange.Conversation.Digests[:messages])
	if float64(covered) < leastCovered*float64(tokensOf(exchange.Conversation.Digests[:wanted.Message])) {
		return wanted, 0, tooLittle
	}
	return wanted, covered, ""
}

// isProven reports whether an earlier request of the session had the history before this request,
// except the answer to that earlier one and the results of its calls.
func isProven(exchange *pipeline.View, wanted client.Wanted) bool {
	turns := conversation.Turns(exchange.Conversation.Digests[:wanted.Message])
	if len(turns) == 0 || exchange.Lane.Met == 0 || exchange.Lane.Met < turns[len(turns)-1].From {
		return false
	}
	for _, digest := range exchange.Conversation.Digests[min(exchange.Lane.Met, wanted.Message):wanted.Message] {
		if digest.Role == conversation.User && !digest.Flags.Has(conversation.HasResult) {
			return false
		}
	}
	return true
}

// asked is the history that a client wants summarized.
type asked struct {
	*history

	form      client.Form
	messages  int    // of the history as the client sent them, without the request
	earlier   string // the client's previous summary; "" if absent
	boundary  int    // the message that holds it, or -1
	instructs bool   // something in the prompt instructs how to summarize
}

// readAsked reads the history before a request.
func readAsked(exchange *pipeline.View, wanted client.Wanted) (*asked, error) {
	read := &asked{form: wanted.Form, messages: wanted.Message, boundary: -1}
	if marker := exchange.Class.Marker; marker.Found() && !marker.Branch && marker.Boundary < wanted.Message {
		read.boundary = marker.Boundary
	}
	for _, part := range exchange.Request.Fixed {
		if plain := plainly(part); client.InstructsSummaries(plain) {
			read.instructs = true
		}
	}
	messages := make([]conversation.Message, 0, wanted.Message+1)
	indexes := make([]int, 0, wanted.Message+1)
	for i := range wanted.Message + 1 {
		message, err := exchange.Conversation.Message(i)
		if err != nil {
			return nil, fmt.Errorf("read the history to summarize: %w", err)
		}
		if i == wanted.Message {
			if message.Blocks = withoutLastText(message.Blocks); len(message.Blocks) == 0 {
				break
			}
		}
		read.instructs = read.instructs || instructs(&message)
		if i == read.boundary {
			read.earlier = wordsOf(&message)
		}
		messages, indexes = append(messages, message), append(indexes, i)
	}
	read.history = historyOf(messages, indexes)
	return read, nil
}

// instructs reports whether the client or the person says in a message how to summarize.
func instructs(message *conversation.Message) bool {
	if message.Role != conversation.User && message.Role != conversation.System {
		return false
	}
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && client.InstructsSummaries(block.Text) {
			return true
		}
	}
	return false
}

// withoutLastText returns blocks without the last text among them.
func withoutLastText(blocks []conversation.Block) []conversation.Block {
	for i := range slices.Backward(blocks) {
		if blocks[i].Kind == conversation.Text {
			return slices.Delete(slices.Clone(blocks), i, i+1)
		}
	}
	return nil
}

// tokensOf adds up the o200k tokens of messages.
func tokensOf(digests []conversation.Digest) (sum int) {
	for _, digest := range digests {
		sum += digest.Tokens
	}
	return sum
}

// replyID names an answer: the same for the same request and words.
func replyID(asked *pipeline.Conversation, text string) string {
	hash := sha256.New()
	head := asked.Chain[len(asked.Digests)]
	hash.Write(head[:])
	hash.Write([]byte(text))
	return "palimpsest" + hex.EncodeToString(hash.Sum(nil)[:12])
}

// Interface guard.
var _ pipeline.Replier = (*Module)(nil)
