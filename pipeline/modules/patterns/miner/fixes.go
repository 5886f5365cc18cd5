package miner

import (
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/patterns"
)

// sayAfter is how many messages behind the success the model may still say what it was.
const sayAfter = 2

// fixes returns the errors that the lane has solved and whose cause the model has
// named. The error's own words are a tool's: they are looked for, never repeated.
func fixes(h *history) []Finding {
	var found []Finding
	for i := range h.ledger.Errors {
		e := &h.ledger.Errors[i]
		if e.Open() || e.Solved <= e.Message {
			continue
		}
		signature := patterns.Signature(e.Excerpt)
		if signature == "" {
			continue
		}
		text, at := h.explained(e)
		if text == "" {
			text, at = h.prepared(e)
		}
		if text == "" || h.echoes(text, at) {
			continue
		}
		found = append(found, Finding{
			Kind: patterns.Fix, Text: text, Message: at, Sessions: 1, Messages: 1,
			When: patterns.When{Signatures: []string{signature}},
		})
	}
	return found
}

// causes and remedies are the words of sentences that name what was wrong and what
// mended it.
var (
	causes = []string{
		"the issue was", "the issue is", "the problem was", "the problem is", "the bug was", "the bug is", "the cause was", "the cause is",
		"root cause", "the real issue", "the actual issue", "the actual problem", "the real problem", "turned out", "fails because", "failed because", "was failing because",
	}
	remedies = []string{
		"the fix is", "the fix was", "the solution is", "the solution was", "fixed by", "fixed it by", "to fix this", "the right fix is", "solved by",
		"needs to be", "must be", "has to be",
	}
)

// explained returns what the model said of an error between its failure and shortly
// after the success: the cause, and the remedy where it names one. A change of a file
// must lie between.
func (h *history) explained(e *ledger.Error) (text string, at int) {
	if !h.changed(e.Message, e.Solved) {
		return "", 0
	}
	cause, remedy := "", ""
	for i := e.Message; i <= e.Solved+sayAfter && i < len(h.messages); i++ {
		if h.messages[i].Role != conversation.Assistant || h.failedSince(e, i) {
			continue
		}
		for j := range h.messages[i].Blocks {
			block := &h.messages[i].Blocks[j]
			if block.Kind != conversation.Text {
				continue
			}
			for sentence := range ledger.Sentences(block.Text) {
				switch {
				case has(sentence, causes) && isPlain(sentence):
					cause, remedy, at = sentence, "", i
				case cause != "" && has(sentence, remedies) && isPlain(sentence):
					remedy = sentence
				}
			}
		}
	}
	if cause == "" || remedy == "" && !has(cause, remedies) {
		return "", 0
	}
	return strings.TrimSpace(cause + " " + remedy), at
}

// failedSince reports whether something else failed between an error and a message:
// then what is said there is more likely about that.
func (h *history) failedSince(e *ledger.Error, message int) bool {
	for i := range h.ledger.Errors {
		if other := &h.ledger.Errors[i]; e.Message < other.Message && other.Message < message {
			return true
		}
	}
	return false
}

// changed reports whether a call changed a file between two messages.
func (h *history) changed(from, to int) bool {
	for _, file := range h.ledger.Files {
		if from <= file.Modified && file.Modified <= to {
			return true
		}
	}
	for _, calls := range h.calls {
		for i := range calls {
			call := &calls[i]
			if from <= call.Message && call.Message <= to && !call.HasFailed && len(call.Writes)+len(call.Deletes) > 0 {
				return true
			}
		}
	}
	return false
}

// preparations begin the commands after which others succeed.
var preparations = []string{
	"npm install", "npm ci", "npm i ", "pnpm install", "pnpm add", "yarn install", "yarn add", "bun install", "pip install", "pip3 install",
	"uv sync", "uv pip install", "poetry install", "python -m pip install", "python3 -m pip install", "apt-get install", "apt install", "brew install",
	"go mod download", "go mod tidy", "go generate", "bundle install", "composer install", "docker compose up", "make generate", "git submodule update",
	"createdb", "npx prisma generate",
}

// prepared returns what must be run before a command that failed once: the one
// preparation that lies between its failure and its success.
func (h *history) prepared(e *ledger.Error) (text string, at int) {
	failing, first := h.commandAt(e.Message), ""
	for _, calls := range h.calls {
		for i := range calls {
			call := &calls[i]
			if call.Message <= e.Message || call.Message >= e.Solved || call.HasFailed || call.Command == "" {
				continue
			}
			if plain := call.Plain(); startsWith(plain, preparations) {
				if first != "" && first != plain {
					return "", 0
				}
				first, at = plain, call.Message
			}
		}
	}
	if first == "" || failing == "" || h.commandAt(e.Solved) != failing || h.changed(e.Message, e.Solved) {
		return "", 0
	}
	if strings.ContainsAny(first+failing, "\n;|&$<>") || len(first) > 100 || len(failing) > 80 {
		return "", 0
	}
	return "`" + failing + "` fails until `" + first + "` was run.", at
}

// commandAt returns the command that a message ran; empty where it ran none or several.
func (h *history) commandAt(message int) string {
	command := ""
	for _, calls := range h.calls {
		for i := range calls {
			if calls[i].Message == message && calls[i].Command != "" {
				if command != "" {
					return ""
				}
				command = calls[i].Plain()
			}
		}
	}
	return command
}

// isPlain reports whether a sentence stands for itself: it is of a useful length,
// sure of itself, and no question, heading or line of code.
func isPlain(sentence string) bool {
	length := utf8.RuneCountInString(sentence)
	if length < 30 || length > 220 || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, ":") || strings.ContainsAny(sentence, "|{}") {
		return false
	}
	return !has(sentence, []string{
		"might", "maybe", "perhaps", "probably", "could be", "not sure", "let me", "let's", "whether", "i think", "seems", "likely", "i need to",
		"possible", "if the", "see if", "find the", "look at", "understand", "figure out", "now i", "i'll", "i will", "investigate", "as above", "wait",
	})
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
