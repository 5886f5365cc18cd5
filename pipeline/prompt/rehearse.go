package prompt

import (
	"context"

	"palimpsest/pipeline"
)

// rehearse returns the report of what the pipeline would do with an exchange.
// Nothing of it becomes durable, and the lane stays as it is.
func (w *Writer) rehearse(ctx context.Context, exchange pipeline.Exchange) *pipeline.Report {
	exchange.Committer = pipeline.Forgetful{}
	w.Chain.Process(ctx, &exchange)
	return &exchange.Report
}
