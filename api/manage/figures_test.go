package manage

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// RequestType is the JSON of a request.
var RequestType = reflect.TypeFor[requestJSON]()

// members returns the numbers that an answer has as JSON, by name; those of objects in it with the
// object's name in front.
func members(t *testing.T, answer any) map[string]float64 {
	t.Helper()
	encoded, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(encoded, &object); err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for name, value := range object {
		switch value := value.(type) {
		case float64:
			found[name] = value
		case map[string]any:
			for inner, number := range value {
				if number, is := number.(float64); is {
					found[name+"."+inner] = number
				}
			}
		}
	}
	return found
}

// compare fails the test where an answer's numbers are not those that are wanted. Every number must be
// wanted, so that a new one gets a line here.
func compare(t *testing.T, answer any, want map[string]float64) {
	t.Helper()
	got := members(t, answer)
	for name, number := range want {
		if got[name] != number {
			t.Errorf("%T: %s is %v, want %v", answer, name, got[name], number)
		}
	}
	for name := range got {
		if _, is := want[name]; !is {
			t.Errorf("%T: %s is not wanted", answer, name)
		}
	}
}

// Every figure of a request stands under its own name and in the unit that its name says, in JSON and in
// the columns of the download.
func TestFiguresOfRequestStandUnderTheirName(t *testing.T) {
	t.Parallel()
	e := tenants.Exchange{
		ID: uuid.New(), Request: tenants.ExchangeRequest{Position: 1},
		Answer: tenants.ExchangeAnswer{Status: 202, Attempts: 2},
		Prompt: tenants.ExchangePrompt{TokensBefore: 3, TokensAfter: 4, Window: 5, Takes: 6, Target: 7, Projection: 8},
		Tokens: tenants.ExchangeTokens{Input: 9, CacheRead: 10, CacheWrite: 11, Output: 12, MissedTokens: 13},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 1_400_000, NetMicroUSD: -1_500_000, UnreadMicroUSD: 16, RewrittenMicroUSD: 17},
		Times:  tenants.ExchangeTimes{Overhead: 1800 * time.Microsecond, TTFB: 19 * time.Millisecond, Duration: 20 * time.Second},
	}
	compare(t, requestOf(e), map[string]float64{
		"messages": 1, "status": 202, "attempts": 2, "tokens_before": 3, "tokens_after": 4, "context_window": 5, "provider_window": 6, "target_tokens": 7, "projection": 8,
		"reported.input": 9, "reported.cache_read": 10, "reported.cache_write": 11, "reported.output": 12, "missed_tokens": 13,
		"cost_micro_usd": 1_400_000, "net_micro_usd": -1_500_000, "overhead_ms": 1.8, "ttfb_ms": 19, "duration_ms": 20_000,
	})
	want := map[string]string{
		"status": "202", "attempts": "2", "tokens_received": "3", "tokens_sent": "4", "input": "9", "cache_read": "10", "cache_write": "11", "output": "12", "missed_tokens": "13",
		"cost_usd": "1.400000", "net_usd": "-1.500000", "overhead_ms": "1.8", "ttfb_ms": "19", "duration_ms": "20000", "session": "", "lane": "", "id": e.ID.String(),
	}
	for _, column := range requestColumns() {
		if cell, is := want[column.name]; is && column.cell(&e) != cell {
			t.Errorf("%s is %q, want %q", column.name, column.cell(&e), cell)
		}
		delete(want, column.name)
	}
	for name := range want {
		t.Errorf("the download has no %s", name)
	}
}

// Every sum of usage, of a session and of a thread stands under its own name.
func TestSumsStandUnderTheirName(t *testing.T) {
	t.Parallel()
	var row tenants.UsageRow
	row.Exchanges, row.Failures, row.Epochs, row.TokensBefore, row.TokensAfter = 1, 2, 3, 4, 5
	row.Input, row.CacheRead, row.CacheWrite, row.Output, row.Reach, row.ReachBefore, row.ReachAfter = 6, 7, 8, 9, 10, 3, 1
	row.CostMicroUSD, row.NetMicroUSD, row.UnreadMicroUSD, row.RewrittenMicroUSD, row.OwnMicroUSD = 1100, 1200, 300, 40, 5
	compare(t, usageOf(&row), map[string]float64{
		"requests": 1, "failures": 2, "epochs": 3, "tokens_before": 4, "tokens_after": 5, "input": 6, "cache_read": 7, "cache_write": 8, "output": 9, "reach": 10, "reach_tokens_before": 3, "reach_tokens_after": 1, "tokens_saved": (4 - 3) - (5 - 1),
		"cost_micro_usd": 1100, "net_micro_usd": 1200, "unread_micro_usd": 300, "rewritten_micro_usd": 40, "own_micro_usd": 5, "not_sent_micro_usd": 1200 - 300 + 40 + 5,
	})
	overview := session.Overview{Sums: session.Sums{Exchanges: 1, Epochs: 2, TokensBefore: 3, TokensAfter: 4, NetMicroUSD: -5, CostMicroUSD: 7, Reach: 6, ReachBefore: 2, ReachAfter: 1}}
	compare(t, sessionOf(overview), map[string]float64{
		"requests": 1, "epochs": 2, "tokens_before": 3, "tokens_after": 4, "net_micro_usd": -5, "cost_micro_usd": 7, "reach": 6, "reach_tokens_before": 2, "reach_tokens_after": 1, "tokens_saved": (3 - 2) - (4 - 1), "comments": 0, "scores_up": 0, "scores_down": 0,
	})
	compare(t, laneOf(session.LaneOverview{ForkAt: 1, Position: 2, Archived: 3}, nil, nil), map[string]float64{"fork_at": 1, "messages": 2, "archived": 3})
	compare(t, operatedOf(tenants.OperatedWorkspace{Members: 1, Exchanges: 2, Failures: 3, Tokens: 4, ArchiveBytes: 5}), map[string]float64{
		"members": 1, "exchanges": 2, "failures": 3, "tokens": 4, "archive_bytes": 5,
	})
}

