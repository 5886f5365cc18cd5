package pipeline

import "context"

// Module is one step of the pipeline.
type Module interface {
	// Name is the module's name in configs, headers and events.
	Name() string

	// Process returns the module's changes to the exchange; nil for no change. If it returns an error, panics
	// or exceeds its deadline, its draft is dropped and the chain continues. It must not change or keep the
	// view.
	Process(ctx context.Context, exchange *View) (*Draft, error)
}
