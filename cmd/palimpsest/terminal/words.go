package terminal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// said is how long the status line mentions a compaction.
const said = 2 * time.Minute

// line formats a state in one line, with a second line after a recent compaction.
func (s State) line(now time.Time) string {
	if s.Session == "" {
		if s.Problem != "" {
			return "palimpsest: " + s.Problem
		}
		return "palimpsest: no request yet"
	}
	parts := []string{"context " + tokensText(int64(s.Context))}
	if s.Sent != s.Context {
		parts = append(parts, "sent "+tokensText(int64(s.Sent)))
	}
	parts = append(parts, plural(s.Main.Compactions, "compaction"), saved(s.Main.SavedMicroUSD))
	if s.Subagents.Threads > 0 {
		parts = append(parts, fmt.Sprintf("%s: %s, %s", plural(s.Subagents.Threads, "subagent"), plural(s.Subagents.Compactions, "compaction"), saved(s.Subagents.SavedMicroUSD)))
	}
	if left := s.WarmUntil.Sub(now); left > 0 {
		parts = append(parts, "warm "+clock(left))
	} else if !s.WarmUntil.IsZero() {
		parts = append(parts, "cold")
	}
	if s.Problem != "" {
		parts = append(parts, fmt.Sprintf("%s old: %s", clock(now.Sub(s.At)), s.Problem))
	}
	line := strings.Join(parts, " · ")
	if s.Last != nil && now.Sub(s.Last.At) < said {
		line += "\n" + s.Last.line(s.Session)
	}
	return line
}

// line describes a compaction and how to undo it.
func (c Compaction) line(session string) string {
	return fmt.Sprintf("%s → %s tokens, originals kept, undo: palimpsest sessions undo %s", tokensText(int64(c.Before)), tokensText(int64(c.After)), session)
}

// tokensText formats a number of tokens: 950, 31k, 1.2M.
func tokensText(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func saved(micro int64) string {
	if micro < 0 {
		return "cost " + money(-micro) + " more"
	}
	return "saved " + money(micro)
}

// money writes micro-dollars: $1.24, or $0.004 where cents are too coarse.
func money(micro int64) string {
	dollars := float64(micro) / 1e6
	if dollars > 0 && dollars < 0.1 {
		return fmt.Sprintf("$%.3f", dollars)
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// clock formats minutes and seconds: 3:10.
func clock(d time.Duration) string {
	seconds := int(math.Max(0, d.Seconds()))
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
