package manage_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// One definition, one range: what the API adds up is in whole half hours, as it is on
// the page, and it says so.
func TestUsageIsOfWholeHalfHoursAndOfAFilter(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	record := func(minute int, client string, change func(*tenants.Exchange)) {
		exchange := tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: noon.Add(time.Duration(minute) * time.Minute),
			Request: tenants.ExchangeRequest{APIKey: uuid.New(), Client: client, Model: "m"},
			Prompt:  tenants.ExchangePrompt{Compression: "none", TokensBefore: 100},
			Cost:    tenants.ExchangeCost{NetMicroUSD: 40, UnreadMicroUSD: 25, RewrittenMicroUSD: 5},
		}
		change(&exchange)
		if err := w.db.DB.Exchanges.RecordExchanges(t.Context(), w.workspace, []tenants.Exchange{exchange}); err != nil {
			t.Fatal(err)
		}
	}
	record(1, "codex", func(*tenants.Exchange) {})
	record(25, "pi", func(*tenants.Exchange) {})
	record(31, "codex", func(*tenants.Exchange) {})
	record(2, "palimpsest", func(e *tenants.Exchange) {
		e.Request.Class, e.Prompt.TokensBefore, e.Cost.NetMicroUSD, e.Cost.CostMicroUSD, e.Cost.UnreadMicroUSD, e.Cost.RewrittenMicroUSD = "summary", 0, -9, 9, 0, 0
	})

	type row struct {
		Label     string
		Requests  int
		Net       int `json:"net_micro_usd"`
		NotSent   int `json:"not_sent_micro_usd"`
		Unread    int `json:"unread_micro_usd"`
		Rewritten int `json:"rewritten_micro_usd"`
		Own       int `json:"own_micro_usd"`
	}
	ask := func(query string) (rows []row, from, to time.Time) {
		var usage struct {
			Data     []row
			From, To time.Time
		}
		answer := w.send(t, http.MethodGet, "/usage?from="+url.QueryEscape(noon.Add(10*time.Minute).Format(time.RFC3339))+
			"&to="+url.QueryEscape(noon.Add(20*time.Minute).Format(time.RFC3339))+query, "")
		answer.want(t, http.StatusOK)
		answer.decode(t, &usage)
		return usage.Data, usage.From, usage.To
	}
	rows, from, to := ask("")
	if !from.Equal(noon) || !to.Equal(noon.Add(30*time.Minute)) {
		t.Errorf("ten minutes became %s to %s", from, to)
	}
	if want := (row{"2026-03-01", 2, 71, 40, 50, 10, 9}); len(rows) != 1 || rows[0] != want {
		t.Errorf("rows %+v, want %+v", rows, want)
	}
	if got := rows[0]; got.Net != got.NotSent+got.Unread-got.Rewritten-got.Own {
		t.Errorf("the parts do not make the net: %+v", got)
	}
	if rows, _, _ := ask("&by=client&client=codex&model=m"); len(rows) != 1 || rows[0].Label != "codex" || rows[0].Requests != 1 || rows[0].Net != 40 {
		t.Errorf("of a client: %+v", rows)
	}
	if rows, _, _ := ask("&key=" + uuid.NewString()); len(rows) != 0 {
		t.Errorf("of a key that nobody has: %+v", rows)
	}
	w.send(t, http.MethodGet, "/usage?key=moon", "").want(t, http.StatusUnprocessableEntity)
}
