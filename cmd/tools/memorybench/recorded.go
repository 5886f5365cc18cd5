package memorybench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Recorded is a set of sessions and the questions about them.
type Recorded struct {
	Sessions map[string][]conversation.Message
	Tools    []Ask // about a tool's output
	Rereads  []Ask // about a file read before
	Refs     []Ask // references of people to earlier content
}

// Ask is a question at a place of a session, with the place of its answer.
type Ask struct {
	Session  string `json:"session"`
	At       int    `json:"at"`       // only messages before this one count
	Question string `json:"question"` // of a tool question
	Query    string `json:"query"`    // of the others
	Answer   string `json:"answer"`   // of a tool question: a part of the result
	Evidence []int  `json:"evidence"` // messages that answer
}

// Text is the question or the query.
func (a *Ask) Text() string { return a.Question + a.Query }

// Load reads a recorded set from a directory with agent_sessions.jsonl.gz,
// agent_toolqa.jsonl, agent_rereads.jsonl and agent_refs.jsonl. It returns
// os.ErrNotExist if absent.
func Load(directory string) (*Recorded, error) {
	set := &Recorded{Sessions: map[string][]conversation.Message{}}
	err := eachLine(filepath.Join(directory, "agent_sessions.jsonl.gz"), func(line []byte) error {
		var session struct {
			ID       string    `json:"id"`
			Messages []message `json:"messages"`
		}
		if err := json.Unmarshal(line, &session); err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		set.Sessions[session.ID] = parsed(session.Messages)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, asks := range map[string]*[]Ask{"agent_toolqa": &set.Tools, "agent_rereads": &set.Rereads, "agent_refs": &set.Refs} {
		err := eachLine(filepath.Join(directory, name+".jsonl"), func(line []byte) error {
			var ask Ask
			if err := json.Unmarshal(line, &ask); err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			*asks = append(*asks, ask)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return set, nil
}

// ids returns the ids of the sessions, in order.
func (r *Recorded) ids() []string { return slices.Sorted(maps.Keys(r.Sessions)) }

// message is a recorded message, with calls and results as lines of text.
type message struct {
	Role conversation.Role `json:"role"`
	Text string            `json:"text"`
}

// parsed converts recorded messages. The results of a message answer the calls of the one before in their
// order.
func parsed(recorded []message) []conversation.Message {
	messages := make([]conversation.Message, len(recorded))
	calls := 0
	for i := range recorded {
		messages[i].Role = recorded[i].Role
		first, results := calls, 0
		for part := range strings.SplitSeq(marked(recorded[i].Text), "\x00") {
			block := conversation.Block{Kind: conversation.Text, Text: strings.TrimSpace(part)}
			if rest, isCall := strings.CutPrefix(part, "[tool_use "); isCall {
				name, arguments, _ := strings.Cut(rest, "] ")
				block = conversation.Block{Kind: conversation.ToolCall, Name: name, Text: strings.TrimSpace(arguments), ID: strconv.Itoa(calls)}
				calls++
			} else if rest, isResult := strings.CutPrefix(part, "[tool_result]"); isResult {
				block = conversation.Block{Kind: conversation.ToolResult, Text: strings.TrimPrefix(strings.TrimSuffix(rest, "\n"), " ")}
				block.ID = strconv.Itoa(first - countCalls(messages, i) + results)
				results++
			}
			if block.Text != "" || block.Kind != conversation.Text {
				messages[i].Blocks = append(messages[i].Blocks, block)
			}
		}
	}
	return messages
}

// marked inserts a mark before each call and each result at the start of a line.
func marked(text string) string {
	text = strings.NewReplacer("\n[tool_use ", "\n\x00[tool_use ", "\n[tool_result]", "\n\x00[tool_result]").Replace(text)
	return text
}

// countCalls counts the calls in the message before an index.
func countCalls(messages []conversation.Message, i int) int {
	calls := 0
	if i > 0 {
		for j := range messages[i-1].Blocks {
			if messages[i-1].Blocks[j].Kind == conversation.ToolCall {
				calls++
			}
		}
	}
	return calls
}

// eachLine reads a file of JSON lines, compressed or not.
func eachLine(name string, read func(line []byte) error) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read recorded set: %w", err)
	}
	var reader io.Reader = bytes.NewReader(content)
	if strings.HasSuffix(name, ".gz") {
		if reader, err = gzip.NewReader(reader); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	lines := bufio.NewReader(reader)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := read(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
}
