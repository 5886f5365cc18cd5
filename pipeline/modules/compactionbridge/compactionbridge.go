package compactionbridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Name is the module's name in configs, headers and events.
const Name = "compaction-bridge"

// sealedSource is the source of a marker whose summary only the provider can read.
const sealedSource = "item compaction"

// Recovered is the Type of the event about the comparison and the restored content. Its Counts are
// named below.
const Recovered = "recovered"

// The counts of a Recovered event: the content that went back into the prompt, and how much of the
// history's content the client's summary lost.
const (
	Confidence         = "confidence" // in hundredths, that the client has compacted itself
	TurnsRestored      = "turns_restored"
	FilesRestored      = "files_restored"
	DecisionsRestored  = "decisions_restored"
	DirectivesRestored = "directives_restored"
	ErrorsRestored     = "errors_restored"

	Directives     = "directives"
	DirectivesLost = "directives_lost"
	Files          = "files" // changed files
	FilesLost      = "files_lost"
	Errors         = "errors" // open ones
	ErrorsLost     = "errors_lost"
	Decisions      = "decisions"
	DecisionsLost  = "decisions_lost"

	OwnSummary = "own_summary" // 1 if the client's summary is an answer of this module
)

// Module is the module compaction-bridge. It has no state of its own and is safe for
// concurrent use.
type Module struct {
	counter *tokens.Counter
	past    Past
	notes   Notes // disabled if nil: clients' requests for a summary are passed to the provider
}

// New returns the module; past finds the histories that clients left behind.
func New(counter *tokens.Counter, past Past) *Module { return &Module{counter: counter, past: past} }

// Name implements pipeline.Module.
func (m *Module) Name() string { return Name }

// Process implements pipeline.Module.
func (m *Module) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	if !exchange.Lane.Left.Found() || exchange.Lane.Finalized || exchange.Request.ReadOnly != "" {
		return nil, nil //nolint:nilnil // nothing changes
	}
	confidence, err := confidenceIn(exchange)
	if err != nil || confidence == 0 {
		return nil, err
	}
	if done(exchange) {
		return nil, nil //nolint:nilnil // nothing changes
	}
	draft := exchange.Draft(Name)
	if exchange.Class.Marker.Source == sealedSource {
		draft.Event("skipped", "the provider sealed the summary: what it lost cannot be told", nil)
		return draft, nil
	}
	history, err := m.past.history(ctx, exchange)
	switch {
	case errors.Is(err, session.ErrNotFound):
		draft.Event("skipped", "the history that was left is not in the archive", nil)
		return draft, nil
	case err != nil:
		return nil, fmt.Errorf("read what the client left: %w", err)
	}
	present, err := presentIn(exchange)
	if err != nil {
		return nil, err
	}
	found := compare(history, configOf(exchange).PreserveLastTurns, present)
	block := m.write(found, configOf(exchange))
	counts := found.counts()
	counts[Confidence] = int(math.Round(100 * confidence))
	if isOwn(exchange) {
		counts[OwnSummary] = 1
	}
	if block.text == "" {
		draft.Event("skipped", "nothing is missing", counts)
		return draft, nil
	}
	if !draft.Inject(configOf(exchange).Placement, block.text, nil) {
		draft.Event("skipped", "there is no place for it", counts)
		return draft, nil
	}
	maps.Copy(counts, block.restored)
	draft.Event(Recovered, "", counts)
	return draft, nil
}

// isOwn reports whether the summary that a client goes on from is an answer of this module.
func isOwn(exchange *pipeline.View) bool {
	marker := exchange.Class.Marker
	if !marker.Found() || marker.Boundary >= len(exchange.Conversation.Digests) {
		return false
	}
	message, err := exchange.Conversation.Message(marker.Boundary)
	if err != nil {
		return false
	}
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && strings.Contains(block.Text, ownWords) {
			return true
		}
	}
	return false
}

// done reports whether a block of this module already follows the client's summary.
func done(exchange *pipeline.View) bool {
	for _, insert := range exchange.Injected(Name) {
		if insert.Message >= exchange.Class.Marker.Boundary || insert.Message == session.InSystem {
			return true
		}
	}
	return false
}

// confidenceIn returns the confidence that a request is the first after its client has compacted
// itself; 0 if it is not, or the confidence is too low.
func confidenceIn(exchange *pipeline.View) (float64, error) {
	class := exchange.Class
	switch {
	case class.Marker.Branch, class.Trigger == client.Branch:
		return 0, nil // the summary is of another branch, the conversation itself goes on
	case class.Kind == client.AfterCompaction:
		return class.Confidence, nil
	case class.Marker.Found(), class.IsSide(), class.Known():
		return 0, nil // the client marks its compactions, and there is no mark
	}
	score, err := score(&exchange.Conversation)
	if err != nil || score < configOf(exchange).DetectionThreshold {
		return 0, err
	}
	return score, nil
}

// Interface guard.
var _ pipeline.Module = (*Module)(nil)
