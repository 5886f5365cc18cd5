package sessiondb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// However many requests a lane has, its timeline is so many points, each the last of a
// stretch, and its newest events with their reports.
func TestCourseIsTheLastRequestOfEachStretch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c, other := f.conversationOf(6), f.conversationOf(3)
	c.commit(t, c.projection(1, 2))
	other.commit(t, other.projection(1, 2))
	const requests = 907
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var exchanges []tenants.Exchange
	for n := 1; n <= requests; n++ {
		exchange := tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: began.Add(time.Duration(n/2) * time.Second), // two at a time
			Request: tenants.ExchangeRequest{Session: c.session, Lane: c.lane, APIKey: f.scope.APIKey},
			Prompt: tenants.ExchangePrompt{
				Compression: "frozen", TokensBefore: n, TokensAfter: n / 2, Report: fmt.Appendf(nil, `{"n": %d}`, n),
			},
			Answer: tenants.ExchangeAnswer{Status: 200},
		}
		switch {
		case n%3 == 0:
			exchange.Prompt.Compression = "epoch"
		case n == requests-1:
			exchange.Request.Class = "after-compaction"
		case n == requests-5:
			exchange.Prompt.Compacted = true // by the provider itself
		}
		exchanges = append(exchanges, exchange)
		elsewhere := exchange
		elsewhere.ID, elsewhere.Request.Session, elsewhere.Request.Lane = uuid.Must(uuid.NewV7()), other.session, other.lane
		nothing := exchange
		nothing.ID, nothing.Prompt.TokensBefore = uuid.Must(uuid.NewV7()), 0 // never reached the pipeline
		exchanges = append(exchanges, elsewhere, nothing)
	}
	if err := f.db.DB.Exchanges.RecordExchanges(t.Context(), f.scope.Workspace, exchanges); err != nil {
		t.Fatal(err)
	}

	for _, points := range []int{1, 2, 7, 200, requests - 1, requests, 5000} {
		timeline, err := f.store.Browser().Timeline(t.Context(), f.scope.Workspace, c.session, c.lane, points)
		if err != nil {
			t.Fatal(err)
		}
		if len(timeline.Points) != min(points, requests) || timeline.Total != requests {
			t.Fatalf("%d points of %d for %d", len(timeline.Points), timeline.Total, points)
		}
		for i, point := range timeline.Points {
			want := i + 1
			if points < requests {
				want = (i + 1) * requests / points
			}
			if point.Number != want || point.Before != want || point.Report != nil {
				t.Fatalf("%d points: the %dth is request %d with %d tokens, want %d", points, i+1, point.Number, point.Before, want)
			}
		}
		if len(timeline.Events) == 0 || len(timeline.Events) > session.MaxEvents {
			t.Fatalf("%d events", len(timeline.Events))
		}
		newest := timeline.Events[len(timeline.Events)-1]
		if newest.Number != requests-1 || string(newest.Report) != fmt.Sprintf(`{"n": %d}`, requests-1) {
			t.Errorf("the newest event is %+v with %s", newest, newest.Report)
		}
		if !slices.ContainsFunc(timeline.Events, func(event session.TimelineEntry) bool { return event.Number == requests-5 }) {
			t.Error("a compaction by the provider is no event")
		}
		if before := timeline.Events[len(timeline.Events)-2]; before.Number != requests-requests%3 && before.Number != requests-3-requests%3 {
			t.Errorf("the event before is request %d", before.Number)
		}
	}
	if timeline, err := f.store.Browser().Timeline(t.Context(), f.scope.Workspace, other.session, c.lane, 10); err != nil || timeline.Total != 0 {
		t.Errorf("of another session's lane: %+v, %v", timeline, err)
	}
}
