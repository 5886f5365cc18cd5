package prompt_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// stuck is a store that hangs, whatever its caller's context says.
type stuck struct {
	*session.Memory

	commit chan struct{} // closed: it commits again
}

// Commit implements session.Store.
func (s *stuck) Commit(ctx context.Context, update session.Update, projection session.Projection) error {
	<-s.commit
	return s.Memory.Commit(ctx, update, projection)
}

// mute is a store that answers no question before its caller gives up.
type mute struct{ *session.Memory }

// Find implements session.Store.
func (mute) Find(ctx context.Context, _ tenants.WorkspaceID, _ []conversation.Hash) (session.Found, error) {
	<-ctx.Done()
	return session.Found{}, ctx.Err()
}

// E10, E3: anyone who waits for a lane whose epoch does not end goes on after five seconds,
// with the prompt as it came; so do a count and a second attempt.
func TestNobodyWaitsLongForAnEpochOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &stuck{session.NewMemory(), make(chan struct{})}
		b := newBenchOn(t, store, 0)
		c := begun("claude-sonnet-4-5").filled(2, 100)
		first := b.write(c.body())
		b.writer.Window = 12_000
		body := c.filled(12, 1_000).body()
		request := prompt.Request{
			Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: paths()[b.scope.Format],
		}
		ended := make(chan error, 1)
		go func() {
			_, err := b.writer.Write(t.Context(), request)
			ended <- err
		}()
		synctest.Wait() // it holds the lane and waits for its commit

		for name, write := range map[string]func(context.Context, prompt.Request) (*prompt.Prompt, error){"a request": b.writer.Write, "a count": b.writer.Count} {
			began := time.Now()
			other, err := write(t.Context(), request)
			if err != nil || !bytes.Equal(other.Body, body) || other.Lane != nil || time.Since(began) != 5*time.Second {
				t.Errorf("%s after %v: lane %v, error %v, %d of %d bytes", name, time.Since(began), other.Lane, err, len(other.Body), len(body))
			}
			wantFailure(t, other)
		}
		began := time.Now()
		if shrunk, ok := b.writer.Shrink(t.Context(), first, wire.Overflow{Tokens: 300, Window: 200}); ok || time.Since(began) != 5*time.Second {
			t.Errorf("a second attempt after %v: %+v", time.Since(began), shrunk)
		}

		close(store.commit)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if next := b.send(body); next.Exchange.Report.Compression != pipeline.Replayed || len(next.Body) >= len(body) {
			t.Errorf("once it has ended: %+v", next.Exchange.Report)
		}
	})
}

// E3: a store that does not answer keeps no prompt for longer than two seconds, also of
// those that leave no trace.
func TestStoreThatHangsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBenchOn(t, mute{session.NewMemory()}, 12_000)
		body := begun("claude-sonnet-4-5").filled(12, 1_000).body()
		for name, change := range map[string]func(*prompt.Request){"a request": func(*prompt.Request) {}, "nothing kept": func(r *prompt.Request) { r.NoStore = true }} {
			request := prompt.Request{
				Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: paths()[b.scope.Format],
			}
			change(&request)
			began := time.Now()
			written, err := b.writer.Write(t.Context(), request)
			if err != nil || !bytes.Equal(written.Body, body) || time.Since(began) != 2*time.Second {
				t.Errorf("%s after %v: error %v", name, time.Since(began), err)
			}
			wantFailure(t, written)
		}
	})
}

// wantFailure fails a test unless a prompt's report says that its lane was not found.
func wantFailure(t *testing.T, written *prompt.Prompt) {
	t.Helper()
	if events := written.Exchange.Report.Events; len(events) != 1 || events[0].Module != "session" || events[0].Type != "failed" {
		t.Errorf("events: %+v", events)
	}
}
