package compactionbridge

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/tokens"
)

// said is a message of a recorded session as a text: calls and results stand in it
// as "[tool_use Read] {…}" and "[tool_result] …".
type said struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// recorded is what came before and after one compaction of a real client.
type recorded struct {
	id      string
	before  []conversation.Message
	after   []conversation.Message
	summary string // the first request after it
	want    int    // re-reads that the set counts
	paths   map[string]bool
}

func sharedFile(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skip("no ../shared/data beside the repository: recorded compactions are not read")
	}
	return path
}

// messagesOf reads the messages of a recorded session.
func messagesOf(all []said) []conversation.Message {
	var messages []conversation.Message
	var open []string
	calls := 0
	for _, one := range all {
		message := conversation.Message{Role: conversation.Role(one.Role)}
		if one.Role == "assistant" {
			open = nil
			var text []string
			for part := range strings.SplitSeq(one.Text, "\n") {
				name, arguments, isCall := strings.Cut(strings.TrimPrefix(part, "[tool_use "), "] ")
				if !isCall || !strings.HasPrefix(part, "[tool_use ") {
					text = append(text, part)
					continue
				}
				calls++
				id := fmt.Sprint("call", calls)
				open = append(open, id)
				message.Blocks = append(message.Blocks, conversation.Block{Kind: conversation.ToolCall, ID: id, Name: name, Text: arguments})
			}
			if joined := strings.Join(text, "\n"); strings.TrimSpace(joined) != "" {
				message.Blocks = append([]conversation.Block{{Kind: conversation.Text, Text: joined}}, message.Blocks...)
			}
		} else {
			parts := strings.Split("\n"+one.Text, "\n[tool_result] ")
			for i, part := range parts[1:] {
				if i < len(open) {
					message.Blocks = append(message.Blocks, conversation.Block{Kind: conversation.ToolResult, ID: open[i], Text: part})
				}
			}
			if typed := strings.TrimSpace(parts[0]); typed != "" {
				message.Blocks = append(message.Blocks, conversation.Block{Kind: conversation.Text, Text: typed})
			}
		}
		messages = append(messages, message)
	}
	return messages
}

func eachLine(t *testing.T, path string, visit func([]byte)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 1<<20)
	if strings.HasSuffix(path, ".gz") {
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		reader = bufio.NewReaderSize(unzipped, 1<<20)
	}
	for {
		one, err := reader.ReadBytes('\n')
		if len(one) > 1 {
			visit(one)
		}
		if err != nil {
			return
		}
	}
}

func anonymous(path string) string {
	if rest, ok := strings.CutPrefix(path, "/Users/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return "/Users/dev/" + rest
		}
	}
	return path
}

// compactions returns the recorded compactions whose session is there, and how many
// re-reads the others have.
func compactions(t *testing.T) (found []recorded, missing int) {
	t.Helper()
	sessions := map[string][]said{}
	eachLine(t, sharedFile(t, "recall", "agent_sessions.jsonl.gz"), func(raw []byte) {
		var session struct {
			ID       string `json:"id"`
			Messages []said `json:"messages"`
		}
		if err := json.Unmarshal(raw, &session); err != nil {
			t.Fatal(err)
		}
		sessions[session.ID] = session.Messages
	})
	begins := map[string]int{}
	eachLine(t, sharedFile(t, "bridge", "pairs_dev.jsonl"), func(raw []byte) {
		var pair pair
		if err := json.Unmarshal(raw, &pair); err != nil {
			t.Fatal(err)
		}
		name := pair.ID[:strings.LastIndexByte(pair.ID, '-')]
		start := pair.end(sessions[name], begins[name])
		if start < 0 {
			missing += len(pair.Rereads)
			return
		}
		one := recorded{id: pair.ID, summary: pair.after(), want: len(pair.Rereads), paths: map[string]bool{}}
		one.before, one.after = messagesOf(sessions[name][begins[name]:start]), messagesOf(sessions[name][start:])
		begins[name] = start
		for path := range pair.Files {
			one.paths[anonymous(path)] = true
		}
		found = append(found, one)
	})
	return found, missing
}

// pair is a line of pairs_dev.jsonl.
type pair struct {
	ID      string         `json:"id"`
	Files   map[string]int `json:"pre_files_all"`
	Rereads []string       `json:"post_rereads_of_pre_files"`
	Before  []struct {
		Content json.RawMessage `json:"content"`
	} `json:"pre_last_messages"`
	After []struct {
		Content json.RawMessage `json:"content"`
	} `json:"post_first_request_messages"`
}

// after returns the texts of the first request after the compaction.
func (p *pair) after() string {
	var all strings.Builder
	for _, message := range p.After {
		var blocks []struct {
			Text string `json:"text"`
		}
		var text string
		if json.Unmarshal(message.Content, &blocks) == nil {
			for _, block := range blocks {
				all.WriteString(block.Text + "\n")
			}
		} else if json.Unmarshal(message.Content, &text) == nil {
			all.WriteString(text + "\n")
		}
	}
	return all.String()
}

