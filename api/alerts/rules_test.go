package alerts_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/alerts"
	"palimpsest/tenants"
)

// told looks at the rules and checks what people have been alerted to since the test began.
func (b *bundle) told(t *testing.T, what string, want ...string) {
	t.Helper()
	b.pass(t)
	if got := b.titles(t); !slices.Equal(got, want) {
		t.Errorf("%s: alerts %q, want %q", what, got, want)
	}
}

func TestBudgetIsToldAtHalfAtFourFifthsAndInFull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertBudget)
	b.now = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	key := b.addKey(t, "laptop", tenants.Quota{DayMicroUSD: 10_000_000, MonthMicroUSD: 25_000_000})
	b.addKey(t, "without a budget", tenants.Quota{RequestsPerMinute: 1})
	revoked := b.addKey(t, "revoked", tenants.Quota{DayMicroUSD: 1})
	b.record(t, func(exchange *tenants.Exchange) { exchange.Request.APIKey, exchange.Cost.CostMicroUSD = revoked.ID, 1 })
	if err := b.APIKeys.RevokeAPIKey(t.Context(), revoked.Workspace, revoked.ID); err != nil {
		t.Fatal(err)
	}
	spend := func(micro int64) {
		b.record(t, func(exchange *tenants.Exchange) { exchange.Request.APIKey, exchange.Cost.CostMicroUSD = key.ID, micro })
	}
	half, fourFifths, full := "API key laptop has used 50 % of its daily budget", "API key laptop has used 80 % of its daily budget", "API key laptop has used 100 % of its daily budget"
	spend(4_999_999)
	b.told(t, "just below")
	spend(1)
	b.told(t, "half", half)
	b.told(t, "half, again", half)
	spend(3_000_000)
	b.told(t, "four fifths", half, fourFifths)
	spend(3_000_000)
	b.told(t, "more than all", half, fourFifths, full)
	if last := b.deliveries(t)[2]; !strings.HasPrefix(last.Text, "11.00 of 10.00 US dollars") || last.Path != "/keys" {
		t.Errorf("alert %+v", last)
	}
	b.advance(24 * time.Hour)
	b.told(t, "the next day", half, fourFifths, full)
	spend(9_000_000) // 20 of the month
	month := "API key laptop has used 80 % of its monthly budget"
	b.told(t, "the highest threshold of each", half, fourFifths, full, fourFifths, month)
}

// A member spends by the keys that they created. End users have no alert.
func TestBudgetsOfWorkspaceMembersAndProjectsAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertBudget)
	b.now = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	key := b.addKey(t, "laptop", tenants.Quota{})
	former := uuid.NewString()
	err := b.Data.SetBudgets(t.Context(), b.owner.Workspace.ID, []tenants.Budget{
		{Spender: tenants.Spender{Kind: tenants.WorkspaceSpends}, Quota: tenants.Quota{DayMicroUSD: 200, MonthMicroUSD: 1000}}, {Spender: tenants.Spender{Kind: tenants.ProjectSpends, ID: "search"}, Quota: tenants.Quota{MonthMicroUSD: 50}},
		{Spender: tenants.Spender{Kind: tenants.MemberSpends, ID: key.CreatedBy.String()}, Quota: tenants.Quota{DayMicroUSD: 100}}, {Spender: tenants.Spender{Kind: tenants.MemberSpends, ID: former}, Quota: tenants.Quota{DayMicroUSD: 1}},
		{Spender: tenants.Spender{Kind: tenants.EndUserSpends}, Quota: tenants.Quota{DayMicroUSD: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	spend := func(micro int64, tags tenants.Tags) {
		b.record(t, func(exchange *tenants.Exchange) {
			exchange.Request.APIKey, exchange.Cost.CostMicroUSD, exchange.Request.Tags, exchange.Request.EndUser = key.ID, micro, tags, strings.Repeat("a", 32)
		})
	}
	spend(49, nil)
	b.told(t, "just below")
	spend(1, nil)
	member := "Member " + b.owner.User.Email + " has used 50 % of its daily budget"
	b.told(t, "half of the member's", member)
	spend(50, tenants.Tags{tenants.ProjectTag: "search"})
	b.pass(t)
	titles := b.titles(t)[1:]
	slices.Sort(titles)
	want := []string{"Member " + b.owner.User.Email + " has used 100 % of its daily budget", "Project search has used 100 % of its monthly budget", "The workspace has used 50 % of its daily budget"}
	if !slices.Equal(titles, want) {
		t.Errorf("alerts %q, want %q", titles, want)
	}
	for _, delivery := range b.deliveries(t) {
		if delivery.Path != "/settings#budgets" {
			t.Errorf("%q leads to %s", delivery.Title, delivery.Path)
		}
	}
	b.told(t, "again", b.titles(t)...)
}

func TestRejectedProviderKeyIsToldOnceUntilItIsFine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertProviderKey)
	key := tenants.ProviderKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: b.owner.Workspace.ID, Provider: "anthropic", Name: "main",
		ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte{1}}, CreatedBy: b.owner.User.ID, CreatedAt: b.clock(),
	}
	if err := b.ProviderKeys.AddProviderKey(t.Context(), key.Workspace, key); err != nil {
		t.Fatal(err)
	}
	answer := func(status int) {
		b.advance(time.Minute)
		b.record(t, func(exchange *tenants.Exchange) {
			exchange.Answer.ProviderKey, exchange.Answer.Status = key.ID, status
			if status >= 400 {
				exchange.Answer.ErrorFrom = "provider"
			}
		})
	}
	const title = "Provider key main was rejected"
	answer(http.StatusTooManyRequests)
	b.told(t, "a limit")
	answer(http.StatusUnauthorized)
	b.told(t, "rejected", title)
	answer(http.StatusForbidden)
	b.told(t, "rejected again", title)
	answer(http.StatusOK)
	b.told(t, "fine", title)
	answer(http.StatusUnauthorized)
	b.told(t, "rejected within the hour", title)
	answer(http.StatusOK)
	b.advance(time.Hour)
	b.told(t, "fine for an hour", title)
	answer(http.StatusUnauthorized)
	b.told(t, "rejected after that", title, title)
	b.advance(24 * time.Hour)
	b.told(t, "still rejected a day later", title, title, title)
}

