package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

// An answer that its client leaves, or that ends early, is paid for: what the provider
// did not come to report is estimated, and counts against budgets. No saving is claimed.
func TestUnreportedUsageIsEstimated(t *testing.T) {
	t.Parallel()
	const chunk = `data: {"choices":[{"index":0,"delta":{"content":"0123456789 0123456789"}}]}` + "\n\n"
	const stop = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	const delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"0123456789 0123456789\"}\n\n"
	const block = "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"0123456789 0123456789\"}}\n\n"
	leaves, breaks, ends := "client", "provider", ""
	for name, test := range map[string]struct {
		path, body, stream string
		how                string // who ends it
		output             int    // tokens
		estimated          bool
	}{
		"messages":                        {messagesPath, streamed, started + block, leaves, 5, true},
		"chat":                            {chatPath, chatStream, chunk, leaves, 5, true},
		"chat, between end and usage":     {chatPath, chatStream, chunk + stop, leaves, 5, true},
		"responses":                       {responsesPath, `{"model":"gpt-5.5","stream":true,"input":"hi"}`, delta, leaves, 5, true},
		"nothing said yet":                {chatPath, chatStream, ": wait\n\n", leaves, 0, true},
		"the connection breaks":           {chatPath, chatStream, chunk, breaks, 5, true},
		"it breaks before anything":       {chatPath, chatStream, ": wait\n\n", breaks, 0, true},
		"it ends without a usage":         {chatPath, chatStream, chunk + stop + "data: [DONE]\n\n", ends, 5, true},
		"it ends with an error (W15)":     {chatPath, chatStream, chunk + "data: {\"error\":{\"type\":\"server_error\"}}\n\n", ends, 5, true},
		"it ends, and the usage was told": {messagesPath, streamed, started + block + "event: message_stop\ndata: {}\n\n", ends, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, test.stream)
				_ = http.NewResponseController(w).Flush()
				switch test.how {
				case leaves:
					<-r.Context().Done()
				case breaks:
					panic(http.ErrAbortHandler)
				}
			})
			p.Now = (&clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}).now
			p.store.limit(tenants.Limits{Quota: tenants.Quota{MonthMicroUSD: 1}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response := p.open(ctx, http.MethodPost, test.path, test.body)
			defer response.Body.Close()
			read(t, response.Body, test.stream)
			if test.how == leaves {
				cancel()
			}

			recorded := p.last(1)
			prompt := recorded.Tokens.Input + recorded.Tokens.CacheRead + recorded.Tokens.CacheWrite
			isPaid := test.estimated || test.path == messagesPath
			if (prompt > 0) != isPaid || recorded.Tokens.Output != test.output || (recorded.Cost.CostMicroUSD > 0) != isPaid || recorded.Cost.NetMicroUSD != 0 {
				t.Errorf("recorded: %+v", recorded)
			}
			if strings.Contains(string(recorded.Prompt.Report), `"type":"estimated"`) != test.estimated {
				t.Errorf("reported: %s", recorded.Prompt.Report)
			}
			if test.path != messagesPath && isPaid && prompt != recorded.Prompt.TokensAfter {
				t.Errorf("%d tokens of prompt are paid, want %d", prompt, recorded.Prompt.TokensAfter)
			}
			if again := p.send(http.MethodPost, messagesPath, askClaude); (again.status == http.StatusTooManyRequests) != isPaid {
				t.Errorf("the budget is spent, and the next request gets %d", again.status)
			}
		})
	}
}
