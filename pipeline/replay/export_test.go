package replay

import (
	"context"
	"net/http"
	"time"
)

// Providers are the prompt caches of a provider's models, by the models' names.
type Providers map[string]*caches

// Send sends one request of whichever session and model at a time.
func (r *Replay) Send(ctx context.Context, providers Providers, sessionName, model string, at time.Time, body []byte) (Step, error) {
	if providers[model] == nil {
		providers[model] = &caches{sent: Cache{TTL: r.config.TTL}, direct: Cache{TTL: r.config.TTL}}
	}
	providers[model].now = at
	r.writer.Now = func() time.Time { return at }
	step, usage, err := r.step(ctx, body, http.Header{"X-Palimpsest-Session-Id": {sessionName}}, providers[model])
	if err == nil {
		r.writer.Answered(usage.sent, usage.answer())
	}
	return step, err
}
