package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/tenants"
)

func TestTextsAreEmbeddedInTheirOrder(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{Key: providerKey})
	server := httptest.NewServer(double)
	t.Cleanup(server.Close)
	target := upstream.Target{Provider: tenants.ProviderOpenAI, BaseURL: server.URL, Key: providerKey}

	embedded, err := upstream.Embed(t.Context(), upstream.New(true), target, "text-embedding-3-small", []string{"the red fox", "seventeen ships", "a red fox"})
	if err != nil {
		t.Fatal(err)
	}
	if len(embedded.Vectors) != 3 || embedded.Tokens == 0 {
		t.Fatalf("%d vectors, %d tokens", len(embedded.Vectors), embedded.Tokens)
	}
	near, far := product32(embedded.Vectors[0], embedded.Vectors[2]), product32(embedded.Vectors[0], embedded.Vectors[1])
	if near <= far {
		t.Errorf("related texts are %f alike, unrelated ones %f", near, far)
	}
}

func TestAnAnswerWithoutVectorsIsAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no JSON":        `<html>`,
		"none":           `{"data":[]}`,
		"one too few":    `{"data":[{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":3}}`,
		"one twice":      `{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]}`,
		"beyond the end": `{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,2]}]}`,
		"of two lengths": `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`,
		"not a number":   `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,1e999]}]}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		target := upstream.Target{Provider: tenants.ProviderOpenAI, BaseURL: server.URL, Key: providerKey}
		embedded, err := upstream.Embed(t.Context(), upstream.New(true), target, "m", []string{"a secret text", "b"})
		server.Close()
		if !errors.Is(err, upstream.ErrNotEmbedded) || len(embedded.Vectors) > 0 {
			t.Errorf("%s: %d vectors, %v", name, len(embedded.Vectors), err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the text: %v", name, err)
		}
	}
}

func TestAProviderThatDoesNotEmbedIsAnError(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{Key: providerKey})
	server := httptest.NewServer(double)
	t.Cleanup(server.Close)
	target := upstream.Target{Provider: tenants.ProviderOpenAI, BaseURL: server.URL, Key: providerKey}
	for name, asked := range map[string]struct {
		model string
		texts []string
	}{
		"unknown model": {"text-embedding-none", []string{"a"}},
		"empty text":    {"text-embedding-3-small", []string{"a", ""}},
		"no text":       {"text-embedding-3-small", nil},
		"too many":      {"text-embedding-3-small", make([]string, 2049)},
	} {
		if _, err := upstream.Embed(t.Context(), upstream.New(true), target, asked.model, asked.texts); !errors.Is(err, upstream.ErrNotEmbedded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	target.Key = "sk-wrong"
	if _, err := upstream.Embed(t.Context(), upstream.New(true), target, "text-embedding-3-small", []string{"a"}); !errors.Is(err, upstream.ErrNotEmbedded) {
		t.Errorf("wrong key: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := upstream.Embed(gone, upstream.New(true), target, "text-embedding-3-small", []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("too late: %v", err)
	}
}

func product32(a, b []float32) float32 {
	sum := float32(0)
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