func TestErrorRateCountsFiveMinutesAndNeedsRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertErrorRate)
	several := func(count, status int, class string) {
		for range count {
			b.record(t, func(exchange *tenants.Exchange) { exchange.Answer.Status, exchange.Request.Class = status, class })
		}
	}
	several(19, http.StatusBadGateway, "main")
	several(30, http.StatusBadGateway, "summary")
	b.told(t, "19 requests, and calls of our own")
	b.advance(5*time.Minute + time.Second)
	several(15, http.StatusOK, "main")
	several(4, http.StatusInternalServerError, "main")
	several(1, 499, "main")
	b.told(t, "a fifth, and one whose client left")
	several(1, http.StatusInternalServerError, "main")
	b.told(t, "5 of 21")
	b.settings(t, func(s *tenants.AlertSettings) { s.ErrorPercent = 23 })
	b.told(t, "5 of 21 where 23 % are too many", "23 % of requests fail")
}

func TestLossOfCompactionIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertCompaction)
	lose := func(count int) {
		for range count {
			b.record(t, func(exchange *tenants.Exchange) { exchange.Cost.NetMicroUSD, exchange.Prompt.Projection = -10_000, 1 })
		}
	}
	lose(19)
	b.told(t, "too few to tell")
	lose(1)
	b.told(t, "a loss", "Compaction costs more than it saves")
	if text := b.deliveries(t)[0].Text; !strings.Contains(text, "it cost 0.20 US dollars more than it saved, over 20 compressed requests") {
		t.Errorf("text %q", text)
	}
}

func TestNewMembersAndKeysAreToldToChannelsThatWereThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := tenants.WithActor(t.Context(), tenants.Actor{User: b.owner.User.ID, Name: "ada@example.com"})
	note := func(change tenants.Change) {
		if err := b.Audit.Note(ctx, b.owner.Workspace.ID, change); err != nil {
			t.Fatal(err)
		}
	}
	b.now = time.Now().Add(-time.Hour)
	b.webhook(t, "https://example.com", tenants.AlertAccess)
	b.now = time.Now()
	note(tenants.Change{Action: tenants.MemberJoined, After: tenants.Fields{"email": "mira@example.com", "role": "viewer"}})
	note(tenants.Change{Action: tenants.KeyCreated, After: tenants.Fields{"name": "lap\u202etop\n"}})
	note(tenants.Change{Action: tenants.ProviderKeyAdded, After: tenants.Fields{"name": "main"}})
	note(tenants.Change{Action: tenants.KeyRevoked, Before: tenants.Fields{"name": "old"}})
	b.advance(time.Minute)
	b.webhook(t, "https://example.com", tenants.AlertAccess)
	want := []string{"New member: mira@example.com", "New API key: laptop", "New provider key: main"}
	b.told(t, "the older channel", want...)
	b.told(t, "again", want...)
	if text := b.deliveries(t)[1].Text; text != "ada@example.com added it." {
		t.Errorf("text %q", text)
	}
	b.advance(23 * time.Hour)
	b.told(t, "much later", want...)
}

