package components_test

import (
	"testing"
	"time"

	"palimpsest/pipeline/client"
	"palimpsest/web/components"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()

	for got, want := range map[string]string{
		components.Count(0):               "0",
		components.Count(999):             "999",
		components.Mils(12_345):           "$0.0123",
		components.Mils(-49):              "−<$0.0001",
		components.Count(1284):            "1,284",
		components.Count(-1234567):        "−1,234,567",
		components.Short(0):               "0",
		components.Short(999):             "999",
		components.Short(1000):            "1.00k",
		components.Short(34_600):          "34.6k",
		components.Short(999_600):         "1.00M",
		components.Short(4_120_000):       "4.12M",
		components.Short(772e6):           "772M",
		components.Short(-1_310e6):        "−1.31B",
		components.Money(395_600_000):     "$395.60",
		components.Money(1_395_600_000):   "$1,395.60",
		components.Money(-420_000):        "−$0.42",
		components.Money(4_200):           "$0.0042",
		components.Money(12):              "$0.000012",
		components.Money(0):               "$0.00",
		components.ExactMoney(-1_000_042): "−$1.000042",
		components.Share(385, 1000):       "38.5%",
		components.Share(14, 18_406):      "0.08%",
		components.Share(-1, 8):           "−12.5%",
		components.Share(1, 0):            "–",
		components.Size(1):                "1 byte",
		components.Size(812):              "812 bytes",
		components.Size(24_806):           "24.8 kB",
		components.Size(2_400_000):        "2.4 MB",
		components.Plural(1, "request"):   "1 request",
		components.Plural(64, "request"):  "64 requests",
		components.Capitalize("status"):   "Status",
		components.Capitalize("éclair"):   "Éclair",
		components.Capitalize("“always”"): "“always”",
		components.Capitalize(""):         "",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTimesAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 21, 10, 1, 0, 0, time.UTC)

	for got, want := range map[string]string{
		components.Millis(420 * time.Microsecond):     "0.42",
		components.Millis(6100 * time.Microsecond):    "6.1",
		components.Millis(41 * time.Millisecond):      "41",
		components.Millis(1234 * time.Millisecond):    "1,234",
		components.Span(41 * time.Second):             "41 s",
		components.Span(161 * time.Minute):            "2 h 41 min",
		components.Span(2 * time.Hour):                "2 h",
		components.Span(75 * time.Hour):               "3 days",
		components.Ago(now.Add(-3*time.Second), now):  "just now",
		components.Ago(now.Add(-30*time.Second), now): "30 s ago",
		components.Ago(now.Add(-3*time.Minute), now):  "3 min ago",
		components.Ago(now.Add(-5*time.Hour), now):    "5 h ago",
		components.Ago(now.Add(-30*time.Hour), now):   "yesterday",
		components.Ago(now.Add(-50*time.Hour), now):   "2 days ago",
		components.ClientName("claude-code"):          "Claude Code",
		components.ClientName("my-agent"):             "my-agent",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClientsAreNamedAsPeopleKnowThem(t *testing.T) {
	t.Parallel()
	for _, known := range []string{
		client.ClaudeCode, client.Codex, client.Cline, client.Roo, client.Kilo, client.Continue, client.Copilot, client.QwenCode, client.Droid, client.LangChain,
		client.Cursor, client.AISDK, client.AnthropicSDK, client.OpenAISDK, client.Other,
	} {
		if name := components.ClientName(known); name == known {
			t.Errorf("%s is shown as it is called inside", known)
		}
	}
}
