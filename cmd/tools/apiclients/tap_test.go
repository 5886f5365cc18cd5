package apiclients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// tapBefore puts a tap before a handler and returns it with its address.
func tapBefore(t *testing.T, handler http.HandlerFunc) (*tap, string) {
	t.Helper()
	program := httptest.NewServer(handler)
	t.Cleanup(program.Close)
	tap, err := newTap(program.URL)
	if err != nil {
		t.Fatal(err)
	}
	address, stop, err := listen(t.Context(), tap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)

	return tap, address
}

// post sends a body and returns the answer's.
func post(t *testing.T, address, body string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)

	return string(text), err
}

func TestTapNotesWhatPasses(t *testing.T) {
	t.Parallel()
	tap, address := tapBefore(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Palimpsest-Compression", "epoch")
		_, _ = io.WriteString(w, "echo of "+string(body))
	})

	text, err := post(t, address+"/v1/messages?beta=true", "hello")
	if err != nil || text != "echo of hello" {
		t.Fatalf("answer %q, %v", text, err)
	}
	passed := tap.all()
	if len(passed) != 1 {
		t.Fatalf("%d exchanges", len(passed))
	}
	one := passed[0]
	if string(one.Body) != "hello" || one.Path != "/v1/messages?beta=true" || one.Status != http.StatusOK || one.Compression() != "epoch" || one.Refusal != "" {
		t.Errorf("exchange %+v", one)
	}
}

func TestTapKeepsTheBeginningOfARefusal(t *testing.T) {
	t.Parallel()
	tap, address := tapBefore(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, strings.Repeat("too long ", 1000))
	})

	if text, err := post(t, address+"/v1/messages", ""); err != nil || len(text) != 9000 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if one := tap.all()[0]; len(one.Refusal) != errorLimit || !strings.HasPrefix(one.Refusal, "too long") {
		t.Errorf("%d bytes of the refusal", len(one.Refusal))
	}
}

func TestTapBreaksWhereTheProgramBreaks(t *testing.T) {
	t.Parallel()
	_, address := tapBefore(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of ")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})

	if text, err := post(t, address+"/v1/messages", ""); err == nil {
		t.Errorf("the client took %q for the whole", text)
	}
}

func TestGenerationsAreToldByMethodAndPath(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"POST /v1/messages?beta=true": true, "POST /v1/chat/completions": true, "POST /v1/responses": true, "POST /v1/v1/messages": true,
		"POST /v1/messages/count_tokens": false, "GET /v1/responses": false, "GET /v1/models": false,
		"POST /model/us.anthropic.claude-x-v1:0/invoke": true, "POST /model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream": true,
		"POST /model/us.anthropic.claude-x-v1:0/count-tokens": false, "GET /inference-profiles": false,
		"POST /v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:streamRawPredict": true, "POST /v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:rawPredict": true,
		"POST /v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict": false, "POST /anthropic/v1/messages?beta=true": true,
		"POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse": true, "POST /v1beta/models/gemini-2.5-pro:generateContent": true,
		"POST /v1beta/models/gemini-2.5-pro:countTokens": false,
	} {
		method, path, _ := strings.Cut(line, " ")
		if got := (Exchange{Method: method, Path: path}).isGeneration(); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestEpochsAreThoseThatArchiveToo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		compression, archived string
		want                  bool
	}{
		{"none", "0", false}, {"frozen", "0", false}, {"unreachable", "0", false}, {"unreachable", "6", true}, {"epoch", "6", true}, {"epoch", "0", true}, {"", "", false},
	} {
		exchange := Exchange{Answered: http.Header{"X-Palimpsest-Compression": {test.compression}, "X-Palimpsest-Archived": {test.archived}}}
		if got := exchange.isEpoch(); got != test.want {
			t.Errorf("%q with %q archived: %t", test.compression, test.archived, got)
		}
	}
}
