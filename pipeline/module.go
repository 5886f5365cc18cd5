package pipeline

import "context"

// Module is one step of the pipeline.
type Module interface {
	// Name is the module's name in configs, headers and events.
	Name() string

	// Process returns what the module wants the exchange to become; nil leaves it as it is.
	// If it returns an error, panics or overruns its deadline, its draft is dropped and the
	// chain goes on. It changes nothing of the view, and must not keep it.
	Process(ctx context.Context, exchange *View) (*Draft, error)
}
