package conversation_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// W50: what clients renew in a text that they send again.
func TestTimesAndEnvironmentsAreNoPartOfWhatLasts(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"You are helpful. Current time: 12:10:17. Answer briefly.", "You are helpful. Current time: 13:48:02. Answer briefly."},
		{"Today's date: 2026-11-28\nFix it", "Today's date: 2026-11-29\nFix it"},
		{"Today's date is Sunday, November 29, 2026 (formatted). Go", "Today's date is Monday, November 30, 2026 (formatted). Go"},
		{"Today is Sunday, 29 November 2026.", "Today is Monday, 30 November 2026."},
		{"The current date and time is 2026-11-29T07:06:54.547+00:00.", "The current date and time is 2026-12-01T17:06:54.001+00:00."},
		{"Current date: 11/29/2026, 7:06:54 AM (Europe/Berlin, UTC+1:00)", "Current date: 12/1/2026, 11:16:04 PM (Europe/Berlin, UTC+1:00)"},
		{"[Time: 12:01] go on", "[Time: 12:02] go on"},
		{"current_timestamp=1764400000 go", "current_timestamp=1764400999 go"},
		{"Current datetime: Sun Nov 29 2026 15:37:52 UTC", "Current datetime: Mon Nov 30 2026 15:37:52 UTC"},
		{"<current_datetime>2026-11-29T07:06:54Z</current_datetime>\n\ngo", "<current_datetime>2026-11-29T07:09:54Z</current_datetime>\n\ngo"},
		{"<environment_context>\n<cwd>/a</cwd></environment_context>go", "<environment_context>\n<cwd>/b</cwd></environment_context>go"},
		{`<environment kind="x">3 tabs</environment>go`, `<environment kind="y">2 tabs</environment>go`},
		{"go<system-reminder>a</system-reminder>", "go"},
	} {
		if one, other := conversation.Lasting(pair[0]), conversation.Lasting(pair[1]); strings.TrimSpace(one) != strings.TrimSpace(other) {
			t.Errorf("%q and %q last as\n%q and\n%q", pair[0], pair[1], one, other)
		}
	}
}

func TestWhatAPersonWritesLasts(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"What happened on 2024-01-05?", "What happened on 2024-01-06?"},
		{"Show invoices with date 2024-01-05", "Show invoices with date 2024-02-05"},
		{"Wake me at 7:30", "Wake me at 8:30"},
		{"Set the timeout to 30", "Set the timeout to 40"},
		{"It is 12 files", "It is 13 files"},
		{"Explain <code>a</code>", "Explain <code>b</code>"},
		{"<context>report of A</context> summarize", "<context>report of B</context> summarize"},
		{"the time step is 20", "the time step is 21"},
		{"<date>2024 is not closed", "<date>2025 is not closed"},
		{"Use version 1.2.34 now", "Use version 1.2.35 now"},
	} {
		if one, other := conversation.Lasting(pair[0]), conversation.Lasting(pair[1]); one == other {
			t.Errorf("%q and %q both last as %q", pair[0], pair[1], one)
		}
	}
}

func TestWhatLastsStaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "<", "<time", "<time>", "</time>", "<time></time", "a <time>1</time> b <time>2</time>", strings.Repeat("<env>", 2000), "Current time: " + strings.Repeat("12:00 ", 5000)} {
		once := conversation.Lasting(text)
		if again := conversation.Lasting(once); again != once {
			t.Errorf("%.60q lasts as %.60q, then as %.60q", text, once, again)
		}
	}
}
