package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

// E7, W37: a count is of what would be sent: the frozen projection, with what the
// model needs to take it. Nothing of the question stays.
func TestCountIsOfWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, count, body string }{
		"messages":  {messagesPath, countPath, toolSession("claude-opus-5-5", 30, 800)},
		"responses": {responsesPath, inputTokensPath, responsesSession(800)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			double := providertest.NewServer(t, providerdouble.Config{})
			p := setupAt(t, double.URL)
			for _, model := range []string{"claude-opus-5-5", "gpt-5.5"} {
				p.store.windows[model] = small
			}
			fresh := p.send(http.MethodPost, test.count, test.body)
			whole, _ := double.Last()
			if fresh.status != http.StatusOK || string(whole.Body) != test.body || fresh.header.Get("X-Palimpsest-Compression") != "none" {
				t.Errorf("before anything was sent: status %d, %v: %s", fresh.status, fresh.header, fresh.body)
			}

			p.send(http.MethodPost, test.path, test.body)
			sent, _ := double.Last()
			p.last(2) // its records are written with it
			before := p.memory.writes()
			got := p.send(http.MethodPost, test.count, test.body)
			counted, _ := double.Last()
			var answer struct {
				Tokens int `json:"input_tokens"`
			}
			if err := json.Unmarshal(got.body, &answer); err != nil || got.status != http.StatusOK {
				t.Fatalf("status %d: %s (%v)", got.status, got.body, err)
			}
			if string(counted.Body) != string(sent.Body) || answer.Tokens > small || answer.Tokens != sent.Prompt {
				t.Errorf("counted is another prompt: %d tokens, sent were %d", answer.Tokens, sent.Prompt)
			}
			if strings.Join(counted.Header.Values("Anthropic-Beta"), ",") != strings.Join(sent.Header.Values("Anthropic-Beta"), ",") {
				t.Errorf("counted with the betas %v, sent with %v", counted.Header.Values("Anthropic-Beta"), sent.Header.Values("Anthropic-Beta"))
			}
			if got.header.Get("X-Palimpsest-Compression") != "frozen" {
				t.Errorf("headers %v", got.header)
			}
			if before, _ := strconv.Atoi(got.header.Get("X-Palimpsest-Tokens-Before")); before < whole.Prompt*8/10 || before > whole.Prompt*12/10 || whole.Prompt <= small {
				t.Errorf("the header says %d tokens of the original, which has %d; what would be sent has %d", before, whole.Prompt, answer.Tokens)
			}
			if recorded := p.last(3); recorded.Prompt.TokensBefore != 0 || recorded.Prompt.TokensAfter != 0 || recorded.Request.Endpoint != test.count {
				t.Errorf("the question counts in the usage: %+v", recorded)
			}
			if after := p.memory.writes(); after != before || after[0] != 1 {
				t.Errorf("the question was written down: %v, was %v", after, before)
			}
		})
	}
}

// W37: a prompt that is too large to send is counted as it is: there is no epoch.
func TestCountMakesNoEpoch(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["claude-opus-5-5"] = small
	body := toolSession("claude-opus-5-5", 30, 800)
	for range 2 {
		got := p.send(http.MethodPost, countPath, body)
		last, _ := double.Last()
		if got.status != http.StatusOK || string(last.Body) != body || got.header.Get("X-Palimpsest-Archived") != "0" {
			t.Errorf("status %d, headers %v: %s", got.status, got.header, got.body)
		}
	}
	p.last(2)
	if writes := p.memory.writes(); writes != [2]int32{} {
		t.Errorf("the questions were written down: %v", writes)
	}
}

// What cannot be read goes to the provider as it came: it may know the rest.
func TestQuestionThatCannotBeReadGoesToTheProvider(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		inputTokensPath: `{"model":"gpt-5.5","previous_response_id":"resp_1"}`,
		compactPath:     `{"model":"gpt-5.5","previous_response_id":"resp_1"}`,
		countPath:       `{"model":"claude-opus-5-5"}`,
	} {
		arrived := make(chan string, 1)
		p := setup(t, func(w http.ResponseWriter, r *http.Request) {
			content, _ := io.ReadAll(r.Body)
			arrived <- string(content)
			_, _ = io.WriteString(w, `{"input_tokens":7}`)
		})
		got := p.send(http.MethodPost, path, body)
		if got.status != http.StatusOK || string(got.body) != `{"input_tokens":7}` || <-arrived != body {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
}

// E6, W42: a compaction by the provider goes out as it came and is noted as what it is.
func TestCompactionByTheProviderPassesAndIsNoted(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["gpt-5.5"] = small
	body := responsesSession(800)
	p.send(http.MethodPost, responsesPath, body)
	p.last(1)
	kept := p.memory.writes()
	got := p.send(http.MethodPost, compactPath, body)
	last, _ := double.Last()
	if got.status != http.StatusOK || string(last.Body) != body || last.Path != compactPath || !strings.Contains(string(got.body), `"response.compaction"`) {
		t.Errorf("status %d, %d of %d bytes: %.300s", got.status, len(last.Body), len(body), got.body)
	}
	recorded := p.last(2)
	if recorded.Request.Class != "compaction" || recorded.Prompt.Compression != "bypassed" || !strings.Contains(string(recorded.Prompt.Report), `"type":"compaction"`) || recorded.Tokens.Input == 0 {
		t.Errorf("recorded: %+v %s", recorded, recorded.Prompt.Report)
	}
	if after := p.memory.writes(); after[1] <= kept[1] {
		t.Errorf("the request is not archived: %v, was %v", after, kept)
	}
}

// W42: everything else passes byte for byte, in both directions.
func TestOtherEndpointsPassByteForByte(t *testing.T) {
	t.Parallel()
	const answered = "\x00\xff any bytes, {not JSON\r\n"
	type arrival struct{ method, path, body, encoding string }
	arrived := make(chan arrival, 1)
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		arrived <- arrival{r.Method, r.URL.RequestURI(), string(content), r.Header.Get("Content-Encoding")}
		w.Header().Set("Content-Type", "audio/mpeg")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, answered)
	})
	for _, test := range []arrival{
		{http.MethodGet, "/v1/responses/resp_1?include=a&include=b", "", ""},
		{http.MethodDelete, "/v1/responses/resp_1", "", ""},
		{http.MethodPost, "/v1/responses/resp_1/cancel", "", ""},
		{http.MethodGet, "/v1/responses/resp_1/input_items?limit=3", "", ""},
		{http.MethodPost, "/v1/embeddings", `{ "input" : "a" }`, ""},
		{http.MethodPost, "/v1/audio/speech", `{"input":"a"}`, "gzip"},
		{http.MethodPost, "/v1/messages/batches", `{"requests":[{"params":{"messages":[]}}]}`, ""},
		{http.MethodGet, "/v1/files/a%2Fb", "", ""},
		{http.MethodPost, "/v1/models", `{}`, ""},
	} {
		header := []string{"X-Palimpsest-Pipe", "ipc"}
		if test.encoding != "" {
			header = append(header, "Content-Encoding", test.encoding)
		}
		got := p.send(test.method, test.path, test.body, header...)
		if sent := <-arrived; sent != test {
			t.Errorf("sent %+v, arrived %+v", test, sent)
		}
		if got.status != http.StatusAccepted || string(got.body) != answered || got.header.Get("Content-Type") != "audio/mpeg" {
			t.Errorf("%s %s: status %d, %v: %q", test.method, test.path, got.status, got.header, got.body)
		}
	}
}
