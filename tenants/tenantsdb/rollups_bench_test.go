package tenantsdb_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
)

// recorded returns so many exchanges of an hour, as a busy workspace has them: of two
// clients, three models and four keys, some with a projection, an epoch or a miss.
func recorded(count int, at time.Time) []tenants.Exchange {
	keys := [4]uuid.UUID{{15: 1}, {15: 2}, {15: 3}, {15: 4}}
	exchanges := make([]tenants.Exchange, count)
	for i := range exchanges {
		exchanges[i] = tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: at.Add(time.Duration(i) * time.Hour / time.Duration(count)),
			Request: tenants.ExchangeRequest{
				Session: uuid.UUID{1, 15: byte(i % 16)}, Lane: uuid.UUID{2, 15: byte(i % 16)}, APIKey: keys[i%4],
				Endpoint: "/v1/messages", Stream: true, Client: []string{"claude-code", "codex"}[i%2],
				Model: []string{"claude-opus-4-6", "claude-sonnet-4-5", "claude-haiku-4-5"}[i%3], Class: "main",
				Position: 40 + i,
			},
			Answer: tenants.ExchangeAnswer{
				Provider: tenants.ProviderAnthropic, Status: 200, Attempts: 1, Answer: make([]byte, 32),
			},
			Prompt: tenants.ExchangePrompt{
				Compression: []string{"frozen", "frozen", "frozen", "epoch", "none"}[i%5], Projection: (i % 5) % 4,
				TokensBefore: 90_000, TokensAfter: 60_000, Window: 200_000, Levels: [4]int{9, 5, 3, 1},
				Report: []byte(`{"compression":"frozen","before":90000,"after":60000,"limit":200000,"modules":[{"name":"ipc","outcome":"applied"},{"name":"rehydrator","outcome":"unchanged"}]}`),
			},
			Tokens: tenants.ExchangeTokens{
				MissCause: []string{"", "", "", "", "", "", "ttl_expiry"}[i%7], Input: 2_000, CacheRead: 58_000, Output: 400,
			},
			Cost: tenants.ExchangeCost{CostMicroUSD: 30_000, NetMicroUSD: 4_000},
			Times: tenants.ExchangeTimes{
				Overhead: time.Duration(300+i) * time.Microsecond, TTFB: 800 * time.Millisecond, Duration: 9 * time.Second,
			},
		}
	}
	return exchanges
}

// walBytes returns how much the cluster of a database has written ahead.
func walBytes(b *testing.B, database *dbtest.Database) (bytes int64) {
	b.Helper()
	if err := database.Owner(b).QueryRow(b.Context(), "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

// BenchmarkRecordExchanges records 1,000 exchanges of a workspace in batches, with what
// keeps its rollups and without.
func BenchmarkRecordExchanges(b *testing.B) {
	const count = 1000
	for name, trigger := range map[string]string{"with rollups": "ENABLE", "without": "DISABLE"} {
		for batch, batched := range map[int]string{count: "at once", 50: "50 at a time", 1: "one by one"} {
			b.Run(name+"/"+batched, func(b *testing.B) {
				database := dbtest.New(b)
				_, workspace, err := database.DB.Accounts.SignUp(b.Context(), "ada@example.com", "hash", "workspace")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := database.Owner(b).Exec(b.Context(), "ALTER TABLE exchanges "+trigger+" TRIGGER rollups"); err != nil {
					b.Fatal(err)
				}
				at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
				written := walBytes(b, database)
				for b.Loop() {
					exchanges := recorded(count, at)
					for ; len(exchanges) > 0; exchanges = exchanges[batch:] {
						if err := database.DB.Exchanges.RecordExchanges(b.Context(), workspace.ID, exchanges[:batch]); err != nil {
							b.Fatal(err)
						}
					}
					at = at.Add(time.Hour)
				}
				b.ReportMetric(float64(walBytes(b, database)-written)/float64(b.N*count), "WAL-B/exchange")
			})
		}
	}
}
