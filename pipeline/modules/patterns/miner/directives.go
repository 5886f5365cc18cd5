package miner

import (
	"slices"
	"strings"

	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/patterns"
)

const (
	// typedAtMost is how long a typed message may be, in bytes, for its orders to
	// count: longer ones are tasks and templates, whose sentences hold for them alone.
	typedAtMost = 1500

	fewWords = 3 // that say something, of a directive at least
)

// directives returns the standing orders that were typed, and what people say of how
// things are done here.
func directives(h *history) []Finding {
	var found []Finding
	for n := range h.turns {
		for _, directive := range h.fresh[n] {
			text := strings.Join(strings.Fields(directive.Text), " ")
			if len(h.typed(directive.Message)) > typedAtMost || !isOrder(text) {
				continue
			}
			finding := Finding{
				Kind: patterns.Directive, Text: text, Message: directive.Message, Sessions: 2, Messages: 2,
				When: patterns.When{Terms: patterns.Terms(text), Paths: pathsIn(text)},
			}
			switch {
			case saysHow(text):
				finding.Kind, finding.Sessions, finding.Messages = patterns.Convention, 1, 1
			case corrects(text):
				finding.Sessions = 1
			}
			found = append(found, finding)
		}
	}
	return found
}

// isOrder reports whether a directive can hold beyond the message it stands in.
func isOrder(text string) bool {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ":") || strings.ContainsAny(text, "{}|") || len(patterns.Words(text)) < fewWords {
		return false
	}
	low := " " + strings.ReplaceAll(strings.ToLower(text), "’", "'") + " "
	for _, words := range []string{
		" this time ", " for now ", " yet ", " until ", " first ", " today ", " again ", " just ", " i don't ", " we don't have ", " don't know ", " don't understand ",
		" don't think ", " don't see ", " this one ", " above ", " below ", " attached ", " following ", " i must ", " you must have ", " must be wrong ", " do you ",
		" i'll ", " i would ", " i'm ", " i appreciate ", " i still ",
	} {
		if strings.Contains(low, words) {
			return false
		}
	}
	return true
}

// saysHow reports whether a sentence says how things are done here: "we use pnpm, not
// npm", "in this repository, tests never sleep".
func saysHow(text string) bool {
	low := strings.ReplaceAll(strings.ToLower(text), "’", "'")
	start := startsWith(low, []string{
		"we use ", "we always ", "we never ", "we don't use ", "we do not use ", "we prefer ", "our convention", "our project ", "our team ", "our tests ", "our code ",
		"in this repo", "in this project", "in this codebase", "this repo uses ", "this project uses ", "this codebase uses ",
	})
	return start && (patterns.Forbids(low) || strings.Contains(low, " always ") || strings.Contains(low, " rather than ") || strings.Contains(low, " prefer "))
}

// corrects reports whether a directive takes back what the model has done.
func corrects(text string) bool {
	return startsWith(strings.ToLower(text), []string{"no, ", "no. ", "stop ", "i said ", "i told you ", "not like ", "not that "})
}

// commands returns the commands with which the lane tests and builds everything: one
// that succeeded, of each kind the one used most.
func commands(h *history) []Finding {
	type use struct {
		command, runner string
		count, message  int
	}
	var uses []use
	for _, calls := range h.calls {
		for i := range calls {
			call := &calls[i]
			command := call.Plain()
			if call.Runner() == "" || call.HasFailed || call.Result == nil || !isWhole(command) {
				continue
			}
			at := slices.IndexFunc(uses, func(u use) bool { return u.command == command })
			if at < 0 {
				uses = append(uses, use{command: command, runner: call.Runner(), message: call.Message})
				at = len(uses) - 1
			}
			uses[at].count++
		}
	}
	var found []Finding
	for _, one := range uses {
		if one.count < 2 || slices.ContainsFunc(uses, func(u use) bool { return u.runner == one.runner && u.count > one.count }) {
			continue
		}
		found = append(found, Finding{
			Kind: patterns.Convention, Text: "`" + one.command + "` is what earlier sessions ran with success.", Message: one.message, Sessions: 3, Messages: 3,
			When: patterns.When{Terms: commandTerms(one.runner)},
		})
	}
	return found
}

// isWhole reports whether a command is short and names no file, package or test of
// its own, so that it can hold for other sessions.
func isWhole(command string) bool {
	if len(command) > 60 || strings.ContainsAny(command, "\n;|&$<>'\"`") {
		return false
	}
	for i, word := range strings.Fields(command) {
		if i > 0 && strings.ContainsAny(word, "/.=:") && !strings.HasPrefix(word, "./...") && !strings.HasPrefix(word, "-") || word == "-run" || word == "-k" || word == "-t" {
			return false
		}
	}
	return true
}

// commandTerms returns the words of a request that a test or build tool is for.
func commandTerms(runner string) []string {
	terms := append(patterns.Words(runner), "run")
	slices.Sort(terms)
	return slices.Compact(terms)
}

// contradicted reports whether a person typed the contrary of a pattern behind a
// message: an order alike but for what it forbids, or a word against it.
func contradicted(h *history, text string, behind int) bool {
	own := patterns.Terms(text)
	for n := range h.turns {
		for _, directive := range h.fresh[n] {
			if directive.Message > behind && directive.Kind == ledger.Typed && patterns.Forbids(directive.Text) != patterns.Forbids(text) && shares(own, directive.Text) {
				return true
			}
		}
		for i := max(h.turns[n].From, behind+1); i < h.turns[n].To; i++ {
			typed := h.typed(i)
			if typed != "" && len(typed) <= typedAtMost && shares(own, typed) && has(typed, []string{
				"ignore that", "forget that", "that's wrong", "that is wrong", "no longer", "not anymore", "not any more", "that's outdated", "is outdated", "we changed that",
			}) {
				return true
			}
		}
	}
	return false
}

// shares reports whether a text holds half of some terms, two at least where there are.
func shares(terms []string, text string) bool {
	common := 0
	for _, word := range patterns.Words(text) {
		if slices.Contains(terms, word) {
			common++
		}
	}
	return common > 0 && 2*common >= len(terms) && common >= min(2, len(terms))
}

// has reports whether a sentence holds any of some words.
func has(sentence string, parts []string) bool {
	low := strings.ReplaceAll(strings.ToLower(sentence), "’", "'")
	for _, words := range parts {
		if strings.Contains(low, words) {
			return true
		}
	}
	return false
}

func startsWith(text string, starts []string) bool {
	for _, start := range starts {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}
