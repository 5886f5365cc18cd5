package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/connections"
	"palimpsest/api/recorder"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/tenants"
)

// noDataKeys has no key for anybody.
type noDataKeys struct{}

// DataKey implements archive.DataKeys.
func (noDataKeys) DataKey(context.Context, tenants.WorkspaceID) ([]byte, error) {
	return nil, errors.New("no key")
}

// said returns what is kept of a provider's error, opened.
func (p *proxy) said(exchange tenants.Exchange) string {
	p.t.Helper()
	if exchange.Answer.ErrorText == nil {
		return ""
	}
	key, err := archivetest.Keys().Key(p.t.Context(), exchange.Workspace)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := key.OpenError(exchange.ID, exchange.Answer.ErrorText)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := key.OpenError(uuid.New(), exchange.Answer.ErrorText); err == nil {
		p.t.Error("it opens for another exchange")
	}
	return string(text)
}

// What a provider says where it refuses is kept sealed, without what looks like a
// secret and within bounds; the client gets every byte of it.
func TestProvidersErrorIsKeptSealedBoundedAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 6000)
	for name, test := range map[string]struct {
		answer   string
		encoding string
		kept     string
	}{
		"as it came":      {`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"with our key":    {`refused ` + providerKey + ` and sk-ant-api03-abcdefgh12345678`, "", `refused ` + strings.Repeat("*", len(providerKey)) + ` and [redacted]`},
		"with a bearer":   {`{"authorization":"opaque","message":"Bearer abcdefgh12345678 plm_live_abcdefghijklmnop"}`, "", `{"authorization":"[redacted]","message":"[redacted] [redacted]"}`},
		"encoded":         {"too many", "gzip", "too many"},
		"long":            {long, "", long[:maxSaid] + "…"},
		"nothing":         {"", "", ""},
		"no text":         {"\x00\x01", "", ""},
		"not quite UTF-8": {"a\xffb", "", "a\uFFFDb"},
		"a secret across the bound": {
			strings.Repeat("x", maxSaid-6) + " sk-ant-api03-abcdefgh12345678", "", strings.Repeat("x", maxSaid-6) + " [reda…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				answer := test.answer
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
					answer = gzipped(t, answer)
				}
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, answer)
			})
			got := p.send(http.MethodPost, chatPath, chatSession(2, 3))
			kept := p.last(1)
			if said := p.said(kept); said != test.kept {
				t.Errorf("kept %.200q, want %.200q", said, test.kept)
			}
			if !strings.Contains(test.answer, providerKey) && string(got.body) != test.answer {
				t.Errorf("the client got %.200q", got.body)
			}
			if strings.Contains(string(kept.Answer.ErrorText), "refused") || strings.Contains(p.log.String(), "refused sk") {
				t.Error("it lies open")
			}
		})
	}
}

// An error in the middle of a stream is kept as the provider wrote it, too, and nothing
// is where nothing is to be kept, or nobody can seal it.
func TestProvidersErrorIsKeptOnlyWhereItMayBe(t *testing.T) {
	t.Parallel()
	stream := "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Over, sk-ant-api03-abcdefgh12345678\"}}\n\n"
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, messagesPath) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream)
			return
		}
		http.Error(w, "no such thing", http.StatusNotFound)
	})
	body := strings.Replace(toolSession("claude-sonnet-4-5", 1, 2), `"max_tokens"`, `"stream":true,"max_tokens"`, 1)

	sealing := p.Recorder
	p.Recorder = recorder.New(p.store, p.memory, p.store, archive.NewKeys(noDataKeys{}), p.Metrics.Recorded, p.Log)
	p.Recorder.Start()
	t.Cleanup(p.Recorder.Stop)
	p.send(http.MethodPost, messagesPath, body)
	if kept := p.last(1); kept.Answer.ErrorText != nil || kept.Answer.ErrorType != "overloaded_error" {
		t.Errorf("without a key, kept %d bytes, %s", len(kept.Answer.ErrorText), kept.Answer.ErrorType)
	}
	p.Recorder = sealing
	p.send(http.MethodPost, messagesPath, body)
	if said := p.said(p.last(2)); said != `{"type":"overloaded_error","message":"Over, [redacted]"}` {
		t.Errorf("of a stream, kept %q", said)
	}
	p.send(http.MethodGet, "/v1/files", "")
	if said := p.said(p.last(3)); said != "no such thing" {
		t.Errorf("of a relay, kept %q", said)
	}
	p.send(http.MethodPost, messagesPath, body, "X-Palimpsest-No-Store", "true")
	p.send(http.MethodGet, "/v1/files", "", "X-Palimpsest-No-Store", "true")
	for n := 4; n <= 5; n++ {
		if kept := p.last(n); kept.Answer.ErrorText != nil || kept.Answer.ErrorFrom != "provider" {
			t.Errorf("with no-store, kept %d bytes: %+v", len(kept.Answer.ErrorText), kept)
		}
	}
}

// Headers of our own that no figure tells are kept beside the figures.
func TestHeadersThatNothingElseTellsAreKept(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	p.store.limit(tenants.Limits{Quota: tenants.Quota{RequestsPerMinute: 60}})
	got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 1, 2), "X-Palimpsest-Dry-Run", "true")
	kept := p.last(1)
	for _, name := range []string{"Session-Source", "Dry-Run", "Ratelimit-Limit-Requests", "Ratelimit-Remaining-Requests"} {
		if want := got.header.Get("X-Palimpsest-" + name); kept.Answer.Signed[name] != want || want == "" {
			t.Errorf("%s: kept %q, sent %q", name, kept.Answer.Signed[name], want)
		}
	}
	if len(kept.Answer.Signed) != 4 {
		t.Errorf("kept %v", kept.Answer.Signed)
	}
}

// crowded lets nobody in: their connections are all in use.
type crowded struct{}

// Authenticate implements tenants.KeyAuthenticator.
func (crowded) Authenticate(context.Context, string) (tenants.APIKey, error) {
	return tenants.APIKey{}, connections.TooMany{Of: connections.OfKey, Limit: 7}
}

// S49: a key with too many connections is told what to do, in its client's dialect.
func TestTooManyConnectionsAreRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	p.Keys = crowded{}
	for _, path := range []string{messagesPath, chatPath, responsesPath, countPath, "/v1/files"} {
		got := p.send(http.MethodPost, path, smallBody)
		told := got.said(t)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "5" || !strings.Contains(told.Error.Message, "has 7 connections with a request under way") || !strings.Contains(told.Error.Message, "Wait until some have ended") {
			t.Errorf("%s: status %d, retry-after %q: %+v", path, got.status, got.header.Get("Retry-After"), told)
		}
	}
}
