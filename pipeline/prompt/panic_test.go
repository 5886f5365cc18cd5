package prompt_test

import (
	"bytes"
	"context"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// rotten is a store that panics where it is told to.
type rotten struct {
	*session.Memory

	find bool
}

// Find implements session.Store.
func (r *rotten) Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Found, error) {
	if r.find {
		panic("index out of range")
	}
	return r.Memory.Find(ctx, workspace, heads)
}

// rottenChain panics beside its modules.
type rottenChain struct{}

// Process implements prompt.Chain.
func (rottenChain) Process(_ context.Context, exchange *pipeline.Exchange) {
	exchange.Lane.Inserts = append(exchange.Lane.Inserts, session.Insert{Message: 0, Text: "half done"})
	exchange.Lane.Projection = &session.Projection{Covers: 1}
	panic("nil map")
}

// E3: a panic outside of the modules, too, costs nobody a request: what stood before goes
// out, and the next one is written as ever.
func TestPanicBesideTheModulesLeavesWhatStood(t *testing.T) {
	t.Parallel()
	store := &rotten{Memory: session.NewMemory()}
	b := newBenchOn(t, store, 16_000)
	c := begun("claude-sonnet-4-5").filled(12, 1_000)
	first := b.epoch(c.body())
	body := c.filled(1, 20).body()
	whole := b.writer.Chain
	request := prompt.Request{Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: paths()[b.scope.Format]}
	fails := func(fellBackTo string, write func(context.Context, prompt.Request) (*prompt.Prompt, error)) *prompt.Prompt {
		t.Helper()
		written, err := write(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		events := written.Exchange.Report.Events
		if len(events) != 1 || events[0].Type != "failed" || events[0].FellBackTo != fellBackTo || written.Lane != nil {
			t.Errorf("lane %v, events %+v", written.Lane, events)
		}
		return written
	}

	b.writer.Chain = rottenChain{}
	if sent := fails("projection 1", b.writer.Write).Body; !bytes.HasPrefix(sent, bytes.TrimSuffix(first.Body, []byte("]}"))) || bytes.Contains(sent, []byte("half done")) {
		t.Errorf("sent %.2000s", sent)
	}
	if shrunk, ok := b.writer.Shrink(t.Context(), first, wire.Overflow{Tokens: 9_000, Window: 5_000}); ok {
		t.Errorf("shrunk to %+v", shrunk)
	}
	b.writer.Chain = whole
	if again := b.send(body); again.Exchange.Report.Compression != pipeline.Replayed || again.Lane == nil || again.Lane.ID != first.Lane.ID {
		t.Errorf("the next request: %+v", again.Exchange.Report)
	}

	store.find = true
	b.writer.Resolver.Missed()
	for _, write := range []func(context.Context, prompt.Request) (*prompt.Prompt, error){b.writer.Write, b.writer.Count} {
		if sent := fails("original", write).Body; !bytes.Equal(sent, body) {
			t.Errorf("sent %d bytes of %d", len(sent), len(body))
		}
	}
	store.find = false
	if again := b.send(body); again.Exchange.Report.Compression != pipeline.Replayed {
		t.Errorf("with the store as it was: %+v", again.Exchange.Report)
	}
}
