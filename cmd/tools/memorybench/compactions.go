package memorybench

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Compaction holds the messages before and after one compaction of a real client.
type Compaction struct {
	ID            string
	Before, After []conversation.Message
	Request       []byte          // the first one after it
	Paths         map[string]bool // files known before, without user names
	Tokens        int             // of the last prompt before it, as recorded by the client; 0 if it was not
}

// pairLine is a line of pairs_dev.jsonl.
type pairLine struct {
	ID    string         `json:"id"`
	Files map[string]int `json:"pre_files_all"`
	Meta  struct {
		Tokens int `json:"preTokens"`
	} `json:"meta"`
	Rereads []string `json:"post_rereads_of_pre_files"`
	Before  []struct {
		Content json.RawMessage `json:"content"`
	} `json:"pre_last_messages"`
	After json.RawMessage `json:"post_first_request_messages"`
}

// LoadCompactions reads the recorded compactions below a directory that also has their sessions, from
// bridge/pairs_dev.jsonl and recall/agent_sessions.jsonl.gz, and counts the re-reads of the others. It
// returns os.ErrNotExist without the files.
func LoadCompactions(directory string) (found []Compaction, missing int, err error) {
	sessions := map[string][]message{}
	err = eachLine(filepath.Join(directory, "recall", "agent_sessions.jsonl.gz"), func(line []byte) error {
		var session struct {
			ID       string    `json:"id"`
			Messages []message `json:"messages"`
		}
		if err := json.Unmarshal(line, &session); err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		sessions[session.ID] = session.Messages
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	begins := map[string]int{}
	err = eachLine(filepath.Join(directory, "bridge", "pairs_dev.jsonl"), func(line []byte) error {
		var pair pairLine
		if err := json.Unmarshal(line, &pair); err != nil {
			return fmt.Errorf("read compaction: %w", err)
		}
		name := pair.ID[:strings.LastIndexByte(pair.ID, '-')]
		end := pair.end(sessions[name], begins[name])
		if end < 0 {
			missing += len(pair.Rereads)
			return nil
		}
		one := Compaction{ID: pair.ID, Paths: map[string]bool{}, Tokens: pair.Meta.Tokens}
		one.Before, one.After = parsed(sessions[name][begins[name]:end]), parsed(sessions[name][end:])
		begins[name] = end
		for path := range pair.Files {
			one.Paths[anonymous(path)] = true
		}
		var err error
		one.Request, err = around(pair.After)
		found = append(found, one)
		return err
	})
	return found, missing, err
}

// end returns how many messages of a session came before the compaction; -1 if its last call is not found
// after message from.
func (p *pairLine) end(session []message, from int) int {
	for i := range slices.Backward(p.Before) {
		var blocks []struct {
			Type  string          `json:"type"`
			Input json.RawMessage `json:"input"`
		}
		if json.Unmarshal(p.Before[i].Content, &blocks) != nil {
			continue
		}
		for _, block := range blocks {
			if block.Type != "tool_use" {
				continue
			}
			if at := calledAt(session, from, canonical(string(block.Input))); at >= 0 {
				return min(at+len(p.Before)-i, len(session))
			}
		}
	}
	return -1
}

// calledAt returns the first message from an index on with a call with arguments.
func calledAt(session []message, from int, arguments string) int {
	for i := from; i < len(session); i++ {
		for line := range strings.SplitSeq(session[i].Text, "\n") {
			if _, rest, isCall := strings.Cut(line, "] "); isCall && strings.HasPrefix(line, "[tool_use ") && canonical(rest) == arguments {
				return i
			}
		}
	}
	return -1
}

// canonical returns JSON without differences in its formatting.
func canonical(text string) string {
	var value map[string]any
	if json.Unmarshal([]byte(text), &value) != nil {
		return ""
	}
	same, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(same)
}

// home matches a user's home folder.
var home = regexp.MustCompile(`^/(?:Users|home)/[^/]+/`)

// anonymous returns a path without the user name of its home folder, because the recorded sets call the
// same person by different names.
func anonymous(path string) string { return home.ReplaceAllString(path, "~/") }
