package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/failover"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/prompt"
	"palimpsest/tenants"
)

// delivery is a prompt on its way to the provider key that answers it.
type delivery struct {
	*Server

	event   *RequestLog
	forward *forward
	written *prompt.Prompt
}

// send sends the prompt with the provider key that its session is pinned to. If the workspace enables
// failover and a key fails, it tries the next key for the model: at most once with each, before any part of
// an answer has gone out. It waits for a key if that costs less than having another account read the whole
// prompt. If no key answers, it returns the first failure.
func (d delivery) send(ctx context.Context) (*http.Response, error) {
	route := d.route()
	if len(route) == 1 && route[0].KeyID != d.forward.target.KeyID {
		d.redirect(ctx, route[0])
	}
	if len(route) < 2 {
		return d.once(ctx)
	}
	var first attempt
	for i, target := range route {
		if target.KeyID != d.forward.target.KeyID {
			d.redirect(ctx, target)
		}
		attempted := d.attempt(ctx)
		if !attempted.failed {
			if i > 0 && first.response != nil {
				_ = first.response.Body.Close()
			}
			return attempted.response, attempted.err
		}
		if i == 0 {
			first = attempted
		} else if attempted.response != nil {
			_ = attempted.response.Body.Close()
		}
		if i+1 < len(route) {
			d.moved(attempted.failure)
		}
	}
	d.redirect(ctx, route[0])
	return first.response, first.err
}

// once sends the prompt to its current target.
func (d delivery) once(ctx context.Context) (*http.Response, error) {
	return d.sendAsking(d.forward.admission, d.written, func() (*http.Response, error) { return d.Server.send(ctx, d.event, *d.forward, d.written) })
}

// route returns the prompt's possible targets, in the order of the attempts.
func (d delivery) route() []upstream.Target {
	routes := d.forward.routes
	if d.Failover == nil || routes.Failover == tenants.FailoverOff || len(routes.Targets) < 2 || d.written.Exchange == nil || d.forward.purpose == summarize {
		return nil
	}
	heat := d.written.Heat()
	pinned := slices.IndexFunc(routes.Targets, func(target upstream.Target) bool { return target.KeyID == heat.Key })
	if d.written.IsBound() {
		home := routes.Targets[max(pinned, 0)]
		if routes.Failover != tenants.FailoverAccount {
			return []upstream.Target{home}
		}
		others := slices.DeleteFunc(slices.Clone(routes.Targets), func(target upstream.Target) bool {
			return target.KeyID == home.KeyID || target.BaseURL != home.BaseURL
		})
		return d.working(append([]upstream.Target{home}, others...))
	}
	start := pinned
	isRewritten := d.written.Exchange.Report.Compression == pipeline.Epoch
	if start < 0 || isRewritten && start >= routes.Equal || heat.Cold(d.Now(), d.written.Exchange.Request.Model) {
		session := d.written.Exchange.ID
		if d.written.Lane != nil {
			session = d.written.Lane.ID
		}
		start = d.Failover.Spread(routes.Targets[:routes.Equal], session)
	}
	route := []upstream.Target{routes.Targets[start]}
	route = append(route, routes.Targets[:start]...)
	return d.working(append(route, routes.Targets[start+1:]...))
}

// working returns targets, with paused ones last.
func (d delivery) working(targets []upstream.Target) []upstream.Target {
	slices.SortStableFunc(targets, func(a, b upstream.Target) int {
		switch worksA, worksB := d.Failover.Works(a), d.Failover.Works(b); {
		case worksA == worksB:
			return 0
		case worksA:
			return -1
		default:
			return 1
		}
	})
	return targets
}

// redirect sends a prompt to another target than it was written for.
func (d delivery) redirect(ctx context.Context, target upstream.Target) {
	d.forward.sendTo(d.event, target)
	overrides, err := d.Settings.Overrides(ctx, d.forward.key.Workspace, target.KeyID)
	if err != nil {
		d.Log.WarnContext(ctx, "prices of another provider key are not known", "workspace", d.forward.key.Workspace, "error", err)
	}
	d.Prompts.Redirect(d.written, destinationOf(target), overrides)
}

