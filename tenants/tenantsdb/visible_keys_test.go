package tenantsdb_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// read is everything that a workspace's exchanges are read as, by what it is called.
func (b bundle) read(ctx context.Context, t *testing.T, filter tenants.UsageFilter) map[string]any {
	t.Helper()
	all := map[string]any{}
	keep := func(name string, err error, values ...any) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = values
	}
	totals, err := b.Usage.Totals(ctx, b.workspace, filter)
	keep("totals", err, totals)
	series, err := b.Usage.Series(ctx, b.workspace, filter, 12*time.Hour)
	keep("series", err, series)
	for _, by := range []tenants.Dimension{tenants.ByDay, tenants.ByClient, tenants.ByModel, tenants.ByKey, tenants.ByMember, tenants.ByProject} {
		rows, err := b.Usage.Usage(ctx, b.workspace, by, filter)
		keep("usage by "+string(by), err, rows)
	}
	balance, err := b.Usage.Balance(ctx, b.workspace, filter)
	keep("balance", err, balance)
	choices, err := b.Usage.UsageChoices(ctx, b.workspace, filter)
	keep("choices", err, choices)
	rejections, err := b.Usage.Rejections(ctx, b.workspace, filter.From)
	keep("rejections", err, rejections)
	failures, err := b.Usage.KeyFailures(ctx, b.workspace, filter.From)
	keep("failures", err, failures)
	obstacles, err := b.Usage.Obstacles(ctx, b.workspace, filter.From)
	keep("obstacles", err, obstacles)
	answered, parts, err := b.Usage.Answers(ctx, b.workspace, filter)
	keep("answers", err, answered, parts)
	listed, _, err := b.Exchanges.Exchanges(ctx, b.workspace, tenants.ExchangeFilter{})
	keep("exchanges", err, idsOf(listed))
	count, err := b.Exchanges.CountExchanges(ctx, b.workspace, 100)
	keep("count", err, count)
	clients, models, err := b.Exchanges.ExchangeNames(ctx, b.workspace)
	keep("names", err, clients, models)
	again, err := b.Exchanges.AnsweredAgain(ctx, b.workspace, filter.From)
	keep("answered again", err, again)
	keys, err := b.APIKeys.APIKeys(ctx, b.workspace)
	keep("keys", err, len(keys))
	return all
}

// S3: for a reader of some API keys, exchanges of others are nowhere: neither in lists nor in sums, before these are
// folded and after. Without keys there is nothing.
func TestReaderOfSomeKeysSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	provider := b.addProviderKey(t, b.workspace, "anthropic")
	at := now().Truncate(24 * time.Hour).Add(36 * time.Hour)
	filter := tenants.UsageFilter{From: at.Add(-12 * time.Hour), To: at.Add(24 * time.Hour)}
	record := func(key tenants.APIKey, client, model string, offset time.Duration) {
		for i, status := range []int{200, 200, 401, 503, 200} {
			exchange := b.exchange(at.Add(offset + time.Duration(i)*time.Minute))
			exchange.Request.APIKey, exchange.Request.Client, exchange.Request.Model = key.ID, client, model
			exchange.Request.Tags, exchange.Answer.ProviderKey, exchange.Answer.Status = tenants.Tags{"project": client}, provider.ID, status
			if status >= 400 {
				exchange.Answer.ErrorFrom = "provider"
			}
			exchange.Prompt.Report = []byte(`{"cache":"miss","events":[]}`)
			switch i {
			case 0:
				exchange.Answer.Attempts, exchange.Prompt.Report = 0, []byte(`{"cache":"hit"}`)
			case 1:
				exchange.Prompt.Compression, exchange.Prompt.Report = "unreachable", []byte(`{"events":[{"type":"target_unreachable","reason":"newest_turn"}]}`)
			case 4:
				exchange.At = exchange.At.Add(-10 * time.Minute) // what succeeds comes before what is refused
			}
			b.record(t, b.workspace, exchange)
		}
	}
	own, _ := b.addKey(t, b.workspace)
	record(own, "codex", "sonnet", 0)
	alone := b.read(tenants.OwnWork(t.Context()), t, filter)
	other, _ := b.addKey(t, b.workspace)
	record(other, "claude-code", "opus", 30*time.Second) // no answer after a rejection, which would clear it
	someone := tenants.WithVisible(t.Context(), tenants.Visible{Keys: []uuid.UUID{own.ID}})
	nobody := tenants.WithVisible(t.Context(), tenants.Visible{})
	for _, when := range []string{"not folded", "folded"} {
		everything, some, none := b.read(tenants.OwnWork(t.Context()), t, filter), b.read(someone, t, filter), b.read(nobody, t, filter)
		for part, want := range alone {
			if !reflect.DeepEqual(some[part], want) {
				t.Errorf("%s, %s: a reader of one key sees %+v, want %+v", when, part, some[part], want)
			}
			if reflect.DeepEqual(everything[part], want) {
				t.Errorf("%s, %s: with another key's exchanges all is as before: %+v", when, part, want)
			}
			if reflect.DeepEqual(none[part], want) {
				t.Errorf("%s, %s: a reader without keys sees %+v", when, part, none[part])
			}
		}
		if err := b.Usage.FoldSums(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
