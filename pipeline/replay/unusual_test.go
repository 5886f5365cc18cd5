package replay_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/sessiontest"
)

// unusual is a way to work that the recorded sessions do not show, by rent or buy.
type unusual struct {
	name      string
	format    conversation.Format // empty: Anthropic's
	change    func(*ipc.Config)   // nil leaves the defaults
	models    []tokens.Model      // that have no price
	requests  func() []request
	automatic bool // the provider caches unasked
	untouched bool // nothing is to be compacted
}

// request is one of a client's.
type request struct {
	session, model string
	at             time.Duration
	body           []byte
}

const (
	sonnet = "claude-sonnet-4-5"
	opus   = "claude-opus-4-5"
)

// grown returns the requests of a generated session, one every 20 seconds.
func grown(seed uint64, name string, options sessiontest.Options) []request {
	session := sessiontest.Generate(seed, options)
	model := options.Model
	all := make([]request, session.Steps())
	for i := range all {
		all[i] = request{name, model, time.Duration(i) * 20 * time.Second, session.Body(i)}
	}
	return all
}

func long(model string) sessiontest.Options {
	return sessiontest.Options{Model: model, Turns: 70, TargetTokens: 100_000, CacheMarkers: true, Parallel: true, ToolErrors: true}
}

// edited returns a body whose messages were changed.
func edited(body []byte, change func([]json.RawMessage) []json.RawMessage) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		panic("no body")
	}
	var messages []json.RawMessage
	if json.Unmarshal(members["messages"], &messages) != nil {
		panic("no messages")
	}
	members["messages"], _ = json.Marshal(change(messages))
	body, _ = json.Marshal(members)
	return body
}

func unusualWays() []unusual {
	one := func(change func([]request) []request) func() []request {
		return func() []request { return change(grown(3, "one", long(sonnet))) }
	}
	asItIs := func(all []request) []request { return all }
	return []unusual{
		{name: "implicit cache and no markers", format: conversation.OpenAIChat, automatic: true, requests: func() []request {
			options := long("gpt-5")
			options.Format, options.CacheMarkers = conversation.OpenAIChat, false
			return grown(4, "one", options)
		}},
		{name: "no price known", requests: one(func(all []request) []request {
			for i := range all {
				all[i].model = "house-model"
				all[i].body = bytes.Replace(all[i].body, []byte(sonnet), []byte("house-model"), 1)
			}
			return all
		}), models: []tokens.Model{{Name: "house-model", Window: 1_000_000, MaxOutput: 64_000, TokensPerO200k: 1.2}}},
		{name: "client edits old results", requests: one(func(all []request) []request {
			for i := range all {
				if i > 40 && i%25 == 0 {
					for j := i; j < len(all); j++ {
						all[j].body = edited(all[j].body, func(messages []json.RawMessage) []json.RawMessage {
							at := 2*i - 30
							messages[at] = bytes.Replace(messages[at], []byte(" the "), []byte(" that "), 1)
							return messages
						})
					}
				}
			}
			return all
		})},
		{name: "model switched in the middle and back", requests: one(func(all []request) []request {
			for i := range all {
				if i%30 >= 20 {
					all[i].model = opus
					all[i].body = bytes.Replace(all[i].body, []byte(sonnet), []byte(opus), 1)
				}
			}
			return all
		})},
		{name: "two subagents beside each other", requests: func() []request {
			var all []request
			for i, name := range []string{"main", "first", "second"} {
				all = append(all, grown(uint64(10+i), name, long(sonnet))...)
			}
			slices.SortStableFunc(all, func(a, b request) int { return int(a.at - b.at) })
			return all
		}},
		{name: "lunch", requests: one(func(all []request) []request {
			for i := range all {
				all[i].at += time.Duration(i/40) * 90 * time.Minute
			}
			return all
		})},
		{name: "huge first message", requests: one(func(all []request) []request {
			text := strings.Builder{}
			for n := range 20_000 {
				fmt.Fprintf(&text, "line %d ", n*7919%100_000)
			}
			content, _ := json.Marshal(text.String())
			for i := range all {
				all[i].body = edited(all[i].body, func(messages []json.RawMessage) []json.RawMessage {
					messages[0] = fmt.Appendf(nil, `{"role":"user","content":%s}`, content)
					return messages
				})
			}
			return all
		})},
		{name: "window smaller than minContext", change: func(c *ipc.Config) { c.ContextWindow = 40_000 }, requests: one(asItIs)},
		{name: "minContext above the window", change: func(c *ipc.Config) { c.MinContext, c.ContextWindow = 2_000_000, 60_000 }, requests: one(asItIs)},
		{name: "minContext above the prompts of a far window", untouched: true, change: func(c *ipc.Config) {
			c.MinContext, c.ContextWindow = 900_000, 1_000_000
		}, requests: one(asItIs)},
		{name: "a ceiling of a tenth", change: func(c *ipc.Config) {
			c.TargetUtilization, c.CompressTo, c.IdleUtilization = 0.12, 0.10, 0.11
		}, requests: one(asItIs)},
	}
}

