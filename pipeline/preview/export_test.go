package preview

import (
	"context"
	"runtime"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Run returns what a config would have made of recorded conversations, all together.
func Run(ctx context.Context, config pipeline.Config, models *tokens.Models, recorded []session.Recorded) (Figures, error) {
	sessions, err := each(ctx, config, models.Lookup, recorded, runtime.GOMAXPROCS(0))
	return sum(sessions), err
}

// RunForgetful is Run with a module that makes everything again for each request, as
// that of the proxy does.
func RunForgetful(ctx context.Context, config pipeline.Config, models *tokens.Models, recorded []session.Recorded) (Figures, error) {
	var sum Figures
	for i := range recorded {
		lane, err := newLane(config, models.Lookup(recorded[i].Model), &recorded[i])
		if err != nil {
			return Figures{}, err
		}
		lane.module = ipc.New(countMessage)
		figures, err := lane.run(ctx)
		if err != nil {
			return Figures{}, err
		}
		sum.add(figures.Figures)
	}
	return sum, nil
}
