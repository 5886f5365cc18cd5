package billing

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// meterStore notes which events are tried and sent.
type meterStore struct {
	Store

	unsent      []MeterEvent
	tried, sent []MeterEvent
	sum         int64 // of the events that Stripe has for the hour
}

func (s *meterStore) CutEvents(context.Context, tenants.WorkspaceID) error { return nil }
func (s *meterStore) Unsent(context.Context, tenants.WorkspaceID) ([]MeterEvent, error) {
	return s.unsent, nil
}

func (s *meterStore) Trying(_ context.Context, _ tenants.WorkspaceID, event MeterEvent) error {
	s.tried = append(s.tried, event)
	return nil
}

func (s *meterStore) Sent(_ context.Context, _ tenants.WorkspaceID, event uuid.UUID, _ time.Time) error {
	s.sent = append(s.sent, MeterEvent{ID: event})
	return nil
}

func (s *meterStore) SentAt(context.Context, tenants.WorkspaceID, string, time.Time) (int64, error) {
	return s.sum, nil
}

// An event is sent as it is while Stripe knows its identifier, compared after that, and billed in the
// hour of now once Stripe takes its own hour no longer.
func TestEventIsSentByItsAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 34, 56, 0, time.UTC)
	thisHour := now.Truncate(time.Hour)
	for name, c := range map[string]struct {
		age, triedAgo time.Duration // triedAgo is 0 if it was never tried
		theirs        int64         // 3 are ours, and the event has 5
		posts         int
		tried         []time.Time // the hour that is noted
		sent          bool
	}{
		"new":                                  {age: time.Hour, posts: 1, tried: []time.Time{now.Add(-time.Hour)}, sent: true},
		"as old as Stripe takes it":            {age: acceptedFor, posts: 1, tried: []time.Time{now.Add(-acceptedFor)}, sent: true},
		"too old":                              {age: acceptedFor + 1, posts: 1, tried: []time.Time{thisHour}, sent: true},
		"tried, still known":                   {age: 30 * time.Hour, triedAgo: knownFor, posts: 1, sent: true},
		"forgotten, and has arrived":           {age: 30 * time.Hour, triedAgo: knownFor + 1, theirs: 8, sent: true},
		"forgotten, and has not arrived":       {age: 30 * time.Hour, triedAgo: knownFor + 1, theirs: 3, posts: 1, tried: []time.Time{now.Add(-30 * time.Hour)}, sent: true},
		"forgotten, and a part has":            {age: 30 * time.Hour, triedAgo: knownFor + 1, theirs: 5},
		"forgotten, and more has":              {age: 30 * time.Hour, triedAgo: knownFor + 1, theirs: 13},
		"too old, and has arrived":             {age: acceptedFor + 1, triedAgo: time.Minute, theirs: 8, sent: true},
		"too old, tried, and has not arrived":  {age: acceptedFor + 1, triedAgo: time.Minute, theirs: 3, posts: 1, tried: []time.Time{thisHour}, sent: true},
		"too old, tried, and nobody can tell":  {age: acceptedFor + 1, triedAgo: time.Minute, theirs: 4},
		"tried a moment ago, and still recent": {age: time.Hour, triedAgo: time.Second, theirs: 100, posts: 1, sent: true},
	} {
		stripe, seen := asking(t, map[string][]string{"/v1/billing/meters/mtr_1/event_summaries": {fmt.Sprintf(`{"id":"part","aggregated_value":%d}`, c.theirs)}})
		store := &meterStore{sum: 3}
		service := &Service{deps: Deps{Store: store, Now: func() time.Time { return now }}, stripe: stripe}
		event := MeterEvent{ID: uuid.New(), Customer: "cus_1", At: now.Add(-c.age), Exchanges: 5}
		if c.triedAgo > 0 {
			event.TriedAt = now.Add(-c.triedAgo)
		}
		err := service.send(t.Context(), tenants.NewWorkspaceID(), event)
		if (err == nil) != c.sent || len(store.sent) != map[bool]int{true: 1}[c.sent] {
			t.Errorf("%s: %v, sent %v", name, err, store.sent)
		}
		posts := 0
		for _, call := range seen.asked {
			if strings.HasPrefix(call, "POST ") {
				posts++
			}
		}
		if posts != c.posts {
			t.Errorf("%s: %d events are posted, want %d", name, posts, c.posts)
		}
		var hours []time.Time
		for _, one := range store.tried {
			hours = append(hours, one.At)
			if !one.TriedAt.Equal(now) {
				t.Errorf("%s: tried at %s", name, one.TriedAt)
			}
		}
		if !slices.Equal(hours, c.tried) {
			t.Errorf("%s: noted for %v, want %v", name, hours, c.tried)
		}
	}
}

// passStore has many workspaces that are due, in parts.
type passStore struct {
	Store

	parts  [][]tenants.WorkspaceID
	looked map[tenants.WorkspaceID]int
}

