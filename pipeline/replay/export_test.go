package replay

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Providers are the prompt caches of a provider's models, by the models' names.
type Providers map[string]*caches

// RunSubagent is Run for the first requests of a subagent of Claude Code, where threads of its kind have lived so long.
func (r *Replay) RunSubagent(ctx context.Context, body []byte, requests int, lives []int, each func(Step)) (Sum, error) {
	envelope, digests, err := r.writer.Reader.Read(r.codec, body)
	if err != nil {
		return Sum{}, err
	}
	r.scope.Workspace, r.scope.APIKey = tenants.WorkspaceID{1}, uuid.UUID{2} // or pointers, and so sizes, differ from run to run
	r.writer.Lives = func(tenants.WorkspaceID, string) []int { return lives }
	var sum Sum
	caches := caches{sent: Cache{TTL: r.config.TTL}, direct: Cache{TTL: r.config.TTL}}
	headers := http.Header{"User-Agent": {"claude-cli/2.1.332 (external, cli)"}, "X-Claude-Code-Session-Id": {"s"}, "X-Claude-Code-Agent-Id": {"a"}}
	ends := Ends(digests)
	for number, length := range ends[:min(requests, len(ends))] {
		caches.now = r.config.Clock(number)
		r.writer.Now = func() time.Time { return caches.now }
		step, usage, err := r.step(ctx, envelope.Seal([]wire.Piece{{From: 0, To: length}}), headers, &caches)
		if err != nil {
			return sum, err
		}
		r.writer.Answered(usage.sent, usage.answer())
		sum.add(&step)
		each(step)
	}
	return sum, nil
}

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
