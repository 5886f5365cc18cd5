package pipeline

import "context"

// Module is one step of the pipeline. Process may change the exchange's
// Projection and Report, and put text into the prompt by Exchange.Inject; if it returns an error, panics or overruns its deadline,
// the chain puts all back and goes on. It must not keep the exchange.
type Module interface {
	// Name is the module's name in configs, headers and events.
	Name() string

	Process(ctx context.Context, exchange *Exchange) error
}
