package tenantsdb_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestRecordedExchangeIsReadAsItWas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full := b.exchange(now())
	full.Request.Session, full.Request.Lane, full.Answer.Answer, full.Prompt.Report = uuid.New(), uuid.New(), []byte{0, 1, 254, 255}, []byte(`{"compression": "epoch"}`)
	full.Answer.ErrorFrom, full.Answer.ErrorType, full.Request.Stream, full.Prompt.Levels = "provider", "overloaded_error", true, [4]int{1, 2, 3, 4}
	full.Cost.NetMicroUSD, full.Cost.UnreadMicroUSD, full.Cost.RewrittenMicroUSD, full.Prompt.Bridged, full.Prompt.Compacted = -17, 40, 57, true, true
	full.Request.Class, full.Answer.ProviderKey = "main", uuid.New()
	full.Prompt.Reach, full.Prompt.Takes, full.Prompt.Target = true, 128_000, 84_000
	full.Answer.ServiceTier, full.Answer.Speed, full.Answer.Region, full.Answer.AnsweredBy = "priority", "fast", "eu", "claude-sonnet-5"
	full.Request.EndUser = "5f4dcc3b5aa765d61d8327deb882cf99"
	full.Request.Tags, full.Answer.Signed, full.Answer.ErrorText = tenants.Tags{"team": "search", "run": "a=b \"c\""}, map[string]string{"Session-Source": "header"}, []byte{7, 0, 9}
	full.Tokens.MissCause, full.Tokens.MissedTokens, full.Prompt.Projection, full.Cost.PredictedMicroUSD = "prefix_change_ours", 4000, 3, new(int64(-9))
	for _, field := range reflect.VisibleFields(reflect.TypeFor[tenants.Exchange]()) {
		if field.Name != "EndUserName" && !field.Anonymous && reflect.ValueOf(full).FieldByIndex(field.Index).IsZero() {
			t.Errorf("%s is zero: nothing here would notice that it is not recorded", field.Name)
		}
	}
	bare := tenants.Exchange{ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: now(), Request: tenants.ExchangeRequest{APIKey: uuid.New()}, Prompt: tenants.ExchangePrompt{Compression: "none"}}
	b.record(t, b.workspace, full, bare)

	for _, want := range []tenants.Exchange{full, bare} {
		got, err := b.Exchanges.Exchange(tenants.OwnWork(t.Context()), b.workspace, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		got.At = got.At.UTC()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v\nwant %+v", got, want)
		}
	}
}

func TestExchangeIsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.exchange(now()), b.exchange(now())
	b.record(t, b.workspace, first)
	changed := first
	changed.Request.Model = "another"
	b.record(t, b.workspace, changed, second)
	b.record(t, b.workspace)

	exchanges, _, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, tenants.ExchangeFilter{})
	if err != nil || len(exchanges) != 2 {
		t.Fatalf("%d exchanges (%v), want 2", len(exchanges), err)
	}
	if got, err := b.Exchanges.Exchange(tenants.OwnWork(t.Context()), b.workspace, first.ID); err != nil || got.Request.Model != first.Request.Model {
		t.Errorf("the second record changed the first: %+v (%v)", got, err)
	}
}

func TestTextThatADatabaseRefusesDoesNotLoseABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	odd := b.exchange(now())
	odd.Request.Model, odd.Request.Client, odd.Prompt.Report = "a\x00b\xff", "\x00", []byte(`{"reason":"\u0000"}`)
	b.record(t, b.workspace, odd, b.exchange(now()))

	got, err := b.Exchanges.Exchange(tenants.OwnWork(t.Context()), b.workspace, odd.ID)
	if err != nil || got.Request.Model != "ab\uFFFD" || got.Request.Client != "" {
		t.Fatalf("model %q, client %q (%v)", got.Request.Model, got.Request.Client, err)
	}
}

func (b bundle) exchange(at time.Time) tenants.Exchange {
	return tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: at,
		Request: tenants.ExchangeRequest{
			APIKey: uuid.New(), Endpoint: "/v1/messages", Model: "claude", Client: "codex", Position: 12,
		},
		Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: 200, Attempts: 1},
		Prompt: tenants.ExchangePrompt{Compression: "frozen", TokensBefore: 1000, TokensAfter: 400, Window: 200_000},
		Tokens: tenants.ExchangeTokens{Input: 10, CacheRead: 300, CacheWrite: 90, Output: 55},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 1234, NetMicroUSD: 99},
		Times: tenants.ExchangeTimes{
			Overhead: 1500 * time.Microsecond, TTFB: 20 * time.Millisecond, Duration: 3 * time.Second,
		},
	}
}

func (b bundle) record(t *testing.T, workspace tenants.WorkspaceID, exchanges ...tenants.Exchange) {
	t.Helper()
	if err := b.Exchanges.RecordExchanges(t.Context(), workspace, exchanges); err != nil {
		t.Fatal(err)
	}
}
