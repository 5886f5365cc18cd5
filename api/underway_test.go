package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"palimpsest/tenants"
)

// changingKeys lets in a key until told why not.
type changingKeys struct {
	tenants.KeyAuthenticator

	mu      sync.Mutex
	refusal error
	scopes  []tenants.Scope
}

// Authenticate implements tenants.KeyAuthenticator.
func (k *changingKeys) Authenticate(ctx context.Context, secret string) (tenants.APIKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, err := k.KeyAuthenticator.Authenticate(ctx, secret)
	if err == nil {
		key.Scopes, err = k.scopes, k.refusal
	}
	return key, err
}

func (k *changingKeys) change(refusal error, scopes ...tenants.Scope) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusal, k.scopes = refusal, scopes
}

// S52: a stream ends with an error once its key may not send requests any more, and goes on while
// nobody can say.
func TestStreamEndsOnceItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*changingKeys){
		"revoked":           func(k *changingKeys) { k.change(tenants.ErrKeyRevoked, tenants.ScopeProxy) },
		"expired":           func(k *changingKeys) { k.change(tenants.ErrKeyExpired, tenants.ScopeProxy) },
		"workspace deleted": func(k *changingKeys) { k.change(tenants.ErrKeyUnknown, tenants.ScopeProxy) },
		"suspended":         func(k *changingKeys) { k.change(tenants.ErrSuspended, tenants.ScopeProxy) },
		"member removed":    func(k *changingKeys) { k.change(nil) },
	} {
		next := make(prompts)
		p := setup(t, next.stream)
		keys := &changingKeys{KeyAuthenticator: p.Keys, scopes: []tenants.Scope{tenants.ScopeProxy}}
		p.Keys = keys
		response := p.open(t.Context(), http.MethodPost, messagesPath, streamed)
		next <- started
		read(t, response.Body, started)
		p.Recheck(t.Context())
		keys.change(errors.New("the database is away"), tenants.ScopeProxy)
		p.Recheck(t.Context())
		next <- ": still here\n\n"
		read(t, response.Body, ": still here\n\n")

		end(keys)
		p.Recheck(t.Context())
		if rest, err := io.ReadAll(response.Body); err == nil || len(rest) > 0 {
			t.Errorf("%s: the stream ends with %q, %v", name, rest, err)
		}
		_ = response.Body.Close()
		if recorded := p.last(1); recorded.Answer.ErrorFrom != "proxy" || recorded.Tokens.Input != 41 {
			t.Errorf("%s: recorded %+v", name, recorded)
		}
		if left := p.underway.secrets(); len(left) > 0 {
			t.Errorf("%s: %d requests are left under way", name, len(left))
		}
	}
}

// S52: a request whose answer has not begun is refused with the reason.
func TestRequestThatWaitsForItsAnswerIsRefusedOnceItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	p := setup(t, func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		close(arrived)
		<-request.Context().Done()
	})
	keys := &changingKeys{KeyAuthenticator: p.Keys, scopes: []tenants.Scope{tenants.ScopeProxy}}
	p.Keys = keys
	go func() {
		<-arrived
		keys.change(tenants.ErrKeyRevoked, tenants.ScopeProxy)
		p.Recheck(context.WithoutCancel(t.Context()))
	}()
	got := p.send(http.MethodPost, messagesPath, askClaude)
	if told := got.said(t); got.status != http.StatusUnauthorized || told.Error.Type != "authentication_error" {
		t.Errorf("status %d, %+v", got.status, told)
	}
}

// A browser runs nothing of what an upstream sends, whatever it is and says of itself, and the
// bytes stay as they are.
func TestBrowserRunsNothingOfAnAnswer(t *testing.T) {
	t.Parallel()
	const page = "<script>fetch('/api/v1/keys')</script>"
	for _, kind := range []string{"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/json"} {
		p := setup(t, func(w http.ResponseWriter, request *http.Request) {
			_, _ = io.Copy(io.Discard, request.Body)
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Security-Policy", "default-src *")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, page)
		})
		for _, path := range []string{"/v1/files/x", messagesPath} {
			got := p.send(http.MethodPost, path, askClaude)
			policies := got.header.Values("Content-Security-Policy")
			if got.status != http.StatusAccepted || string(got.body) != page || got.header.Get("Content-Type") != kind ||
				len(policies) != 1 || policies[0] != "sandbox; default-src 'none'" || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: status %d, headers %v: %s", kind, path, got.status, got.header, got.body)
			}
		}
	}
	p := setup(t, func(http.ResponseWriter, *http.Request) {})
	if got := p.send(http.MethodPost, messagesPath, "{"); got.header.Get("Content-Security-Policy") == "" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("our own error: %v", got.header)
	}
}
