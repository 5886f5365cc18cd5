package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// order is what the person of these conversations ordered once, at the start.
const order = "Never touch the vendored code."

// worker is a client that works on in one conversation.
type worker struct {
	*tenant

	messages []string
	marks    bool     // sets a cache marker at the end, as agents do
	sent     [][]byte // the prompts as they went out
}

// newWorker returns one whose person has typed the first message.
func newWorker(w *tenant) *worker {
	return &worker{tenant: w, messages: []string{`{"role":"user","content":` + string(wire.Quote("Port the scanner, see TICKET-4711. "+order)) + `}`}}
}

// body returns the next request.
func (w *worker) body() []byte {
	messages := strings.Join(w.messages, ",")
	if w.marks {
		last := anthropic.New().Mark([]byte(w.messages[len(w.messages)-1]), "5m")
		messages = strings.Join(append(w.messages[:len(w.messages)-1:len(w.messages)-1], string(last)), ",")
	}
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":1000,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[%s]}`, messages)
}

// step sends the next request, notes the prompt that went out, and goes on with a
// call and its result. It reports whether there was an epoch.
func (w *worker) step() bool {
	w.t.Helper()
	response, answer := w.post("/v1/messages", w.body(), map[string]string{"X-Palimpsest-Session-Id": "working"})
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("request %d: status %d: %s", len(w.sent), response.StatusCode, answer)
	}
	for _, request := range w.double.Requests() {
		if !isForNotes(request.Body) {
			if len(w.sent) == 0 || !bytes.Equal(w.sent[len(w.sent)-1], request.Body) {
				w.sent = append(w.sent, request.Body)
			}
		}
	}
	n := len(w.messages)
	w.double.Reset()
	w.messages = append(w.messages,
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"go test ./part%d"}}]}`, n, n),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}]}`, n, wire.Quote(fmt.Sprintf("part %d: %s", n, strings.Repeat("all is well. ", 250)))))
	return response.Header.Get("X-Palimpsest-Archived") != "0"
}

// last returns the prompt that went out last.
func (w *worker) last() []byte { return w.sent[len(w.sent)-1] }

// untilEpoch works on until there is an epoch.
func (w *worker) untilEpoch() {
	w.t.Helper()
	for range 200 {
		if w.step() {
			return
		}
	}
	w.t.Fatal("there was no epoch in 200 requests")
}

// untilSummaries waits until so many attempts at a summary have ended.
func (w *worker) untilSummaries(count int) {
	w.t.Helper()
	w.until(func() bool { return strings.Count(w.log.String(), `"msg":"summary"`) >= count })
}

// untilArchived waits until the messages of all requests so far are durable.
func (w *worker) untilArchived() {
	w.t.Helper()
	w.tenant.untilArchived(len(w.messages) - 2)
}

// isForNotes reports whether a body asks for a summary.
func isForNotes(body []byte) bool {
	return bytes.Contains(body, []byte("Answer with these headings, all of them"))
}

// goesOn reports whether a body is a prompt byte for byte, with one message more.
func goesOn(t *testing.T, body, prompt []byte) bool {
	t.Helper()
	now, err := wire.Open(body, "messages")
	if err != nil {
		t.Fatal(err)
	}
	then, err := wire.Open(prompt, "messages")
	if err != nil {
		t.Fatal(err)
	}
	return now.Len() == then.Len()+1 && begins(t, anthropic.New(), body, prompt)
}

