package session

import (
	"fmt"
	"strconv"
	"strings"

	"palimpsest/pipeline/session"
	"palimpsest/web/components"
)

// certified summarizes how many of the critical items a compaction has kept.
func certified(certificate session.Certificate) string {
	archived := 0
	var lost []string
	for i := range certificate {
		kept := &certificate[i]
		archived += kept.Archived
		if kept.Lost() > 0 {
			lost = append(lost, fmt.Sprintf("%d of %d %s%s", kept.Lost(), kept.All, kept.What, messagesOf(kept.Missing)))
		}
	}
	switch {
	case len(lost) > 0:
		return "lost: " + strings.Join(lost, ", ")
	case archived > 0:
		return "nothing lost, " + components.Count(int64(archived)) + " available to recall"
	}
	return "nothing lost"
}

// messagesOf lists messages.
func messagesOf(messages []int) string {
	if len(messages) == 0 {
		return ""
	}
	names := make([]string, len(messages))
	for i, message := range messages {
		names[i] = "#" + strconv.Itoa(message)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// keptText describes how much of one kind a compaction has kept.
func keptText(kept *session.Kept) string {
	text := fmt.Sprintf("%d of %d in the prompt", kept.InPrompt, kept.All)
	if kept.Archived > 0 {
		text += fmt.Sprintf(", %d available to recall", kept.Archived)
	}
	if lost := kept.Lost(); lost > 0 {
		text += fmt.Sprintf(", %d missing%s", lost, messagesOf(kept.Missing))
	}
	return text
}

// kept returns the lines of a compaction's certificate with content.
func kept(certificate session.Certificate) []session.Kept {
	var lines []session.Kept
	for _, line := range certificate {
		if line.All > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}
