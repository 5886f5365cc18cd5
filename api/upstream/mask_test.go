package upstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// S14: a provider that repeats the key does not give it away, whatever its status and
// however its answer is cut; everything else comes as it was sent.
func TestKeyIsStarredOutOfAnswers(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 401, 500} {
		body := strings.Repeat("sk-can ", 3) + "Incorrect API key provided: " + providerKey + providerKey + ". sk-cana"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("X-Refused", request.Header.Get("X-Api-Key"))
			w.WriteHeader(status)
			for _, part := range strings.SplitAfter(body, "a") {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		}))
		t.Cleanup(server.Close)
		response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}},
			upstream.Target{Provider: tenants.ProviderAnthropic, BaseURL: server.URL, Key: providerKey})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(response.Body))
		_ = response.Body.Close()
		stars := strings.Repeat("*", len(providerKey))
		want, header := strings.ReplaceAll(body, providerKey, stars), stars
		if err != nil || string(got) != want || response.Header.Get("X-Refused") != header {
			t.Errorf("%d: %q with %q, %v", status, got, response.Header.Get("X-Refused"), err)
		}
	}
}

// S14, S38: every cut of an answer, read into buffers of every size, is the same answer.
func TestKeyIsStarredOutOfEveryCut(t *testing.T) {
	t.Parallel()
	const key = "sk-sk-ab"
	text := "a sk-sk-ab sk-sk-sk-ab sk-sk-sk-sk-absk-sk-ab s sk sk- sk-sk-a"
	want := strings.ReplaceAll(text, key, strings.Repeat("*", len(key)))
	for size := 1; size <= len(text); size++ {
		for cut := 1; cut <= len(text); cut++ {
			response := &http.Response{Body: io.NopCloser(io.MultiReader(strings.NewReader(text[:cut]), iotest.DataErrReader(strings.NewReader(text[cut:]))))}
			upstream.Mask(response, key)
			var got strings.Builder
			if _, err := io.CopyBuffer(&got, struct{ io.Reader }{response.Body}, make([]byte, size)); err != nil || got.String() != want {
				t.Fatalf("buffers of %d, cut at %d: %q, %v", size, cut, got.String(), err)
			}
		}
	}
}

// BenchmarkMask measures what looking for the key costs in a stream's chunk.
func BenchmarkMask(b *testing.B) {
	chunk := strings.Repeat("data: {\"type\":\"content_block_delta\"}\n\n", 30)
	buffer := make([]byte, 4096)
	reader := strings.NewReader(chunk)
	response := &http.Response{Body: io.NopCloser(reader)}
	upstream.Mask(response, "sk-ant-REDACTED")
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(chunk)
		_, _ = response.Body.Read(buffer)
	}
}
