package tenantsdb_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// How models answer is told by model, without our own time, and for one person only of their keys.
func TestAnswersAreAddedUpByModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := now().Add(-time.Hour)
	record := func(key uuid.UUID, model string, status int, took time.Duration) {
		t.Helper()
		one := tenants.Exchange{ID: uuid.Must(uuid.NewV7()), At: at}
		one.Request.APIKey, one.Answer.Provider, one.Request.Model, one.Answer.Status, one.Answer.Attempts, one.Request.Endpoint = key, "anthropic", model, status, 1, "/v1/messages"
		one.Times.Overhead, one.Times.TTFB, one.Times.Duration = time.Second, time.Second+took/2, time.Second+took
		if err := b.Exchanges.RecordExchanges(t.Context(), b.workspace, []tenants.Exchange{one}); err != nil {
			t.Fatal(err)
		}
	}
	key := uuid.New()
	for i := range 20 {
		record(key, "sonnet", http.StatusOK, time.Duration(i+1)*100*time.Millisecond)
	}
	record(key, "sonnet", http.StatusBadGateway, time.Hour)
	record(key, "opus", 499, time.Minute)
	filter := tenants.UsageFilter{From: at.Add(-time.Hour), To: at.Add(time.Hour)}
	all, parts, err := b.Usage.Answers(tenants.OwnWork(t.Context()), b.workspace, filter)
	if err != nil || len(parts) != 2 || all.Requests != 22 || all.Failed != 1 {
		t.Fatalf("%+v, %+v, %v", all, parts, err)
	}
	want := tenants.Answered{Provider: "anthropic", Model: "sonnet", Requests: 21, Failed: 1, First: 500 * time.Millisecond, P50: time.Second, P95: 1900 * time.Millisecond}
	if parts[0] != want || parts[1] != (tenants.Answered{Provider: "anthropic", Model: "opus", Requests: 1}) {
		t.Errorf("%+v", parts)
	}
	filter.Member = uuid.New()
	if all, parts, err := b.Usage.Answers(tenants.OwnWork(t.Context()), b.workspace, filter); err != nil || all.Requests != 0 || len(parts) != 0 {
		t.Errorf("of someone without keys: %+v, %+v, %v", all, parts, err)
	}
}
