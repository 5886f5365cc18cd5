package prompt

import (
	"context"

	"palimpsest/pipeline"
)

// rehearse runs the pipeline on a copy of an exchange and returns the report. It neither stores the result
// nor changes the lane.
func (w *Writer) rehearse(ctx context.Context, exchange pipeline.Exchange) *pipeline.Report {
	exchange.Committer = pipeline.Forgetful{}
	w.Chain.Process(ctx, &exchange)
	return &exchange.Report
}
