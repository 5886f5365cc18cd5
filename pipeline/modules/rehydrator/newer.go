package rehydrator

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/ledger"
)

// asksForOlder finds words that ask for an older version of something.
var asksForOlder = expression.New(`(?i)\b(?:earlier|first|original(?:ly)?|initial(?:ly)?|previous(?:ly)?|old(?:er)?|used to|at the (?:start|beginning)|before (?:that|this|the|your|my) (?:change|edit|fix))\b`)

// current returns messages without the calls, and their results, that a newer call of the request
// has outdated, and the newest call that outdates the document's own. from is the place of the
// first message. If onlyShown, calls that the prompt doesn't show can outdate only reads.
func (q *question) current(document *search.Document, messages []conversation.Message, from int, hidden part, onlyShown bool) (kept []conversation.Message, newer archive.Pointer, err error) {
	if onlyShown && asksForOlder.MatchString(q.typed) {
		return messages, newer, nil
	}
	outdated := map[string]bool{}
	for i := range messages {
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall {
				continue
			}
			by, err := q.newer(block, max(from+i+1, 0), hidden, onlyShown)
			if err != nil {
				return nil, newer, err
			}
			if by.To > 0 {
				outdated[block.ID] = true
			}
			if by.From > newer.From && isOwn(document, block) {
				newer = by
			}
		}
	}
	kept = slices.Clone(messages)
	for i := range kept {
		kept[i].Blocks = slices.DeleteFunc(slices.Clone(kept[i].Blocks), func(block conversation.Block) bool {
			return (block.Kind == conversation.ToolCall || block.Kind == conversation.ToolResult) && outdated[block.ID]
		})
	}
	return kept, newer, nil
}

// isOwn reports whether a call is the call of a document, and not a neighbor.
func isOwn(document *search.Document, block *conversation.Block) bool {
	return document.Kind == search.Call && document.Tool == block.Name &&
		!slices.ContainsFunc(document.Paths, func(path string) bool { return !strings.Contains(block.Text, path) })
}

// newer returns the newest call of the request, from a message on, that outdates a call.
func (q *question) newer(block *conversation.Block, from int, hidden part, onlyShown bool) (by archive.Pointer, err error) {
	older := ledger.ParseCall(block)
	words := telling(&older)
	for at := from; at < q.newest; at++ {
		if !q.exchange.Conversation.Digests[at].Flags.Has(conversation.HasCall) || !slices.ContainsFunc(words, func(w pipeline.Words) bool { return q.exchange.Conversation.Holds(at, w) }) {
			continue
		}
		message, err := q.exchange.Conversation.Message(at)
		if err != nil {
			return by, fmt.Errorf("newer call: %w", err)
		}
		for i := range message.Blocks {
			next := &message.Blocks[i]
			if next.Kind != conversation.ToolCall {
				continue
			}
			newer := ledger.ParseCall(next)
			if !supersedes(&newer, &older, next.Text == block.Text, onlyShown && hidden.messages[at]) {
				continue
			}
			to, err := q.ended(&newer, next.ID, at)
			if err != nil {
				return by, err
			}
			if to > 0 {
				by = archive.Pointer{From: at, To: to}
			}
		}
	}
	return by, nil
}

// telling returns words such that every message with a call of the same file or command has one of
// them.
func telling(call *ledger.Call) []pipeline.Words {
	var words []pipeline.Words
	add := func(text string) {
		if text != "" {
			words = append(words, pipeline.Quote(text))
		}
	}
	for _, path := range slices.Concat(call.Reads, call.Writes) {
		add(path[strings.LastIndexByte(path, '/')+1:])
	}
	longest := ""
	for word := range strings.FieldsFuncSeq(call.Argument, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'\<>&`, r) }) {
		if len(word) > len(longest) {
			longest = word
		}
	}
	add(longest)
	return words
}

// supersedes reports whether a newer call outdates an older one: the same call or command again, or
// another version of its file. isHidden limits it to reads.
func supersedes(newer, older *ledger.Call, isSame, isHidden bool) bool {
	if isSame && newer.Tool == older.Tool || older.Command != "" && older.Plain() != "" && newer.Plain() == older.Plain() {
		return !isHidden || len(older.Reads) > 0
	}
	changes, shows := slices.Concat(newer.Writes, newer.Deletes), newer.Reads
	if newer.Partial || newer.Command != "" && len(newer.Reads) > 1 {
		shows = nil
	}
	touches := func(paths []string, path string) bool {
		return slices.ContainsFunc(paths, func(other string) bool { return isSameFile(other, path) })
	}
	for _, path := range older.Reads {
		if touches(changes, path) || touches(shows, path) {
			return true
		}
	}
	for _, path := range older.Writes {
		if !isHidden && (touches(shows, path) || touches(newer.Deletes, path) || newer.Content != "" && touches(newer.Writes, path)) {
			return true
		}
	}
	return false
}

// isSameFile reports whether two paths name one file: a relative path with a folder matches an
// absolute one that ends in it.
func isSameFile(a, b string) bool {
	a, b = strings.TrimPrefix(a, "./"), strings.TrimPrefix(b, "./")
	if len(a) < len(b) {
		a, b = b, a
	}
	return a == b || strings.HasPrefix(a, "/") && !strings.HasPrefix(b, "/") && strings.Contains(b, "/") && strings.HasSuffix(a, "/"+b)
}

// ended returns the message after the result of a call of a message; 0 if the call failed or has no
// result.
func (q *question) ended(call *ledger.Call, id string, at int) (to int, err error) {
	for next := at + 1; next < q.newest && q.exchange.Conversation.Digests[next].Flags.Has(conversation.HasResult); next++ {
		message, err := q.exchange.Conversation.Message(next)
		if err != nil {
			return 0, fmt.Errorf("result of a newer call: %w", err)
		}
		for i := range message.Blocks {
			block := &message.Blocks[i]
			if block.Kind != conversation.ToolResult || block.ID != id {
				continue
			}
			if ledger.Failed(block) && call.Command == "" { // after failed tests, a command has a newer log
				return 0, nil
			}
			return next + 1, nil
		}
	}
	return 0, nil
}