// end returns how many messages of a session came before the compaction; -1 if its
// last call is not found behind message from.
func (p *pair) end(session []said, from int) int {
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
			want := canonical(string(block.Input))
			for j, message := range session {
				if j < from {
					continue
				}
				for part := range strings.SplitSeq(message.Text, "\n") {
					if _, arguments, isCall := strings.Cut(part, "] "); isCall && strings.HasPrefix(part, "[tool_use ") && canonical(arguments) == want {
						return min(j+len(p.Before)-i, len(session))
					}
				}
			}
		}
	}
	return -1
}

// canonical returns JSON without what differs between two ways to write it.
func canonical(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return ""
	}
	same, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(same)
}

// reread is a read after a compaction of a file that was known before.
type reread struct {
	path  string
	lines []line
}

// rereads returns the reads of known files among the first 30 calls.
func (r *recorded) rereads() []reread {
	var all []reread
	calls := 0
	results := map[string]string{}
	for _, message := range r.after {
		for _, block := range message.Blocks {
			if block.Kind == conversation.ToolResult {
				results[block.ID] = block.Text
			}
		}
	}
	for _, message := range r.after {
		for _, block := range message.Blocks {
			if block.Kind != conversation.ToolCall {
				continue
			}
			if calls++; calls > 30 {
				return all
			}
			var arguments struct {
				Path string `json:"file_path"`
			}
			if block.Name != "Read" || json.Unmarshal([]byte(block.Text), &arguments) != nil || !r.paths[anonymous(arguments.Path)] {
				continue
			}
			one := reread{path: anonymous(arguments.Path)}
			for _, seen := range shown(0, results[block.ID], 0) {
				one.lines = append(one.lines, seen.lines...)
			}
			all = append(all, one)
		}
	}
	return all
}

// carried is what a block holds of what is read again.
type carried struct{ rereads, files, half, tokens, blocks int }

// measure builds the block of each recorded compaction within so many tokens.
func measure(t *testing.T, found []recorded, maxTokens int) carried {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	module := New(counter, Past{})
	config := pipeline.DefaultConfig().Bridge
	config.MaxTokens = maxTokens
	var sum carried
	for i := range found {
		one := &found[i]
		var holds present
		holds.read(one.summary)
		block := module.write(compare(historyOf(one.before), config.PreserveLastTurns, holds), config)
		if got := counter.Count(block.text); got > maxTokens {
			t.Errorf("%s: the block has %d tokens, at most %d are allowed", one.id, got, maxTokens)
		}
		sum.tokens += counter.Count(block.text)
		sum.blocks++
		shown := shownIn(block.text)
		for _, read := range one.rereads() {
			sum.rereads++
			lines := shown[read.path]
			if lines == nil {
				continue
			}
			sum.files++
			have, all := 0, 0
			for _, one := range read.lines {
				if text := strings.TrimSpace(one.text); len(text) > 3 {
					all++
					if lines[text] {
						have++
					}
				}
			}
			if all > 0 && have*2 >= all {
				sum.half++
			}
		}
	}
	return sum
}

// shownIn returns the lines of each file that a block shows.
func shownIn(text string) map[string]map[string]bool {
	files := map[string]map[string]bool{}
	var current map[string]bool
	for part := range strings.SplitSeq(text, "\n") {
		if head, isHead := strings.CutPrefix(part, "--- "); isHead {
			path, _, _ := strings.Cut(head, ", ")
			path = anonymous(path)
			if files[path] == nil {
				files[path] = map[string]bool{}
			}
			current = files[path]
			continue
		}
		if current != nil {
			current[strings.TrimSpace(part)] = true
		}
	}
	return files
}

// historyOf reads messages as readHistory does those of the archive.
func historyOf(messages []conversation.Message) *history {
	read := &history{ledger: ledger.New(), newest: len(messages) - 1}
	digests := make([]conversation.Digest, len(messages))
	for i := range messages {
		digests[i] = conversation.Digest{Role: messages[i].Role, Flags: messages[i].Flags()}
	}
	for number, span := range conversation.Turns(digests) {
		read.add(number, turn{first: span.From, messages: messages[span.From:span.To]})
	}
	return read
}

// E8: of what 53 real sessions read again within 30 calls of a compaction, most is
// of files whose content the block already holds.
func TestMostOfWhatIsReadAgainIsThereAlready(t *testing.T) {
	t.Parallel()
	found, missing := compactions(t)
	for _, maxTokens := range []int{3000, 6000, 12000} {
		sum := measure(t, found, maxTokens)
		share := func(part int) float64 { return 100 * float64(part) / float64(sum.rereads) }
		t.Logf("maxTokens %5d: %d of %d re-reads (%.1f %%) of files with content in the block, %d (%.1f %%) with half of the lines that were read or more; %d tokens a block; %d compactions, %d re-reads of sessions that are not there",
			maxTokens, sum.files, sum.rereads, share(sum.files), sum.half, share(sum.half), sum.tokens/sum.blocks, sum.blocks, missing)
		if maxTokens == 6000 && (share(sum.files) < 60 || share(sum.half) < 25) {
			t.Errorf("within 6000 tokens the block holds content of %.1f %% of what is read again, half of the lines of %.1f %%", share(sum.files), share(sum.half))
		}
	}
}