// attempt is one try of a request with one key.
type attempt struct {
	response *http.Response
	err      error
	failed   bool // another key may answer
	failure  failover.Failure
}

// attempt sends a prompt with the current key, and again after a wait if the wait is worth it.
func (d delivery) attempt(ctx context.Context) attempt {
	made := d.tryKey(ctx)
	heat := d.written.Heat()
	if !made.failed || heat.Key != d.forward.target.KeyID || heat.Cold(d.Now(), d.written.Exchange.Request.Model) {
		return made
	}
	if !failover.WorthWaiting(made.failure, heat.Tokens, d.written.Exchange.Model.Price, patienceOf(d.forward.request.Header)) {
		return made
	}
	d.note("waited", made.failure.Reason, map[string]int{"ms": int(made.failure.Wait / time.Millisecond)})
	if err := d.Failover.Wait(ctx, made.failure.Wait); err != nil {
		return made
	}
	if made.response != nil {
		_ = made.response.Body.Close()
	}
	return d.tryKey(ctx)
}

// patienceOf returns how long a client waits, according to its headers; 0 if absent. The SDKs of Anthropic
// and OpenAI send it in seconds.
func patienceOf(header http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(header.Get("X-Stainless-Timeout"), 64)
	if err != nil || seconds <= 0 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// tryKey sends a prompt once, and notes whether its key works.
func (d delivery) tryKey(ctx context.Context) attempt {
	response, err := d.once(ctx) //nolint:bodyclose // the caller closes the attempt's answer
	made := attempt{response: response, err: err}
	switch {
	case err != nil:
		made.failure, made.failed = failover.OfError(err)
	case response.StatusCode >= http.StatusBadRequest:
		plain, _ := errorOf(response)
		made.failure, made.failed = failover.OfAnswer(response, plain, d.Now())
	case isEventStream(response) && !isEncoding(encodingOf(response.Header)):
		tap := d.forward.codec.Tap(true)
		holdOpening(d.forward.codec, response, tap)
		if answer := tap.Answer(); answer.ErrorType != "" && answer.Said == 0 {
			made.failure, made.failed = failover.InStream(answer.ErrorType)
		}
	}
	switch {
	case made.failed:
		d.Failover.Failed(d.forward.target, made.failure)
	case err == nil:
		d.Failover.Answered(d.forward.target, response.Header)
	}
	return made
}

// moved reports that a prompt goes to another key, and the cost of writing its cached part again. The failed
// key's possible charge counts as an estimate.
func (d delivery) moved(failure failover.Failure) {
	counts := map[string]int{}
	if d.event.held.owes.Swap(false) {
		counts["estimated_micro_usd"] = int(d.event.held.most.PromptMicroUSD)
		d.event.money.first(d.event.held.most.PromptMicroUSD)
		d.event.estimated("a provider key did not answer, and may charge for the prompt")
	}
	if heat := d.written.Heat(); heat.Key == d.event.ProviderKey && heat.Key != uuid.Nil && !heat.Cold(d.Now(), d.written.Exchange.Request.Model) {
		counts["tokens"] = heat.Tokens
		counts["micro_usd"] = int(failover.RewriteMicroUSD(heat.Tokens, d.written.Exchange.Model.Price))
	}
	d.Metrics.request.failovers.WithLabelValues(failure.Reason).Inc()
	d.note("moved", failure.Reason, counts)
}

// note adds an entry to the report of a request.
func (d delivery) note(kind, reason string, counts map[string]int) {
	entry := pipeline.ReportEntry{Module: "failover", Type: kind, Reason: reason, Counts: counts}
	d.event.Report.Events = append(slices.Clone(d.event.Report.Events), entry)
}