func TestTroubleOfTheInstallationIsForOperators(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rules := []tenants.AlertRule{tenants.AlertInstallation}
	b.health = []tenants.Check{{Name: "Database", OK: true, Text: "answers"}, {Name: "Archive", Late: true, Text: "behind by 7 minutes", Means: "Search lacks the newest messages."}}
	admin := b.owner
	admin.User.Operator = false
	_, _, err := b.Add(t.Context(), admin, tenants.WantedAlertChannel{Kind: tenants.AlertWebhook, Name: "n", URL: "https://example.com", Rules: rules})
	if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "rules" {
		t.Fatalf("an admin who is no operator: %v", err)
	}
	b.webhook(t, "https://example.com", rules...)
	b.told(t, "an operator's channel", "Archive: behind by 7 minutes")
	if _, err := b.database.Owner(t).Exec(t.Context(), "DELETE FROM operators"); err != nil {
		t.Fatal(err)
	}
	b.advance(25 * time.Hour)
	b.told(t, "the person who set it is not an operator anymore", "Archive: behind by 7 minutes")
}

// What goes on is told again after a day, however often it is looked at in between.
func TestTroubleThatGoesOnIsToldOnceADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertInstallation)
	b.health = []tenants.Check{{Name: "Bucket", Text: "does not answer"}}
	const title = "Bucket: does not answer"
	for hours := range 12 {
		b.told(t, fmt.Sprint("after ", 2*hours, " hours"), title)
		b.advance(2 * time.Hour)
	}
	b.told(t, "after a day", title, title)
}

// A delivery that has ended gets no other job.
func TestDeliveryThatEndedGetsNoOtherJob(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	b.webhook(t, receiver.URL, tenants.AlertInstallation)
	delivery := b.raised(t)
	if _, err := b.database.Owner(t).Exec(t.Context(), "DELETE FROM jobs.river_job"); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, delivery.ID)
	b.advance(11 * time.Minute)
	b.pass(t)
	var waiting int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM jobs.river_job WHERE kind = 'alert_delivery'").Scan(&waiting); err != nil || waiting != 0 {
		t.Errorf("%d jobs, %v", waiting, err)
	}
}

// A log is kept for 40 days. What still waits then, because nothing ran meanwhile, stays until it ends.
func TestDeliveryThatWaitsIsNotForgotten(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	b.webhook(t, receiver.URL, tenants.AlertInstallation)
	delivery := b.raised(t)
	b.health = nil
	b.advance(41 * 24 * time.Hour)
	b.told(t, "while it waits", delivery.Title)
	b.deliver(t, delivery.ID)
	if len(receiver.requests()) != 1 {
		t.Errorf("%d requests", len(receiver.requests()))
	}
	b.told(t, "once it has ended")
}

// S28
func TestAlertIsRaisedOnceHoweverOftenTheRulesAreLookedAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertInstallation)
	b.webhook(t, "https://example.com", tenants.AlertInstallation)
	b.webhook(t, "https://example.com", tenants.AlertBudget)
	b.health = []tenants.Check{{Name: "Bucket", Text: "does not answer"}}
	other := alerts.New(b.config)
	var passes sync.WaitGroup
	for range 5 {
		for _, replica := range []*alerts.Service{b.Service, other} {
			passes.Go(func() {
				if err := replica.Pass(tenants.OwnWork(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
	}
	passes.Wait()
	b.told(t, "two channels, ten passes", "Bucket: does not answer", "Bucket: does not answer")
	var waiting int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM jobs.river_job WHERE kind = 'alert_delivery'").Scan(&waiting); err != nil || waiting != 2 {
		t.Errorf("%d jobs, %v", waiting, err)
	}
	// A delivery whose job was lost gets another one.
	if _, err := b.database.Owner(t).Exec(t.Context(), "DELETE FROM jobs.river_job"); err != nil {
		t.Fatal(err)
	}
	b.advance(11 * time.Minute)
	b.pass(t)
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM jobs.river_job WHERE kind = 'alert_delivery'").Scan(&waiting); err != nil || waiting != 2 {
		t.Errorf("%d jobs after they were lost, %v", waiting, err)
	}
}

func TestAlertsOfQuietHoursComeWhenTheyEnd(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	b.webhook(t, receiver.URL, tenants.AlertInstallation)
	b.now = time.Date(2026, 1, 15, 22, 30, 0, 0, time.UTC)
	b.settings(t, func(s *tenants.AlertSettings) { s.QuietFrom, s.QuietTo, s.TimeZone = 22*60, 7*60, "Europe/Berlin" })
	delivery, morning := b.raised(t), time.Date(2026, 1, 16, 6, 0, 0, 0, time.UTC)
	if !delivery.Until.Equal(morning.Add(alerts.GiveUpAfter)) {
		t.Errorf("it is tried until %s, want a day from %s on", delivery.Until, morning)
	}
	if again := b.deliver(t, delivery.ID); !again.Equal(morning) || len(receiver.requests()) > 0 {
		t.Errorf("again at %s, %d requests", again, len(receiver.requests()))
	}
	b.advance(morning.Sub(b.clock()))
	if again := b.deliver(t, delivery.ID); !again.IsZero() || len(receiver.requests()) != 1 {
		t.Errorf("again at %s, %d requests", again, len(receiver.requests()))
	}
}
