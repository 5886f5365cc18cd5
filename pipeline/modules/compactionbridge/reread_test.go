package compactionbridge

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
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
	id     string
	before []conversation.Message
	after  []conversation.Message
	want   int // re-reads that the set counts
	paths  map[string]bool
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
		one := recorded{id: pair.ID, want: len(pair.Rereads), paths: map[string]bool{}}
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
}

// end returns how many messages of a session came before the compaction; -1 if its
// last call is not found behind message from.
func (p *pair) end(session []said, from int) int {
	for i := len(p.Before) - 1; i >= 0; i-- {
		var blocks []struct {
			Type  string
			Input json.RawMessage
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

func TestMeasure(t *testing.T) {
	found, missing := compactions(t)
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	total, want, half, most, known, knownHalf, spent, files := 0, 0, 0, 0, 0, 0, 0, 0
	for _, one := range found {
		var c contents
		c.add(0, one.before)
		chosen := choose(c.files, len(one.before), 5000, counter.Count, func(*file) bool { return false })
		text := map[string]map[string]bool{}
		for _, e := range chosen {
			spent += e.tokens
			files++
			set := map[string]bool{}
			for part := range strings.SplitSeq(e.text, "\n") {
				set[strings.TrimSpace(part)] = true
			}
			text[anonymous(e.path)] = set
		}
		all := map[string]map[string]bool{}
		for _, f := range c.files {
			set := map[string]bool{}
			for _, s := range f.stretches {
				for _, l := range s.lines {
					set[strings.TrimSpace(l.text)] = true
				}
			}
			all[anonymous(f.path)] = set
		}
		share := func(set map[string]bool, r reread) float64 {
			have, n := 0, 0
			for _, l := range r.lines {
				if len(strings.TrimSpace(l.text)) > 3 {
					n++
					if set[strings.TrimSpace(l.text)] {
						have++
					}
				}
			}
			return float64(have) / float64(max(n, 1))
		}
		want += one.want
		for _, r := range one.rereads() {
			total++
			if set := text[r.path]; set != nil {
				half++
				if share(set, r) >= 0.5 {
					most++
				}
			}
			if set := all[r.path]; len(set) > 0 {
				known++
				if share(set, r) >= 0.5 {
					knownHalf++
				}
			}
		}
	}
	t.Logf("compactions %d, rereads %d (set %d, missing %d): file shown %d (%.0f%%), half of lines %d (%.0f%%); known at all %d, half known %d; tokens/each %d files/each %.1f",
		len(found), total, want, missing, half, 100*float64(half)/float64(total), most, 100*float64(most)/float64(total), known, knownHalf, spent/len(found), float64(files)/float64(len(found)))
}
