package logs

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
		log := New(&out, format)
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

// S14: a value is redacted by the name of its attribute or header alone.
func TestLogRedactsValuesByTheirNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Authorization", "proxy-authorization", "x_api_key", "X-Api-Key", "api_key", "apikey", "x_provider_key", "X-Palimpsest-Provider-Key",
		"cookie", "Set-Cookie", "password", "secret", "token", "access_token", "refresh_token",
	} {
		for _, value := range []any{"canary", 12345, []string{"canary", "12345"}} {
			var out bytes.Buffer
			New(&out, "text").Info("x", name, value)
			if said := out.String(); strings.Contains(said, "canary") || strings.Contains(said, "12345") {
				t.Errorf("attribute %s: %s", name, said)
			}
		}
	}
	for _, name := range []string{"Authorization", "X-Goog-Api-Key", "X-Amz-Security-Token", "X-Client-Secret", "X-Db-Password", "Cookie", "X-Credential", "Refresh_token"} {
		var out bytes.Buffer
		New(&out, "text").Info("x", "header", http.Header{name: {"canary"}})
		if said := out.String(); strings.Contains(said, "canary") {
			t.Errorf("header %s: %s", name, said)
		}
	}
}

// late is a value that says what it is when it is logged.
type late string

// LogValue implements slog.LogValuer.
func (l late) LogValue() slog.Value { return slog.StringValue(string(l)) }

// spoken is a fmt.Stringer whose JSON says nothing.
type spoken struct{ text string }

// String implements fmt.Stringer.
func (s *spoken) String() string { return s.text }

// S14: secrets are found in values of every type.
func TestLogRedactsValuesOfEveryType(t *testing.T) {
	t.Parallel()
	const canary = "sk-ant-canary0123456789"
	for name, value := range map[string]any{
		"text": canary, "late": late(canary), "spoken": &spoken{"fine " + canary}, "error": errors.New("fine " + canary), "bytes": []byte(canary),
		"list": []string{canary}, "members": map[string]string{"client_secret": "canary"}, "not JSON": struct {
			C chan int
			T string
		}{T: canary},
		"request": &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/fine", RawQuery: "q=canary"}, Header: http.Header{"X-Any": {"canary"}}},
	} {
		var out bytes.Buffer
		New(&out, "text").Info("x", "value", value)
		if said := out.String(); strings.Contains(said, "canary") || !strings.Contains(said, "redacted") && name != "request" {
			t.Errorf("%s: %s", name, said)
		}
		if said := out.String(); (name == "spoken" || name == "error" || name == "request") && !strings.Contains(said, "fine") {
			t.Errorf("%s is not logged as its text: %s", name, said)
		}
	}
}

func TestLogKeepsWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	New(&out, "text").With("workspace", "0198c2f0-0000-7000-8000-000000000001").Info("exchange", "key", "plm_live_ab", "prompt_tokens", 12, "model", "claude-opus-5",
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
