package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// S14: whatever is logged in whatever way, nothing that looks like a secret is written.
func TestLogWritesNoSecret(t *testing.T) {
	t.Parallel()
	const canary = "sk-ant-canary0123456789"
	header := http.Header{"Authorization": {"Bearer opaque-canary-token"}, "X-Api-Key": {"canary"}, "X-Goog-Api-Key": {"canary"}, "Cookie": {"a=canary"}, "X-Title": {"fine"}}
	request := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/v1/messages", RawQuery: "key=canary"}, Header: header}
	type nested struct {
		Token string `json:"token"`
		Keys  []string
	}
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := newLog(&out, format)
		log.Info("refused "+canary, "header", header, "request", request, "error", fmt.Errorf("ask: %w", errors.New("provider said "+canary)))
		log.With("cause", canary, "password", "canary").WithGroup("request").Warn("x", slog.Group("deep", "authorization", "canary", "text", "bearer canary-0123456789"))
		log.Info("x", "bytes", []byte(canary), "url", "https://user:canary@db.example/x?token=canary", "any", nested{Token: "canary", Keys: []string{canary}},
			"map", map[string]any{"x-api-key": []string{"canary"}, "fine": 1}, "jwt", "eyJhbGciOiJIUzI1NiJ9.canary0123.canary0123")
		for _, key := range []string{"plm_live_canary0123456789abcdef", "gsk_canary01234567", "whsec_canary0123", "sk_live_canary0123", "Basic canary0123456=="} {
			log.Info("x", "value", key)
		}
		if said := out.String(); strings.Contains(said, "canary") {
			t.Errorf("%s:\n%s", format, said)
		}
		for _, kept := range []string{"refused", "provider said", "X-Title: fine", "/v1/messages", "db.example"} {
			if !strings.Contains(out.String(), kept) {
				t.Errorf("%s: %q is gone:\n%s", format, kept, out.String())
			}
		}
	}
}

func TestLogKeepsWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newLog(&out, "text").With("workspace", "0198c2f0-0000-7000-8000-000000000001").Info("exchange", "key", "plm_live_ab", "prompt_tokens", 12, "model", "claude-opus-5",
		"took", time.Second, "provider_key", "0198c2f0-0000-7000-8000-000000000002", "ok", true)
	for _, kept := range []string{"workspace=0198c2f0-0000-7000-8000-000000000001", "key=plm_live_ab", "prompt_tokens=12", "model=claude-opus-5", "took=1s", "provider_key=0198c2f0", "ok=true"} {
		if !strings.Contains(out.String(), kept) {
			t.Errorf("%q is gone: %s", kept, out.String())
		}
	}
}

func BenchmarkLogOfAnExchange(b *testing.B) {
	handler := redacting{slog.DiscardHandler}
	record := slog.NewRecord(time.Now(), slog.LevelInfo, "exchange", 0)
	for i := range 25 {
		record.AddAttrs(slog.String(fmt.Sprint("name", i), "0198c2f0-0000-7000-8000-000000000001"))
	}
	for b.Loop() {
		_ = handler.Handle(b.Context(), record)
	}
}