// C6, C9, D1, D11: after an epoch a model writes a summary, no request waits for
// it, nothing changes before the next epoch, and from then on the prompt holds it,
// the same after a restart. What it cost is charged.
func TestASummaryIsWrittenInTheBackgroundAndUsedAtTheNextEpoch(t *testing.T) {
	t.Parallel()
	asked, release := make(chan providerdouble.Request, 100), make(chan struct{})
	i := start(t, providerdouble.Config{Script: providerdouble.WithNotes(providerdouble.Echo, func(r providerdouble.Request) providerdouble.Reply {
		asked <- r
		<-release
		return providerdouble.Reply{Text: providerdouble.Notes}
	})})
	w := newWorker(i.tenant("summary"))
	w.setPipelinef("ipc: {contextWindow: 30000, compressTo: 0.4, llmCompression: {model: claude-haiku-4-5}}\n")
	w.untilEpoch()
	first := w.last()

	call := <-asked // the model is asked, and is not answered as long as these requests take
	w.step()
	w.step()
	if !begins(t, anthropic.New(), w.last(), first) {
		t.Error("the prompt changed between epochs")
	}
	close(release)
	w.untilSummaries(1)
	if call.Model != "claude-haiku-4-5" || !strings.Contains(string(call.Body), "TICKET-4711") || bytes.Contains(call.Body, []byte(`"tools"`)) {
		t.Errorf("the model %s is asked: %.300s", call.Model, call.Body)
	}
	w.step()
	if !begins(t, anthropic.New(), w.last(), first) {
		t.Error("a summary came into the prompt between epochs")
	}

	w.untilEpoch()
	for _, want := range []string{"[CONTEXT SUMMARY]\\nNotes on turns 1–", "- Carry the work on.", order, "TICKET-4711"} {
		if !bytes.Contains(w.last(), []byte(want)) {
			t.Errorf("%q is not in the prompt: %.3000s", want, w.last())
		}
	}
	second := w.last()
	if next := <-asked; !strings.Contains(string(next.Body), "previous-summary") {
		t.Errorf("the second summary does not go on from the first: %.300s", next.Body)
	}
	w.untilSummaries(2)
	w.checkCharged()

	i.shutdown()
	i.boot()
	w.step()
	if !begins(t, anthropic.New(), w.last(), second) {
		t.Error("after a restart the prompt is another")
	}
	w.untilEpoch()
	if !bytes.Contains(w.last(), []byte("[CONTEXT SUMMARY]\\nNotes on turns 1–")) {
		t.Error("after a restart the summary is not found again")
	}
}

// What a summary costs is held to the budget of the key whose request called for it:
// it counts as soon as it is there, and none is asked for once the budget is used up.
func TestSummariesKeepToTheBudgetOfTheirKey(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Script: providerdouble.WithNotes(providerdouble.Echo, func(providerdouble.Request) providerdouble.Reply {
		return providerdouble.Reply{Text: providerdouble.Notes}
	})})
	const budget = 10_000_000
	rich := newWorker(i.tenant("rich"))
	rich.setPipelinef("ipc: {contextWindow: 30000, compressTo: 0.4, llmCompression: {model: claude-haiku-4-5}}\n")
	rich.limitTo(budget)
	rich.untilEpoch()
	rich.untilSummaries(1)
	spent, summaries := rich.spent(1)
	if summaries == 0 || strings.Contains(i.log.String(), `"rejected":"budget"`) {
		t.Fatalf("a summary within the budget cost %d", summaries)
	}
	response, _ := rich.post("/v1/messages/count_tokens", rich.body(), nil)
	i.double.Reset()
	left, err := strconv.ParseFloat(response.Header.Get("X-Palimpsest-Ratelimit-Remaining-Month-Usd"), 64)
	if err != nil || int64(math.Round(left*1e6)) != budget-spent-summaries {
		t.Errorf("of the budget %f are left (%v), %d were spent on requests and %d on summaries", left, err, spent, summaries)
	}

	poor := newWorker(i.tenant("poor"))
	poor.setPipelinef("ipc: {contextWindow: 30000, compressTo: 0.4, llmCompression: {model: claude-haiku-4-5}}\n")
	poor.limitTo(spent - 1000) // the same conversation uses it up with the epoch's request
	poor.untilEpoch()
	poor.untilSummaries(2)
	if !strings.Contains(i.log.String(), `"rejected":"budget"`) {
		t.Error("a summary beyond the budget is not rejected")
	}
	if cost, summaries := poor.spent(0); cost < spent-1000 || summaries != 0 {
		t.Errorf("requests cost %d, less than the budget, or summaries %d", cost, summaries)
	}
}

// limitTo gives the worker a key with a budget of a month, in millionths of a dollar.
func (w *worker) limitTo(microUSD int64) {
	w.t.Helper()
	var created struct {
		Secret string `json:"secret"`
	}
	w.call(http.MethodPost, "/api/v1/keys", map[string]any{
		"name": "limited", "scopes": []string{"proxy"}, "budget_month_usd": float64(microUSD) / 1e6,
	}, http.StatusCreated, &created)
	w.key = created.Secret
}

// spent returns what the requests and the summaries of the workspace cost, once all
// requests, and so many summaries, are recorded.
func (w *worker) spent(made int) (requests, summaries int64) {
	w.t.Helper()
	w.until(func() bool {
		var list struct {
			Data []struct {
				Client string `json:"client"`
				Cost   int64  `json:"cost_micro_usd"`
			} `json:"data"`
		}
		w.call(http.MethodGet, "/api/v1/requests?limit=200", nil, http.StatusOK, &list)
		requests, summaries = 0, 0
		for _, request := range list.Data {
			if request.Client == "palimpsest" {
				summaries += request.Cost
			} else {
				requests += request.Cost
			}
		}
		return len(list.Data) == len(w.sent)+made
	})
	return requests, summaries
}

