package tenantsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"palimpsest/tenants"
)

// S55: in a context without a decision about what its reader may see, the store answers with nothing.
func TestContextWithoutADecisionSeesNothing(t *testing.T) {
	t.Parallel()
	b, key := plant(t)
	provider := b.addProviderKey(t, b.workspace, "anthropic")
	refused, unreachable, again := b.exchange(now().Add(time.Hour)), b.exchange(day()), b.exchange(day())
	refused.Request.APIKey, refused.Answer.ProviderKey, refused.Answer.Status, refused.Answer.ErrorFrom = key.ID, provider.ID, 401, "provider"
	unreachable.Prompt.Compression = "unreachable"
	again.Answer.Attempts, again.Prompt.Report = 0, []byte(`{"cache": "hit"}`)
	b.record(t, b.workspace, refused, unreachable, again)
	whole, since := between(0, 48*time.Hour), day().Add(-time.Hour)

	for name, read := range map[string]func(ctx context.Context) (int, error){
		"API keys": func(ctx context.Context) (int, error) { return size(b.APIKeys.APIKeys(ctx, b.workspace)) },
		"choices": func(ctx context.Context) (int, error) {
			found, err := b.Usage.UsageChoices(ctx, b.workspace, whole)
			return len(found.APIKeys), err
		},
		"by model": func(ctx context.Context) (int, error) {
			return size(b.Usage.Usage(ctx, b.workspace, tenants.ByModel, whole))
		},
		"by member": func(ctx context.Context) (int, error) {
			return size(b.Usage.Usage(ctx, b.workspace, tenants.ByMember, whole))
		},
		"totals": func(ctx context.Context) (int, error) {
			found, err := b.Usage.Totals(ctx, b.workspace, whole)
			return int(found.Exchanges), err
		},
		"series": func(ctx context.Context) (sum int, err error) {
			points, err := b.Usage.Series(ctx, b.workspace, whole, 12*time.Hour)
			for _, point := range points {
				sum += int(point.Exchanges)
			}
			return sum, err
		},
		"answers": func(ctx context.Context) (int, error) {
			all, _, err := b.Usage.Answers(ctx, b.workspace, whole)
			return int(all.Requests), err
		},
		"rejections": func(ctx context.Context) (int, error) { return size(b.Usage.Rejections(ctx, b.workspace, since)) },
		"obstacles":  func(ctx context.Context) (int, error) { return size(b.Usage.Obstacles(ctx, b.workspace, since)) },
		"uses": func(ctx context.Context) (exchanges int, err error) {
			uses, err := b.ProviderKeys.ProviderKeyUses(ctx, b.workspace, since)
			for _, use := range uses {
				exchanges += int(use.Exchanges)
			}
			return exchanges, err
		},
		"exchanges": func(ctx context.Context) (int, error) {
			found, _, err := b.Exchanges.Exchanges(ctx, b.workspace, tenants.ExchangeFilter{})
			return len(found), err
		},
		"count": func(ctx context.Context) (int, error) { return b.Exchanges.CountExchanges(ctx, b.workspace, 100) },
		"names": func(ctx context.Context) (int, error) {
			clients, models, err := b.Exchanges.ExchangeNames(ctx, b.workspace)
			return len(clients) + len(models), err
		},
		"answered again": func(ctx context.Context) (int, error) {
			found, err := b.Exchanges.AnsweredAgain(ctx, b.workspace, since)
			return int(found), err
		},
		"exchange": func(ctx context.Context) (int, error) {
			_, err := b.Exchanges.Exchange(ctx, b.workspace, refused.ID)
			if errors.Is(err, tenants.ErrNotFound) {
				return 0, nil
			}
			return 1, err
		},
	} {
		if found, err := read(t.Context()); err != nil || found != 0 {
			t.Errorf("%s: %d seen, %v", name, found, err)
		}
		if found, err := read(tenants.OwnWork(t.Context())); err != nil || found == 0 {
			t.Errorf("%s: the program itself sees %d, %v", name, found, err)
		}
	}
}

func size[T any](found []T, err error) (int, error) { return len(found), err }
