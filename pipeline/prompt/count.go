package prompt

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/session"
)

// Count writes the prompt of a request that asks how large it would be: with the
// projection and the inserts that its lane has by now. It leaves no trace: no epoch, no lane, no
// head, nothing to record. The report tells the sizes; only what the sender has to
// mend is an error, a BodyError.
func (w *Writer) Count(ctx context.Context, request Request) (*Prompt, error) {
	prompt, err := w.take(ctx, request)
	if err != nil {
		return nil, err
	}
	exchange := prompt.Exchange
	if request.Bypass {
		exchange.Request.ReadOnly = bypass
	}
	prompt.guarded(func() { w.glance(ctx, prompt, client.Hint(request.Headers, exchange.Request)) })
	prompt.seal(false, request.Memory)
	return prompt, nil
}

// glance sizes a prompt by what its lane has by now, and leaves no trace of it.
func (w *Writer) glance(ctx context.Context, prompt *Prompt, hint session.Hint) {
	exchange := prompt.Exchange
	hint.Kind = laneKind(exchange.Class)
	exchange.Digests, exchange.Chain = w.Resolver.Follow(ctx, exchange.Scope, hint, exchange.Digests, exchange.Message)
	asking, cancel := context.WithTimeout(ctx, resolveTimeout)
	prompt.earlier.isLost = true
	glance, err := w.Resolver.Preview(asking, exchange.Scope, exchange.Digests, exchange.Chain, exchange.Request.Model)
	prompt.earlier.isLost = err != nil
	cancel()
	exchange.NextProjection, exchange.Anchor = glance.Next, glance.Anchor
	if exchange.Request.ReadOnly == "" {
		exchange.Projection = glance.Projection
		exchange.TakeOver(glance.Inserts)
	} else {
		prompt.earlier.omits = len(glance.Inserts) > 0
	}
	exchange.Report = exchange.Standing()
	if err != nil {
		exchange.Report.Events = []pipeline.ReportEntry{{Module: "session", Type: "failed", Reason: err.Error()}}
	}
}
