package alerts_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

func TestSpendJumpIsToldOnceADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertSpendJump)
	spend := func(day int, micro int64) {
		b.now = time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC)
		b.record(t, func(exchange *tenants.Exchange) { exchange.Cost.CostMicroUSD = micro })
	}
	spend(10, 5_000_000)
	spend(14, 3_000_000)
	b.told(t, "a first day is no jump")
	spend(16, 30_000_000)
	b.told(t, "two days are too few to tell what is usual")
	spend(17, 13_999_999) // the 10th, 14th and 16th come to 38, of which the average is 12.67
	b.told(t, "about as much as usual")
	spend(17, 24_000_002)
	const title = "Today costs 300 % of a usual day"
	b.told(t, "three times as much", title)
	if got := b.deliveries(t)[0]; got.Path != "/spend" || !strings.HasPrefix(got.Text, "38.00 US dollars are spent today, in UTC. Of the last 7 days, those with requests cost 12.67 on average.") {
		t.Errorf("alert %+v", got)
	}
	spend(17, 50_000_000)
	b.told(t, "even more of the same day", title)
	spend(18, 80_000_000) // the 14th, 16th and 17th come to 121
	b.told(t, "twice as much the next day", title)
	b.settings(t, func(s *tenants.AlertSettings) { s.SpendPercent = 150 })
	b.told(t, "twice as much where that is too much", title, "Today costs 198 % of a usual day")
}

// Cents are not worth an alert.
func TestSpendJumpNeedsADollar(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertSpendJump)
	for day, micro := range []int64{10, 10, 10, 999_999} {
		b.now = time.Date(2026, 3, 14+day, 12, 0, 0, 0, time.UTC)
		b.record(t, func(exchange *tenants.Exchange) { exchange.Cost.CostMicroUSD = micro })
	}
	b.told(t, "99,999 times as much")
}

func TestSlowAnswersAreToldByModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertSlow)
	answers := func(model string, count, status int, took time.Duration) {
		for range count {
			b.record(t, func(exchange *tenants.Exchange) {
				exchange.Request.Model, exchange.Answer.Status, exchange.Times.Overhead, exchange.Times.Duration = model, status, time.Second, took+time.Second
			})
		}
	}
	answers("claude", 19, http.StatusOK, time.Hour)
	answers("claude", 20, http.StatusBadGateway, time.Hour)
	answers("gpt", 38, http.StatusOK, time.Second)
	answers("gpt", 1, http.StatusOK, 10*time.Minute)
	b.told(t, "19 answers, and one of 39")
	answers("gpt", 2, http.StatusOK, 2*time.Minute)
	const title = "Slow answers of gpt"
	b.told(t, "3 of 41", title)
	if got := b.deliveries(t)[0]; got.Path != "/overview#card-answers" || got.Text != "In the last 15 minutes, 5 % of its answers took 2m0s or longer, of 41 requests to Anthropic." {
		t.Errorf("alert %+v", got)
	}
	answers("claude", 1, http.StatusOK, time.Minute)
	b.told(t, "the 20th of another model", title, "Slow answers of claude")
	b.advance(15*time.Minute + time.Second)
	answers("mini", 20, http.StatusOK, 29*time.Second)
	b.settings(t, func(s *tenants.AlertSettings) { s.SlowSeconds = 30 })
	b.told(t, "fast enough", title, "Slow answers of claude")
	b.settings(t, func(s *tenants.AlertSettings) { s.SlowSeconds = 29 })
	b.told(t, "slow where that is slow", title, "Slow answers of claude", "Slow answers of mini")
}

func TestCompressionThatIsHeldUpIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhook(t, "https://example.com", tenants.AlertHeldUp)
	prompts := func(count int, compression string, projection int, report string) {
		for range count {
			b.record(t, func(exchange *tenants.Exchange) {
				exchange.Prompt.Compression, exchange.Prompt.Projection, exchange.Prompt.TokensBefore = compression, projection, 100_000
				if report != "" {
					exchange.Prompt.Report = []byte(report)
				}
			})
		}
	}
	prompts(100, "none", 0, "")
	prompts(15, "frozen", 1, "")
	prompts(4, "unreachable", 0, "")
	b.told(t, "19 long prompts")
	prompts(1, "frozen", 1, `{"events":[{"module":"ipc","type":"skipped","reason":"cost_gate"}]}`)
	b.told(t, "a fifth above the target")
	prompts(2, "unreachable", 1, "")
	const title = "Compression is held up"
	b.told(t, "6 of 22", title)
	if got := b.deliveries(t)[0]; got.Text != "In the last 15 minutes 6 of 22 long prompts were sent longer than the target allows. The overview names the reason." {
		t.Errorf("text %q", got.Text)
	}
	b.advance(time.Hour + time.Second)
	b.told(t, "calm", title)
	prompts(19, "frozen", 1, "")
	prompts(1, "none", 0, `{"events":[{"module":"ipc","type":"failed","reason":"archive originals: timeout"}]}`)
	b.settings(t, func(s *tenants.AlertSettings) { s.HeldPercent = 10 })
	b.told(t, "one failure", title)
	prompts(2, "none", 0, `{"events":[{"module":"ipc","type":"skipped","reason":"not_archived"}]}`)
	b.told(t, "originals that cannot be stored", title, title)
	if got := b.deliveries(t)[1]; !strings.HasSuffix(got.Text, "For 3 of them, compression failed or the originals could not be stored; nothing is shortened before they are.") {
		t.Errorf("text %q", got.Text)
	}
}