// Whatever a client does, by rent or buy nothing is refused, no session costs more than a
// tenth more than untouched, and the events tell what happened.
func TestRentOrBuyHoldsInUnusualSessions(t *testing.T) {
	t.Parallel()
	ways := unusualWays()
	for i := range fulltest.Part(len(ways)) {
		way := ways[i]
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			way.run(t)
		})
	}
}

func (way *unusual) run(t *testing.T) {
	t.Helper()
	config := modules.Catalog().Default()
	config.Modules, pipeline.Change[ipc.Config](&config).Trigger = []string{"ipc"}, ipc.TriggerBreakEven
	if way.change != nil {
		way.change(pipeline.Change[ipc.Config](&config))
	}
	format := cmp.Or(way.format, conversation.Anthropic)
	double := providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000, AllowUnknown: true})
	run, err := replay.New(replay.Config{
		Format: format, Pipeline: config, TTL: 5 * time.Minute, Automatic: way.automatic, Models: way.models,
		Validate: func(format conversation.Format, body []byte) error { return double.Validate(string(format), body) },
	})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	providers, sum, epochs := replay.Providers{}, replay.Sum{}, 0
	requests := way.requests()
	for i, one := range requests {
		double.Trust(one.body)
		step, err := run.Send(t.Context(), providers, one.session, one.model, start.Add(one.at), one.body)
		if err != nil || step.Invalid != "" {
			t.Fatalf("request %d: %v %s", i, err, step.Invalid)
		}
		if step.Sent.Report.Limit > 0 && step.After > step.Sent.Report.Limit {
			t.Errorf("request %d has %d of %d tokens", i, step.After, step.Sent.Report.Limit)
		}
		sum.CostMicroUSD, sum.DirectMicroUSD = sum.CostMicroUSD+step.CostMicroUSD, sum.DirectMicroUSD+step.DirectMicroUSD
		for j := range step.Sent.Report.Events {
			switch event := &step.Sent.Report.Events[j]; event.Type {
			case "completed":
				epochs++
				way.check(t, i, event, &step, pipeline.Change[ipc.Config](&config))
			case "failed", "rejected", "breaker_open", "truncated", "protection_lifted":
				t.Errorf("request %d of %d tokens: %s %s %v", i, step.Before, event.Type, event.Reason, event.Counts)
			}
		}
	}
	t.Logf("%d requests, %d epochs, %+.1f %% against no compression", len(requests), epochs, sum.Difference())
	if sum.Difference() > 10 {
		t.Errorf("costs %+.1f %% against no compression", sum.Difference())
	}
	if (epochs == 0) != way.untouched || epochs > len(requests)/5 {
		t.Errorf("%d epochs in %d requests", epochs, len(requests))
	}
}

// check checks what an epoch's event says.
func (way *unusual) check(t *testing.T, request int, event *pipeline.ReportEntry, step *replay.Step, config *ipc.Config) {
	t.Helper()
	counts := event.Counts
	if counts["after"] >= counts["before"] || counts["after"] != step.After {
		t.Errorf("request %d: %v, and %d were sent", request, counts, step.After)
	}
	rent, predicted, worst := counts["rent_microusd"], counts["predicted_net_microusd"], counts["worst_net_microusd"]
	if worst > predicted || event.Reason == "break-even" && way.models == nil && rent < -worst {
		t.Errorf("request %d: %v", request, counts)
	}
	if event.Reason != "target" && event.Reason != "limit" && counts["before"] <= config.MinContext {
		t.Errorf("request %d: %s at %d tokens", request, event.Reason, counts["before"])
	}
	if way.models != nil && (rent != 0 || predicted != 0 || worst != 0) {
		t.Errorf("request %d: the model has no price, and the event says %v", request, counts)
	}
}