// Of two compactions of two threads each has its own decision.
func TestCompactionsHaveTheirOwnDecision(t *testing.T) {
	t.Parallel()
	own, other := uuid.New(), uuid.New()
	epochs := []session.EpochOverview{{Lane: other, Number: 1, Before: 10, After: 1}, {Lane: own, Number: 2, Before: 20, After: 2}, {Lane: own, Number: 3}}
	decisions := []cost.Decision{
		{Lane: own, Number: 1, Realized: 91}, {Lane: own, Number: 2, Realized: 2, Exchanges: 22, Reach: 12, Guessed: true, Predicted: 7},
		{Lane: other, Number: 2, Realized: 92}, {Lane: other, Number: 1, Realized: 1, Exchanges: 21, Reach: 11, Worst: new(int64(-5))},
	}
	for range 2 {
		shown := laneOf(session.LaneOverview{ID: own}, epochs, decisions).Epochs
		for i, want := range []epochJSON{
			{Number: 1, TokensBefore: 10, TokensAfter: 1, Realized: 1, Requests: 21, Reach: 11}, {Number: 2, TokensBefore: 20, TokensAfter: 2, Realized: 2, Requests: 22, Reach: 12}, {Number: 3},
		} {
			got := shown[i]
			if (got.Predicted != nil) != (i == 1) || (got.Worst != nil) != (i == 0) {
				t.Errorf("compaction %d: predicted %v, at worst %v", got.Number, got.Predicted, got.Worst)
			}
			if got.Predicted, got.Worst = nil, nil; !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		slices.Reverse(decisions)
	}
}

// Budgets of a key are read and written in dollars and kept in millionths of one; a change of one
// limit leaves the others.
func TestLimitsKeepTheirUnit(t *testing.T) {
	t.Parallel()
	limits := tenants.Limits{Quota: tenants.Quota{RequestsPerMinute: 1, TokensPerMinute: 2, Concurrency: 3, DayMicroUSD: 4_500_000, MonthMicroUSD: 67_000_000}}
	want := map[string]float64{"requests_per_minute": 1, "tokens_per_minute": 2, "concurrency": 3, "budget_day_usd": 4.5, "budget_month_usd": 67}
	compare(t, limitsOf(limits), want)
	for name := range want {
		var change limitsChange
		if err := json.Unmarshal([]byte(`{"`+name+`": 8}`), &change); err != nil {
			t.Fatal(err)
		}
		changed, err := change.apply(limits)
		if err != nil {
			t.Fatal(err)
		}
		after := members(t, limitsOf(changed))
		for other, before := range want {
			if other == name && after[other] != 8 || other != name && after[other] != before {
				t.Errorf("%s is changed to 8: %s is %v", name, other, after[other])
			}
		}
	}
}

// On what terms a request was answered stands in the API and in the file, each under its own name.
func TestTermsOfARequestHaveTheirOwnNames(t *testing.T) {
	t.Parallel()
	exchange := tenants.Exchange{Answer: tenants.ExchangeAnswer{Served: tenants.Served{ServiceTier: "priority", Speed: "fast", Region: "eu", AnsweredBy: "claude-sonnet-5"}}}
	if answer := requestOf(exchange); answer.ServiceTier != "priority" || answer.Speed != "fast" || answer.Region != "eu" || answer.AnsweredBy != "claude-sonnet-5" {
		t.Errorf("%+v", answer)
	}
	want := map[string]string{"service_tier": "priority", "speed": "fast", "region": "eu", "answered_by": "claude-sonnet-5"}
	for _, column := range requestColumns() {
		if cell, is := want[column.name]; is && column.cell(&exchange) != cell {
			t.Errorf("%s is %s", column.name, column.cell(&exchange))
		}
		delete(want, column.name)
	}
	if len(want) > 0 {
		t.Errorf("no columns %v", want)
	}
}