// checkCharged checks that what summaries cost is counted, once, for the workspace
// and for the session.
func (w *worker) checkCharged() {
	w.t.Helper()
	var session struct {
		Net int64 `json:"net_micro_usd"`
	}
	w.until(func() bool {
		var list struct {
			Data []struct {
				Client string `json:"client"`
				Cost   int64  `json:"cost_micro_usd"`
				Net    int64  `json:"net_micro_usd"`
			} `json:"data"`
		}
		w.call(http.MethodGet, "/api/v1/requests?limit=200", nil, http.StatusOK, &list)
		sum, charged := int64(0), 0
		for _, request := range list.Data {
			sum += request.Net
			if request.Client == "palimpsest" && request.Cost > 0 && request.Net == -request.Cost {
				charged++
			}
		}
		w.call(http.MethodGet, "/api/v1/sessions/"+w.onlySession(), nil, http.StatusOK, &session)
		return charged == 2 && sum == session.Net
	})
}

// D7, E5: an answer that is not a summary never comes into a prompt; the deterministic levels
// stand, and the lane's next exchange tells why.
func TestARejectedSummaryLeavesTheLevelsAndIsTold(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Script: providerdouble.WithNotes(providerdouble.Echo, func(providerdouble.Request) providerdouble.Reply {
		return providerdouble.Reply{Text: "I'm sorry, I cannot write that down."}
	})})
	w := newWorker(i.tenant("rejected"))
	w.setPipelinef("ipc: {contextWindow: 30000, compressTo: 0.4, llmCompression: {model: claude-haiku-4-5}}\n")
	w.untilEpoch()
	w.untilSummaries(1)

	w.step()

	w.until(func() bool { return strings.Contains(i.log.String(), `"summary.summary_rejected":"refusal"`) })
	w.untilEpoch()
	if prompt := w.last(); bytes.Contains(prompt, []byte("[CONTEXT SUMMARY]")) || bytes.Contains(prompt, []byte("I'm sorry")) || !bytes.Contains(prompt, []byte("archived as #2]")) {
		t.Errorf("the prompt: %.2000s", prompt)
	}
	w.untilSummaries(2)
	w.step()
	w.until(func() bool { return strings.Count(i.log.String(), `"summary.summary_rejected":"refusal"`) == 2 })
	var events struct {
		Data []struct{ Type, Reason string } `json:"data"`
	}
	w.until(func() bool {
		w.call(http.MethodGet, "/api/v1/sessions/"+w.onlySession()+"/events", nil, http.StatusOK, &events)
		told := 0
		for _, event := range events.Data {
			if event.Type == "summary_rejected" && event.Reason == "refusal" {
				told++
			}
		}
		return told == 2
	})
}

// C9: with reserveTokens the summary is written ahead of the first epoch; where the
// conversation's own model writes it, its cached prompt is gone on from.
func TestASummaryAheadOfTheFirstEpochRidesTheCache(t *testing.T) {
	t.Parallel()
	asked := make(chan providerdouble.Request, 100)
	i := start(t, providerdouble.Config{Script: providerdouble.WithNotes(providerdouble.Echo, func(r providerdouble.Request) providerdouble.Reply {
		asked <- r
		return providerdouble.Reply{Text: providerdouble.Notes}
	})})
	w := newWorker(i.tenant("ahead"))
	w.marks = true
	w.setPipelinef("ipc: {contextWindow: 60000, preserveTokens: 5000, llmCompression: {model: same, reserveTokens: 25000, keepRecentTokens: 6000}}\n")
	for len(asked) == 0 {
		if w.step() {
			t.Fatal("an epoch came before the summary was asked for")
		}
		w.untilArchived()
	}
	call := <-asked
	w.untilSummaries(1)
	if !slices.ContainsFunc(w.sent, func(prompt []byte) bool { return goesOn(t, call.Body, prompt) }) || !bytes.Contains(call.Body, []byte(`"tools"`)) {
		t.Errorf("the summary goes on from no prompt: %.500s", call.Body)
	}
	var line struct {
		Form   string `json:"form"`
		Covers int    `json:"covers"`
	}
	for entry := range strings.Lines(i.log.String()) {
		if strings.Contains(entry, `"msg":"summary"`) {
			if err := json.Unmarshal([]byte(entry), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if line.Form != "cached" || line.Covers == 0 || line.Covers >= len(w.messages) {
		t.Errorf("of %d messages: %+v", len(w.messages), line)
	}

	w.untilEpoch()
	if !bytes.Contains(w.last(), []byte("[CONTEXT SUMMARY]\\nNotes on turns 1–")) {
		t.Errorf("the first epoch does not use the summary: %.3000s", w.last())
	}
}
