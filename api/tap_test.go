package api

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/recorder/recordertest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// panicking is a format whose tap panics where it reads certain bytes; without any,
// where it is asked for the answer.
type panicking struct {
	wire.Codec

	at string
}

func (c panicking) Tap(stream bool) wire.Tap { return panickingTap{c.Codec.Tap(stream), c.at} }

type panickingTap struct {
	wire.Tap

	at string
}

func (t panickingTap) Write(p []byte) (int, error) {
	if t.at != "" && bytes.Contains(p, []byte(t.at)) {
		panic("as planned at " + t.at)
	}
	return t.Tap.Write(p)
}

func (t panickingTap) Answer() wire.Answer {
	if t.at == "" {
		panic("as planned at the end")
	}
	return t.Tap.Answer()
}

// W25: a panic beside an answer costs its client none of it; it is logged and counted,
// the usage is estimated, and counts against budgets.
func TestAPanicInTheTapCostsNobodyTheirAnswer(t *testing.T) {
	t.Parallel()
	const block = "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	const delta = "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"0123456789 0123456789\"}}\n\n"
	const stop = "event: message_stop\ndata: {}\n\n"
	const whole = `{"type":"message","role":"assistant","content":[{"type":"text","text":"0123456789 0123456789"}],"usage":{"input_tokens":10,"output_tokens":6}}`
	for name, test := range map[string]struct {
		at, body string
		parts    []string // of the answer, each flushed
		output   int
	}{
		"at an event":            {"content_block_delta", streamed, []string{started, block, delta, delta, stop}, len(started+block+delta+delta+stop) / streamShare / bytesPerToken},
		"at the first":           {"message_start", streamed, []string{started, block, delta, stop}, len(started+block+delta+stop) / streamShare / bytesPerToken},
		"at the end of a stream": {"", streamed, []string{started, block, delta, stop}, len(started+block+delta+stop) / streamShare / bytesPerToken},
		"in the midst of a body": {"0123456789", askClaude, []string{whole[:20], whole[20:]}, len(whole) / bytesPerToken},
		"where a body is read":   {"", askClaude, []string{whole}, len(whole) / bytesPerToken},
		"nowhere":                {"no such", streamed, []string{started, block, delta, stop}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := make(chan struct{})
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if test.body == streamed {
					w.Header().Set("Content-Type", "text/event-stream")
				} else {
					w.Header().Set("Content-Type", "application/json")
				}
				for _, part := range test.parts {
					_, _ = io.WriteString(w, part)
					_ = http.NewResponseController(w).Flush()
					<-heard
				}
			})
			p.store.limit(tenants.Limits{Quota: tenants.Quota{MonthMicroUSD: 1}})
			registry := prometheus.NewRegistry()
			p.Metrics = NewMetrics(registry)
			e := echo.New()
			e.POST(messagesPath, p.exchange(panicking{anthropic.New(), test.at}, messagesPath, converse))
			front := httptest.NewServer(e)
			t.Cleanup(front.Close)
			p.url = front.URL

			response := p.open(t.Context(), http.MethodPost, messagesPath, test.body)
			defer response.Body.Close()
			for i, part := range test.parts { // as they come, also after the panic
				read(t, response.Body, part)
				if i < len(test.parts) {
					heard <- struct{}{}
				}
			}
			if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 {
				t.Errorf("the answer ends with %q, %v", rest, err)
			}
			recorded, panics := p.last(1), 1
			if test.at == "no such" {
				panics = 0
			}
			if recorded.Answer.Status != http.StatusOK || recorded.Tokens.Input+recorded.Tokens.CacheRead == 0 || recorded.Tokens.Output != test.output || recorded.Cost.CostMicroUSD == 0 || recorded.Cost.NetMicroUSD != 0 {
				t.Errorf("recorded %+v, want %d tokens of output", recorded, test.output)
			}
			if isEstimated := strings.Contains(string(recorded.Prompt.Report), "the answer could not be read"); isEstimated != (panics > 0) {
				t.Errorf("reported: %s", recorded.Prompt.Report)
			}
			if got := recordertest.Counted(t, registry)["palimpsest_answer_read_failures_total"]; got != panics || strings.Contains(p.log.String(), "as planned") != (panics > 0) {
				t.Errorf("%d panics are counted, want %d: %s", got, panics, p.log)
			}
			if again := p.send(http.MethodPost, messagesPath, askClaude); again.status != http.StatusTooManyRequests {
				t.Errorf("the budget is spent, and the next request gets %d", again.status)
			}
		})
	}
}

// bytesPerToken is how many bytes of an answer are taken for a token.
const bytesPerToken = 4
