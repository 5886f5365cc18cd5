package prompt

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/session"
)

// Count writes the prompt of a request that asks for its size, with the current projection and inserts of its
// lane. It commits no epoch, creates no lane or head, and records no exchange. The report has the sizes. It
// returns an error only if the sender must fix the request: a BodyError.
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

// glance sizes a prompt with the current state of its lane without changing the lane.
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
