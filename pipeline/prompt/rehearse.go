package prompt

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// rehearse returns the report of what the pipeline would do with an exchange.
// Nothing of it becomes durable, and the lane stays as it is.
func (w *Writer) rehearse(ctx context.Context, exchange pipeline.Exchange) *pipeline.Report {
	exchange.Commit = func(context.Context, session.Projection) error { return nil }
	exchange.Tried = nil
	w.Chain.Process(ctx, &exchange)
	return &exchange.Report
}
