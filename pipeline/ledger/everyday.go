package ledger

import (
	"strings"

	"palimpsest/pipeline/expression"
)

// shortUse finds "use tabs", "use single quotes".
var shortUse = expression.New(`^use (?:[a-z-]+ ){0,2}[a-z]+s(?: everywhere| only| please|, please)?[.!]?$`)

// pointing are words that refer to one thing of the current work.
var pointing = cuesOf("the", "this", "that", "these", "those", "it", "its", "first", "second", "last", "my", "your", "his", "their")

// shortNo finds "no emojis, please, anywhere".
var shortNo = expression.New(`^no (?:[a-z-]+ ){0,2}[a-z-]+(?:,? (?:please|anywhere|ever|at all|in [a-z ]+))+[.!]?$`)

// wantsForm finds "I want answers in British English": the required form of the reader's work.
var wantsForm = expression.New(`^(?:i|we)(?:'d| would)? (?:want|need|expect|like) (?:your |the |all )?` +
	`(?:answers?|repl(?:y|ies)|responses?|explanations?|comments?|commits?|commit messages?|messages?|names?|docs|documentation|tests?|functions?|code)` +
	` (?:in|to be|to use|to have|as|with|without|that|short|concise)\b`)

// isStated reports whether a sentence in lower case states a rule in a few everyday words.
func isStated(low string) bool {
	if len(low) > longestOrder {
		return false
	}
	low = withoutAsides(low)
	switch {
	case strings.HasPrefix(low, "use "):
		return shortUse.MatchString(low) && !pointing.in(low)
	case strings.HasPrefix(low, "no "):
		return shortNo.MatchString(low)
	case strings.HasPrefix(low, "i ") || strings.HasPrefix(low, "i'd ") || strings.HasPrefix(low, "we ") || strings.HasPrefix(low, "we'd "):
		return wantsForm.MatchString(low)
	}
	return false
}

// withoutQuotes leaves out quotes between backticks or double quotes if the sentence has other
// words too, because quoted words are not the writer's own.
func withoutQuotes(sentence string) string {
	for _, sign := range []string{"`", `"`} {
		if strings.Count(sentence, sign) < 2 || strings.Count(sentence, sign)%2 == 1 {
			continue
		}
		var rest strings.Builder
		for i, part := range strings.Split(sentence, sign) {
			if i%2 == 0 {
				rest.WriteString(part)
			} else {
				rest.WriteString("x")
			}
		}
		if len(strings.Fields(rest.String())) > 2 {
			sentence = rest.String()
		}
	}
	return sentence
}

// pastedLine matches a line that a person doesn't type: a log, a stack, a diff, output, code, a
// quote.
var pastedLine = expression.New(`^(?:>|\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|\$ |@@ |diff --git |[+-]{3} |\s*at [\w.$<>]+ ?\(|\s*File "|E   |={3,}|-> |→|\s*\d+[|│→]\s` +
	`|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|error|warning|panic|fatal)\]?:|.*[{}]$|.*\);$|//|/\*|\*/|#include|</?\w+[^>]*>$)`)

// review matches the beginning of a comment that a tool or another person wrote on code.
var review = expression.New(`(?m)^(?:\*\*[\w/.-]+\.\w+:\d+|#{1,4} (?:Pull request overview|Summary|Review|Findings)|Reviewed changes|Path: |In [\w/.-]+\.\w+:$|@[\w/.-]+\.\w+:\d+|Comment on lines? )`)

// withoutPasted leaves out the pasted parts of a person's message: quoted lines, logs, output,
// code, comments of a review.
func withoutPasted(text string) string {
	if at := review.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if bare := strings.TrimRight(line, " \r\n"); !isPasted(bare) && !isIndented(bare) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// isPasted reports whether a line is pasted. Most typed lines begin with a word and end without a
// bracket, so that a quick check is enough.
func isPasted(line string) bool {
	if line == "" {
		return false
	}
	if c := line[0] | 0x20; c >= 'a' && c <= 'z' && !strings.ContainsAny(line[len(line)-1:], "{};") && !strings.Contains(line[:min(len(line), 10)], ":") &&
		!startsWith(line, []string{"at ", "diff ", "File ", "E  "}) {
		return false
	}
	return pastedLine.MatchString(line)
}

// isIndented reports whether a line is indented like code, not like a part of a list.
func isIndented(line string) bool {
	if !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t") {
		return false
	}
	line = strings.TrimSpace(line)
	return line != "" && !strings.ContainsRune("-*•0123456789", rune(line[0]))
}
