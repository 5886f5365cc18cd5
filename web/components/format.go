package components

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
	"palimpsest/web/render"
)

// Count formats a number with thousands separators: "1,284".
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return sign + out.String()
}

// Short formats a number of tokens with three digits: "842", "34.6k", "4.12M", "1.31B".
func Short(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "−", -n
	}
	value, unit := float64(n), ""
	for _, next := range []string{"k", "M", "B", "T"} {
		if value < 999.5 {
			break
		}
		value, unit = value/1000, next
	}
	switch {
	case unit == "":
		return sign + strconv.FormatInt(n, 10)
	case value < 9.995:
		return sign + strconv.FormatFloat(value, 'f', 2, 64) + unit
	case value < 99.95:
		return sign + strconv.FormatFloat(value, 'f', 1, 64) + unit
	default:
		return sign + strconv.FormatFloat(value, 'f', 0, 64) + unit
	}
}

// Money formats millionths of a dollar: "$395.60", "−$0.42", and with four digits below a cent: "$0.0042";
// with six if four would be zero.
func Money(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "−", -micro
	}
	digits := 2
	switch {
	case micro > 0 && micro < 50:
		digits = 6
	case micro > 0 && micro < 10_000:
		digits = 4
	}
	return sign + fixed(micro, digits)
}

// Cents formats millionths of a dollar to the cent: "$395.60", and "<$0.01" for less than half a cent. A loss of
// less than half a cent has more digits.
func Cents(micro int64) string {
	if micro > -5000 && micro < 0 {
		return Money(micro)
	}
	if micro > 0 && micro < 5000 {
		return "<$0.01"
	}
	return fixed(micro, 2)
}

// Mils formats millionths of a dollar with four digits: "$0.0093", and "<$0.0001" for less than half of the
// last one.
func Mils(micro int64) string {
	if micro > -50 && micro < 0 {
		return "−<$0.0001"
	}
	if micro > 0 && micro < 50 {
		return "<$0.0001"
	}
	return fixed(micro, 4)
}

func fixed(micro int64, digits int) string {
	sign := ""
	if micro < 0 {
		sign, micro = "−", -micro
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(float64(micro)/1e6, 'f', digits, 64), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return sign + "$" + whole + "." + fraction
	}
	return sign + "$" + Count(n) + "." + fraction
}

// ExactMoney formats millionths of a dollar with all their digits.
func ExactMoney(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "−", -micro
	}
	return fmt.Sprintf("%s$%d.%06d", sign, micro/1e6, micro%1e6)
}

// Share writes part of whole in percent: "38.5%", "0.08%", or "–" if whole is 0.
func Share(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	percent := 100 * float64(part) / float64(whole)
	digits := 1
	if size := math.Abs(percent); size > 0 && size < 0.1 {
		digits = 2
	}
	return strings.Replace(strconv.FormatFloat(percent, 'f', digits, 64), "-", "−", 1) + "%"
}

// Millis formats a duration in milliseconds without its unit: "0.42", "6.1", "41".
func Millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	default:
		return Count(int64(math.Round(ms)))
	}
}

// Span formats a duration in words: "41 s", "3 min", "2 h 41 min", "3 days".
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "under a second"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		hours, minutes := int(d.Hours()), int(d.Minutes())%60
		if minutes == 0 {
			return fmt.Sprintf("%d h", hours)
		}
		return fmt.Sprintf("%d h %d min", hours, minutes)
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// Ago formats the time from a moment to now: "just now", "3 min ago", "2 days ago".
func Ago(at, now time.Time) string {
	passed := now.Sub(at)
	switch {
	case passed < 10*time.Second:
		return "just now"
	case passed < time.Hour:
		return Span(passed) + " ago"
	case passed < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(passed.Hours()))
	case passed < 48*time.Hour:
		return "yesterday"
	default:
		return Span(passed) + " ago"
	}
}

// Size formats a number of bytes: "812 bytes", "24.8 kB", "2.4 MB".
func Size(bytes int64) string {
	switch {
	case bytes == 1:
		return "1 byte"
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1e6:
		return strconv.FormatFloat(float64(bytes)/1e3, 'f', 1, 64) + " kB"
	default:
		return strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64) + " MB"
	}
}

// Limit formats a quota's limit: "60 requests/min".
func Limit(limit *tenants.Limit, quota tenants.Quota) string {
	amount := limit.Of(quota)
	switch {
	case limit.IsMoney:
		return Money(amount) + limit.Per
	case amount < 10_000:
		return Plural(amount, limit.Noun) + limit.Per
	default:
		return Short(amount) + " " + limit.Noun + "s" + limit.Per
	}
}

// Plural formats a count with its noun: "1 request", "64 requests".
func Plural(n int64, noun string) string { return Count(n) + " " + Noun(n, noun) }

// Noun returns the singular or plural of a noun whose count is set in other type beside it.
func Noun(n int64, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// ClientName returns the display name of a client.
func ClientName(client string) string {
	names := map[string]string{
		"claude-code": "Claude Code", "codex": "Codex", "cursor": "Cursor", "opencode": "opencode", "pi": "pi",
		"cline": "Cline", "roo": "Roo Code", "kilo": "Kilo Code", "continue": "Continue", "copilot": "GitHub Copilot CLI", "qwen-code": "Qwen Code", "droid": "Droid", "langchain": "LangChain",
		"ai-sdk": "AI SDK", "anthropic-sdk": "Anthropic SDK", "openai-sdk": "OpenAI SDK", "curl": "curl",
		"palimpsest": "Palimpsest itself", "other": "unknown client", "": "unknown client",
	}
	if name, known := names[client]; known {
		return name
	}
	return client
}

// Capitalize returns text with its first letter in upper case.
func Capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

type zoneKey struct{}

// WithZone sets the time zone in which moments and days are rendered; the default is UTC. Moments name the
// zone.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// Zone returns the reader's time zone, or UTC if unknown.
func Zone(ctx context.Context) *time.Location {
	if zone, is := ctx.Value(zoneKey{}).(*time.Location); is {
		return zone
	}
	return time.UTC
}

// MomentIn formats a moment in a time zone, with the zone: "21 Nov 2026, 11:01:07 CET".
func MomentIn(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("2 Jan 2006, 15:04:05 MST")
}

// DayIn formats a moment's day in a time zone: "21 Nov 2026".
func DayIn(at time.Time, zone *time.Location) string { return at.In(zone).Format("2 Jan 2006") }

// MissName returns a short name of a cost.Cause, the reason for a provider cache miss, or "–" without one.
func MissName(cause string) string {
	switch cost.Cause(cause) {
	case cost.None:
		return "–"
	case cost.TTLExpiry:
		return "expired"
	case cost.PrefixChangeOurs:
		return "our edit"
	case cost.PrefixChangeClient:
		return "client’s edit"
	case cost.ColdStart:
		return "first request"
	default:
		return "provider"
	}
}

// EndUser returns an end user's name: the application's own id if known, otherwise the beginning of its hash,
// or "" for "".
func EndUser(name, hash string) string {
	switch {
	case name != "":
		return render.Visible(name)
	case hash == "":
		return ""
	}
	return "end user " + hash[:min(len(hash), 8)]
}
