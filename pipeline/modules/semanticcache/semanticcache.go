package semanticcache

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
)

// Name is the module's name in configs, headers and events.
const Name = "semantic-cache"

// Module notes which exchanges may be answered from the cache. It never changes the prompt: the
// cache is looked up after all modules, with the final request.
type Module struct{}

// New returns the module.
func New() *Module { return &Module{} }

// Name implements pipeline.Module.
func (*Module) Name() string { return Name }

// Process sets the report's Cache to pipeline.CacheMiss for an exchange that may be
// answered from the cache, and to pipeline.CacheOff for any other. It looks at the
// digests only.
func (*Module) Process(_ context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	draft := exchange.Draft(Name)
	draft.Report.Cache = pipeline.CacheOff
	if exchange.Request.ReadOnly == "" && isSingle(exchange.Conversation.Digests) {
		draft.Report.Cache = pipeline.CacheMiss
	}
	return draft, nil
}

// isSingle reports whether a body's messages are one of the user, after those of the system.
func isSingle(digests []conversation.Digest) bool {
	const never = conversation.HasCall | conversation.HasResult | conversation.HasThinking | conversation.HasOpaque |
		conversation.IsPart | conversation.LoadsTools | conversation.HasPending | conversation.HasSettled
	for i, digest := range digests {
		isLast := i == len(digests)-1
		if digest.Flags.Has(never) || isLast != (digest.Role == conversation.User) || !isLast && digest.Role != conversation.System {
			return false
		}
	}
	return len(digests) > 0
}

// Interface guard.
var _ pipeline.Module = (*Module)(nil)
