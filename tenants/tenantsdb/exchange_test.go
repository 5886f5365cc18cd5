package tenantsdb_test

import (
	"errors"
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
	full.Session, full.Lane, full.Answer, full.Report = uuid.New(), uuid.New(), []byte{0, 1, 254, 255}, []byte(`{"compression": "epoch"}`)
	full.ErrorFrom, full.ErrorType, full.Stream, full.Levels = "provider", "overloaded_error", true, [4]int{1, 2, 3, 4}
	full.NetMicroUSD, full.UnreadMicroUSD, full.RewrittenMicroUSD, full.Bridged = -17, 40, 57, true
	full.MissCause, full.MissedTokens, full.Projection, full.PredictedMicroUSD = "prefix_change_ours", 4000, 3, new(int64(-9))
	bare := tenants.Exchange{ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: now(), APIKey: uuid.New(), Compression: "none"}
	b.record(t, b.workspace, full, bare)

	for _, want := range []tenants.Exchange{full, bare} {
		got, err := b.Exchange(t.Context(), b.workspace, want.ID)
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
	changed.Model = "another"
	b.record(t, b.workspace, changed, second)
	b.record(t, b.workspace)

	exchanges, _, err := b.Exchanges(t.Context(), b.workspace, tenants.ExchangeFilter{})
	if err != nil || len(exchanges) != 2 {
		t.Fatalf("%d exchanges (%v), want 2", len(exchanges), err)
	}
	if got, err := b.Exchange(t.Context(), b.workspace, first.ID); err != nil || got.Model != first.Model {
		t.Errorf("the second record changed the first: %+v (%v)", got, err)
	}
}

func TestTextThatADatabaseRefusesDoesNotLoseABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	odd := b.exchange(now())
	odd.Model, odd.Client, odd.Report = "a\x00b\xff", "\x00", []byte(`{"reason":"\u0000"}`)
	b.record(t, b.workspace, odd, b.exchange(now()))

	got, err := b.Exchange(t.Context(), b.workspace, odd.ID)
	if err != nil || got.Model != "ab\uFFFD" || got.Client != "" {
		t.Fatalf("model %q, client %q (%v)", got.Model, got.Client, err)
	}
}

func TestPagesHoldEveryExchangeOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := now()
	recorded := make([]tenants.Exchange, 7)
	for i := range recorded {
		recorded[i] = b.exchange(at.Add(time.Duration(i/2) * time.Second)) // pairs at the same time
	}
	b.record(t, b.workspace, recorded...)

	var seen []uuid.UUID
	filter := tenants.ExchangeFilter{Limit: 3}
	for pages := 1; ; pages++ {
		exchanges, next, err := b.Exchanges(t.Context(), b.workspace, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, exchange := range exchanges {
			seen = append(seen, exchange.ID)
		}
		if next == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
		filter.Cursor = next
	}
	if len(seen) != len(recorded) {
		t.Fatalf("saw %d exchanges, want %d", len(seen), len(recorded))
	}
	for i, id := range seen {
		if want := recorded[len(recorded)-1-i].ID; id != want {
			t.Errorf("exchange %d is %s, want %s: the newest first", i, id, want)
		}
	}
}

func TestFilterNarrowsExchanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	at := now()
	early, late, foreign := b.exchange(at.Add(-time.Hour)), b.exchange(at), b.exchange(at)
	late.Session = uuid.New()
	b.record(t, b.workspace, early, late)
	b.record(t, other, foreign)

	for name, test := range map[string]struct {
		filter tenants.ExchangeFilter
		want   []uuid.UUID
	}{
		"everything":        {tenants.ExchangeFilter{}, []uuid.UUID{late.ID, early.ID}},
		"one session":       {tenants.ExchangeFilter{Session: late.Session}, []uuid.UUID{late.ID}},
		"unknown session":   {tenants.ExchangeFilter{Session: uuid.New()}, nil},
		"from is included":  {tenants.ExchangeFilter{From: at}, []uuid.UUID{late.ID}},
		"to is not":         {tenants.ExchangeFilter{To: at}, []uuid.UUID{early.ID}},
		"a limit of 1":      {tenants.ExchangeFilter{Limit: 1}, []uuid.UUID{late.ID}},
		"a limit too large": {tenants.ExchangeFilter{Limit: 100_000}, []uuid.UUID{late.ID, early.ID}},
	} {
		exchanges, _, err := b.Exchanges(t.Context(), b.workspace, test.filter)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []uuid.UUID
		for _, exchange := range exchanges {
			got = append(got, exchange.ID)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if _, err := b.Exchange(t.Context(), b.workspace, foreign.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another workspace's exchange: %v, want ErrNotFound", err)
	}
}

func TestCursorOfNobodyIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, cursor := range []string{"%", "eA", "MTIz", "MTIzL2FiYw"} {
		var invalid tenants.Invalid
		_, _, err := b.Exchanges(t.Context(), b.workspace, tenants.ExchangeFilter{Cursor: cursor})
		if !errors.As(err, &invalid) || invalid.Field != "cursor" {
			t.Errorf("cursor %q: %v, want an Invalid", cursor, err)
		}
	}
}

func (b bundle) exchange(at time.Time) tenants.Exchange {
	return tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: at, APIKey: uuid.New(), Provider: tenants.ProviderAnthropic,
		Endpoint: "/v1/messages", Model: "claude", Client: "codex", Status: 200, Position: 12, Compression: "frozen",
		TokensBefore: 1000, TokensAfter: 400, Window: 200_000, Input: 10, CacheRead: 300, CacheWrite: 90, Output: 55,
		CostMicroUSD: 1234, NetMicroUSD: 99, Overhead: 1500 * time.Microsecond, TTFB: 20 * time.Millisecond,
		Duration: 3 * time.Second, Attempts: 1,
	}
}

func (b bundle) record(t *testing.T, workspace tenants.WorkspaceID, exchanges ...tenants.Exchange) {
	t.Helper()
	if err := b.RecordExchanges(t.Context(), workspace, exchanges); err != nil {
		t.Fatal(err)
	}
}
