package pages_test

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// C11: predicted and realized of each epoch stand on the session's page.
func TestEpochsAreShownWithWhatTheyWereToSaveAndHaveSaved(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	page := person.Get("/sessions/" + overview.ID.String() + "?table=1")
	rows := page.Find(`[data-testid="decisions"] tbody tr`)
	if rows.Length() != overview.Sums.Epochs || overview.Sums.Epochs == 0 {
		t.Fatalf("%d rows for %d epochs", rows.Length(), overview.Sums.Epochs)
	}
	decisions, err := person.Sessions.Browser().Decisions(t.Context(), person.Workspace.ID, overview.ID)
	if err != nil {
		t.Fatal(err)
	}
	net, requests := int64(0), 0
	for _, decision := range decisions {
		net, requests = net+decision.Realized, requests+decision.Exchanges
	}
	if net != overview.Sums.NetMicroUSD || requests == 0 {
		t.Errorf("the epochs have saved %d µ$ over %d requests, the session %d", net, requests, overview.Sums.NetMicroUSD)
	}
	file := person.Get(page.Find(`a[download][href*="epochs.csv"]`).AttrOr("href", "none"))
	lines, err := csv.NewReader(strings.NewReader(file.HTML)).ReadAll()
	if err != nil || len(lines) != overview.Sums.Epochs+1 {
		t.Fatalf("%d lines for %d epochs: %v", len(lines), overview.Sums.Epochs, err)
	}
	for i, decision := range decisions {
		if decision.Worst == nil || lines[i+1][8] != strconv.FormatInt(*decision.Worst, 10) || *decision.Worst > decision.Predicted {
			t.Errorf("epoch %d comes to %v at worst in the file, and to %+v", i+1, lines[i+1][8], decision)
		} else if shown := rows.Eq(i).Find("td").Eq(7).Text(); !strings.Contains(shown, components.Mils(max(*decision.Worst, -*decision.Worst))) {
			t.Errorf("epoch %d shows %q for %d at worst", i+1, shown, *decision.Worst)
		}
		if line := lines[i+1]; line[0] != strconv.Itoa(decision.Number) || line[3] != strconv.Itoa(decision.Before) || line[7] != strconv.FormatInt(decision.Realized, 10) {
			t.Errorf("epoch %d is %v in the file and %+v", i+1, line, decision)
		}
	}
	if text := rows.First().Text(); !strings.Contains(text, "target reached") {
		t.Errorf("the first epoch says %q", text)
	}
	if head := page.Text(`[data-testid="requests"] thead`); !strings.Contains(head, "Cache missed") {
		t.Errorf("the table of requests has %q", head)
	}
}

func TestSessionThatNeedsAttentionSaysWhy(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	lane := laneOf(t, person, overview.ID)
	last := uuid.UUID{}
	record := func(projection int, net int64, change func(*tenants.Exchange)) {
		exchange := tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: time.Now(),
			Request: tenants.ExchangeRequest{Session: overview.ID, Lane: lane, APIKey: overview.APIKey},
			Prompt:  tenants.ExchangePrompt{TokensBefore: 9, TokensAfter: 9, Compression: "frozen", Projection: projection},
			Cost:    tenants.ExchangeCost{NetMicroUSD: net}, Answer: tenants.ExchangeAnswer{Status: 200},
		}
		if change != nil {
			change(&exchange)
		}
		last = exchange.ID
		if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, []tenants.Exchange{exchange}); err != nil {
			t.Fatal(err)
		}
	}
	if page := person.Get("/sessions/" + overview.ID.String()); page.Has(`[data-testid="notice-loss"]`) || page.Has(`[data-testid="notice-truncated"]`) {
		t.Errorf("the page warns of %q", page.Text(".callout"))
	}
	record(1, -9_000_000_000, func(e *tenants.Exchange) { e.Tokens.MissCause, e.Tokens.MissedTokens = "ttl_expiry", 30_000 })
	for range 50 {
		record(1, 0, nil)
	}
	record(1, 0, func(e *tenants.Exchange) {
		e.Prompt.Compression, e.Prompt.Report = "epoch", []byte(`{"warnings":["epochs=9","truncated"]}`)
		e.Request.Model, e.Answer.AnsweredBy = "claude-opus-4-8", "claude-sonnet-5-20260301"
	})
	owner := person.Database.Owner(t)
	if _, err := owner.Exec(t.Context(), "UPDATE sessions SET net_microusd = -4200000 WHERE id = $1", overview.ID); err != nil {
		t.Fatal(err)
	}
	saved := tenants.PipelineConfig{YAML: "ipc: {targetUtilization: 0.75, compressTo: 0.40, warnAfterEpochs: 1}", SavedBy: person.User.ID}
	if _, err := person.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 1, saved); err != nil {
		t.Fatal(err)
	}

	page := person.Get("/sessions/" + overview.ID.String() + "?table=1")
	if loss := page.TestID("notice-loss"); !strings.Contains(loss, "$4.20 more than it saved") {
		t.Errorf("of the loss it says %q", loss)
	}
	if truncated := page.TestID("notice-truncated"); !strings.Contains(truncated, "originals are in the archive") {
		t.Errorf("of the truncation it says %q", truncated)
	}
	if often := page.TestID("notice-epochs"); !strings.Contains(often, "compressed ") {
		t.Errorf("of the epochs it says %q", often)
	}
	if rows := page.Text(`[data-testid="requests"] tbody`); !strings.Contains(rows, "expired 30.0k") {
		t.Error("the table of requests does not say what was missed")
	} else if !strings.Contains(rows, "claude-sonnet-5-20260301") || page.TestID("answered-by") != ", answered by claude-sonnet-5-20260301" {
		t.Errorf("the model that answered is shown as %q", page.TestID("answered-by"))
	}
	if shown := person.Get("/requests/" + last.String()).TestID("answered-by"); shown != "claude-sonnet-5-20260301" {
		t.Errorf("the request shows %q as the model that answered", shown)
	}
}