func (s *passStore) Due(_ context.Context, _ time.Time, limit int) ([]tenants.WorkspaceID, error) {
	if len(s.parts) == 0 {
		return nil, nil
	}
	part := s.parts[0][:min(limit, len(s.parts[0]))]
	s.parts = s.parts[1:]
	return part, nil
}

func (s *passStore) LookAt(context.Context, tenants.WorkspaceID) error { return nil }
func (s *passStore) LookAgain(_ context.Context, workspace tenants.WorkspaceID, _ time.Time) error {
	s.looked[workspace]++
	return nil
}
func (s *passStore) Account(context.Context, tenants.Tenant) (Account, error) { return Account{}, nil }
func (s *passStore) Used(context.Context, tenants.WorkspaceID, time.Time, time.Time) (int64, error) {
	return 0, nil
}

// A pass looks at every workspace that is due, also at those that do not fit into one query.
func TestPassLooksAtAllThatIsDue(t *testing.T) {
	t.Parallel()
	first, second := make([]tenants.WorkspaceID, dueAtOnce), make([]tenants.WorkspaceID, 2)
	for _, part := range [][]tenants.WorkspaceID{first, second} {
		for i := range part {
			part[i] = tenants.NewWorkspaceID()
		}
	}
	store := &passStore{parts: [][]tenants.WorkspaceID{first, second}, looked: map[tenants.WorkspaceID]int{}}
	service := &Service{config: Config{APIKey: "sk_test"}, deps: Deps{Store: store, Now: time.Now}}
	if err := service.Pass(t.Context()); err != nil || len(store.looked) != dueAtOnce+2 {
		t.Errorf("%d of %d were looked at, %v", len(store.looked), dueAtOnce+2, err)
	}
}

// Of three events the first that fails ends the report, so that no later one is in doubt as well.
func TestReportEndsAtTheFirstEventThatFails(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for at := range 4 {
		stripe, _ := asking(t, map[string][]string{"/v1/billing/meters/mtr_1/event_summaries": {`{"id":"part","aggregated_value":4}`}})
		store := &meterStore{sum: 3}
		for i := range 3 {
			event := MeterEvent{ID: uuid.New(), Customer: "cus_1", At: now.Add(-time.Hour), Exchanges: 5}
			if i == at { // nobody can tell whether Stripe has it
				event.TriedAt = now.Add(-knownFor - 1)
			}
			store.unsent = append(store.unsent, event)
		}
		service := &Service{deps: Deps{Store: store, Now: func() time.Time { return now }}, stripe: stripe}
		err := service.report(t.Context(), tenants.NewWorkspaceID())
		if (err == nil) != (at == 3) || len(store.sent) != at {
			t.Errorf("event %d fails: %v, %d are sent", at, err, len(store.sent))
		}
		if at < 3 && (err == nil || !strings.Contains(err.Error(), store.unsent[at].ID.String())) {
			t.Errorf("%v does not name event %d", err, at)
		}
	}
}

// An offer shows how many exchanges it includes and the price of the next ones.
func TestPlanOfferShowsItsPrices(t *testing.T) {
	t.Parallel()
	const free, cheap, cheaper = `{"up_to":1000,"unit_amount_decimal":"0"}`, `{"up_to":5000,"unit_amount_decimal":"0.2"}`, `{"unit_amount_decimal":"0.1"}`
	for name, c := range map[string]struct {
		usage    string // members of the price
		included int64
		beyond   string
	}{
		"no tiers":         {`"unit_amount_decimal":"1.5"`, 0, "0.015 USD"},
		"free for ever":    {`"unit_amount_decimal":"0"`, 0, ""},
		"some are free":    {`"tiers":[` + free + `,` + cheap + `]`, 1000, "0.002 USD"},
		"two prices":       {`"tiers":[` + free + `,` + cheap + `,` + cheaper + `]`, 1000, "0.002 USD"},
		"two free tiers":   {`"tiers":[` + free + `,{"up_to":2000,"unit_amount_decimal":"0"},` + cheaper + `]`, 2000, "0.001 USD"},
		"none is free":     {`"tiers":[` + cheap + `,` + cheaper + `]`, 0, "0.002 USD"},
		"a fee, then free": {`"tiers":[{"up_to":1000,"unit_amount_decimal":"0","flat_amount":500},` + cheaper + `]`, 0, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/usage") {
				fmt.Fprintf(w, `{"id":"usage","currency":"usd",%s}`, c.usage)
				return
			}
			fmt.Fprint(w, `{"id":"plan","currency":"usd","unit_amount":2000,"recurring":{"interval":"month","interval_count":3}}`)
		}))
		t.Cleanup(server.Close)
		stripe := newGateway(Config{APIKey: "sk_test", APIBase: server.URL, Catalog: Catalog{Pro: Prices{Plan: []string{"plan", "older"}, Usage: "usage"}}})
		want := Offer{Plan: Pro, Price: "20.00 USD each 3 months", Included: c.included, Beyond: c.beyond}
		if got, err := stripe.offer(t.Context(), Pro); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}
