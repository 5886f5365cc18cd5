package demo

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

const (
	// providerKey is the secret that the double accepts. It accepted batchKey until the provider revoked
	// it.
	providerKey = "sk-demo-4f1c9a72e8b3d605"
	batchKey    = "sk-demo-batch-7d20e94b1c"

	keptBodies = 1 // of the newest requests
	forgetAt   = 500
)

// Provider is the double of the demo's providers. It answers with the scripted reply. Without one it says that
// no model was asked.
type Provider struct {
	double *providerdouble.Double
	clock  *Clock
	served atomic.Int64
	denied atomic.Bool // batchKey was withdrawn

	mu   sync.Mutex
	next *scripted // nil without a script
}

// scripted is an answer and the time that a provider would take for it.
type scripted struct {
	reply providerdouble.Reply
	takes time.Duration
}

// NewProvider returns a Provider with a clock and a token counter.
func NewProvider(clock *Clock, count func(string) int) *Provider {
	p := &Provider{clock: clock}
	p.double = providerdouble.NewHandler(providerdouble.Config{
		Key: providerKey, Count: count, Now: clock.Now, Script: p.script, KeepBodies: keptBodies, AllowUnknown: true,
	})
	return p
}

// Withdraw makes the provider refuse the second key from now on.
func (p *Provider) Withdraw() { p.denied.Store(true) }

// Say sets the answer to the next request, after a time by the clock.
func (p *Provider) Say(reply providerdouble.Reply, takes time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = &scripted{reply, takes}
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.served.Add(1)%forgetAt == 0 {
		p.double.Reset() // otherwise its notes keep growing
	}
	if !p.denied.Load() {
		for name, values := range r.Header {
			for i, value := range values {
				values[i] = strings.ReplaceAll(value, batchKey, providerKey)
			}
			r.Header[name] = values
		}
	}
	p.double.ServeHTTP(w, r)
}

// script answers a valid request.
func (p *Provider) script(request providerdouble.Request) providerdouble.Reply {
	p.mu.Lock()
	said := p.next
	p.next = nil
	p.mu.Unlock()
	if said == nil {
		return nobodyThere(request)
	}
	p.clock.Pass(said.takes)
	return said.reply
}

// nobodyThere says that no model was asked, for users who try the demo with a client.
func nobodyThere(request providerdouble.Request) providerdouble.Reply {
	if providerdouble.AsksForNotes(request) {
		return providerdouble.Reply{Text: providerdouble.Notes}
	}
	reply := providerdouble.Echo(request)
	if len(reply.Calls) == 0 {
		reply.Text = "This is Palimpsest’s demo: no model was asked, and the rest of this answer repeats your own words. " + reply.Text
	}
	return reply
}

// Interface guard.
var _ http.Handler = (*Provider)(nil)
