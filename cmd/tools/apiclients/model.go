package apiclients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"palimpsest/api/upstream/providerdouble"
)

// The messages between the model and the user.
const (
	errandMark  = "ERRAND-7731" // in a subagent's task
	summaryMark = "SUMMARY-4409"
	recordMark  = "[AUTO CONTEXT COMPRESSION]" // in the record of turns that the proxy folded
	noteFile    = "note.txt"
	noteWord    = "marzipan"
	finalWord   = "PERFECTLY-DONE"
)

// model plays the language model in one trial: for a client's main agent, its subagents, and its requests
// on the side.
type model struct {
	client Client

	// play answers the main agent; round counts its requests from 1.
	play func(m *model, round int, r providerdouble.Request) providerdouble.Reply

	// bare says that the client offers no tools.
	bare bool

	// ask is the user's first message.
	ask string

	// work is the folder of the client's project.
	work string

	mu        sync.Mutex
	rounds    int
	errands   int
	summaries int

	suggestions int
	aside       int
}

// answer is the double's script.
func (m *model) answer(r providerdouble.Request) providerdouble.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()

	reply := m.reply(r)
	if r.Thinks && reply.Thinking == "" {
		reply.Thinking = fmt.Sprintf("Round %d: what has been read so far tells what to do next.", m.rounds)
	}

	return reply
}

func (m *model) reply(r providerdouble.Request) providerdouble.Reply {
	switch {
	case m.client.summarizes != "" && bytes.Contains(r.Body, []byte(m.client.summarizes)):
		m.summaries++
		return providerdouble.Reply{Text: "<analysis>It is short.</analysis>\n" + inTags("summary") + "\n" + inTags("state_snapshot")}
	case strings.HasPrefix(r.User, suggestionMark):
		m.suggestions++
		return providerdouble.Reply{Text: "look for the " + suggestedWord}
	case !hasTools(r.Body) && !m.bare:
		m.aside++
		return providerdouble.Reply{Text: "Reading a note"}
	case m.isErrand(r) && (!bytes.Contains(r.Body, []byte(recordMark)) || bytes.Contains(r.Body, []byte(toSubagent))):
		// A subagent without the conversation has a short prompt, but the main agent's record contains its
		// errands.
		m.errands++
		return m.runErrand(r)
	default:
		m.rounds++
		return m.play(m, m.rounds, r)
	}
}

// isErrand reports whether a request has a subagent's task and not the user's own words. Kilo puts a message of its own
// behind the task.
func (m *model) isErrand(r providerdouble.Request) bool {
	isAlone := bytes.Contains(r.Body, []byte(errandMark)) && !bytes.Contains(r.Body, []byte(m.ask))

	return strings.Contains(r.User, errandMark) || isAlone
}

// inTags is the summary inside the tags that a client expects.
func inTags(tag string) string {
	return "<" + tag + ">\n" + summaryMark + ": the user wants the parts read; the parts before were read.\n</" + tag + ">"
}

// runErrand plays a subagent: it reads the note and repeats it.
func (m *model) runErrand(r providerdouble.Request) providerdouble.Reply {
	if len(r.Results) == 0 {
		return providerdouble.Reply{Text: "On my way.", Calls: []providerdouble.Call{m.client.shell("cat " + noteFile)}}
	}

	found := "The errand found: " + lastOf(r.Results)
	if m.client.reports != nil {
		return providerdouble.Reply{Calls: []providerdouble.Call{m.client.reports(found)}}
	}

	return providerdouble.Reply{Text: found}
}

// hasTools reports whether a request offers tools: beside its input, or inside it.
func hasTools(body []byte) bool {
	var about struct {
		Tools []json.RawMessage `json:"tools"`
		Input json.RawMessage   `json:"input"`
	}
	if json.Unmarshal(body, &about) != nil {
		return false
	}

	return len(about.Tools) > 0 || slices.ContainsFunc(objects(about.Input), func(item map[string]json.RawMessage) bool {
		return text(item["type"]) == "additional_tools"
	})
}

func lastOf(texts []string) string {
	if len(texts) == 0 {
		return ""
	}

	return texts[len(texts)-1]
}

// The parts of a text that a client is made to read.
const partSize = 7_600 // bytes of a part, below every client's limit on a command's output

func partFile(number int) string { return fmt.Sprintf("part-%02d.txt", number) }

// partText is a part.
func partText(number int) string { return numberedText(number, partSize) }

// numberedText is a text of at least size bytes. Its lines do not repeat, so that it takes as many tokens
// as real text.
func numberedText(number, size int) string {
	words := strings.Fields("harbour lantern copper meadow violin thicket granite orchard compass saddle timber candle marsh pepper anchor willow ledger ribbon cellar falcon")
	var text strings.Builder
	for line := 1; text.Len() < size; line++ {
		fmt.Fprintf(&text, "Part %d, line %d: the %s of the %s weighs %d grams and stands beside the %s.\n", number, line,
			words[(line*7+number)%len(words)], words[(line*3+number*5)%len(words)], line*number*17%9973, words[(line+number*11)%len(words)])
	}

	return text.String()
}
