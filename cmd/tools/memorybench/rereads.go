package memorybench

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// firstCalls is the number of calls after a compaction in which reads count.
const firstCalls = 30

// Carried measures how much content that was read again after compactions is in compaction-bridge's blocks.
type Carried struct {
	MaxTokens   int
	Compactions int
	Rereads     int // reads of files known before
	Files       int // of which the block has some content
	Half        int // of which the block has at least half of the lines
	Tokens      int // of all blocks
	Largest     int // tokens of the largest block
	Plans       int // approved by a person before a compaction
	Steps       int // of these plans, those with every step's first sentence in the next prompt
}

// The required shares of Rereads with 6,000 tokens: Files from the product's plan, Half from the first
// measurement.
const (
	LeastFiles = 0.60
	LeastHalf  = 0.25
)

// Carry builds the block of each compaction within a number of tokens.
func Carry(ctx context.Context, counter *tokens.Counter, compactions []Compaction, maxTokens int) (Carried, error) {
	sum := Carried{MaxTokens: maxTokens}
	for i := range compactions {
		one := &compactions[i]
		exchange, past, err := one.exchange(counter)
		if err != nil {
			return Carried{}, fmt.Errorf("%s: %w", one.ID, err)
		}
		pipeline.Change[compactionbridge.Config](&exchange.Config).MaxTokens = maxTokens
		pipeline.NewChain(compactionbridge.New(counter, past)).Process(ctx, exchange)
		if err := failure(exchange); err != nil {
			return Carried{}, fmt.Errorf("%s: %w", one.ID, err)
		}
		block := ""
		for _, insert := range exchange.Injected(compactionbridge.Name) {
			block = insert.Text
		}
		sum.add(one, block, counter.Count(block))
		sum.addPlan(one, block)
	}
	return sum, nil
}

func (c *Carried) add(one *Compaction, block string, tokens int) {
	c.Compactions++
	c.Tokens += tokens
	c.Largest = max(c.Largest, tokens)
	shown := shownIn(block)
	for _, read := range one.rereads() {
		c.Rereads++
		lines := shown[read.path]
		if lines == nil {
			continue
		}
		c.Files++
		have, all := 0, 0
		for _, line := range read.lines {
			if len(line) <= 3 {
				continue
			}
			all++
			if lines[line] {
				have++
			}
		}
		if all > 0 && have*2 >= all {
			c.Half++
		}
	}
}

// addPlan counts the plan in effect before the compaction, if any.
func (c *Carried) addPlan(one *Compaction, block string) {
	book := ledger.New()
	book.Add(0, 0, one.Before)
	at := slices.IndexFunc(book.Directives, func(directive ledger.Directive) bool { return directive.Kind == ledger.Plan })
	if at < 0 {
		return
	}
	c.Plans++
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	shown := flat(block + string(one.Request))
	for step := range strings.Lines(ledger.Outline(book.Directives[at].Text)) {
		if !strings.Contains(shown, flat(strings.TrimLeft(step, " -*#0123456789.)"))) {
			return
		}
	}
	c.Steps++
}

// left is the archive of one lane.
type left []archive.Entry

// Originals implements compactionbridge.Originals.
func (l left) Originals(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, from, to int) ([]archive.Entry, error) {
	return l[min(from, len(l)):min(to, len(l))], nil
}

// exchange returns the first request after the compaction and the client's state before it.
func (c *Compaction) exchange(counter *tokens.Counter) (*pipeline.Exchange, compactionbridge.Past, error) {
	var entries left
	for i := range c.Before {
		raw, err := json.Marshal(written(&c.Before[i]))
		if err != nil {
			return nil, compactionbridge.Past{}, fmt.Errorf("write message: %w", err)
		}
		entries = append(entries, archive.Entry{Index: i, Role: c.Before[i].Role, Raw: raw, Size: len(raw)})
	}
	exchange, err := afterCompaction(counter, c.Request, len(entries))
	return exchange, compactionbridge.Past{Originals: entries}, err
}

// afterCompaction returns the first request after a compaction that left a number of messages.
func afterCompaction(counter *tokens.Counter, body []byte, messages int) (*pipeline.Exchange, error) {
	config := modules.Catalog().Default()
	config.Modules = []string{compactionbridge.Name}
	exchange, err := pipelinetest.ReadExchange(anthropic.New(), body, pipelinetest.Options{
		Counter: counter, Config: config, Class: client.Class{Kind: client.AfterCompaction, Confidence: 1},
	})
	if err != nil {
		return nil, fmt.Errorf("make exchange: %w", err)
	}
	exchange.Lane.Left = session.Left{Session: uuid.New(), Lane: uuid.New(), Kind: session.Main, From: uuid.New(), Messages: messages}
	return exchange, nil
}

// reread is a read after a compaction of a file known before.
type reread struct {
	path  string
	lines []string
}

// rereads returns the reads of known files among the first calls.
func (c *Compaction) rereads() []reread {
	results := map[string]string{}
	for i := range c.After {
		for _, block := range c.After[i].Blocks {
			if block.Kind == conversation.ToolResult {
				results[block.ID] = block.Text
			}
		}
	}
	var all []reread
	calls := 0
	for i := range c.After {
		for _, block := range c.After[i].Blocks {
			if block.Kind != conversation.ToolCall {
				continue
			}
			if calls++; calls > firstCalls {
				return all
			}
			var arguments struct {
				Path string `json:"file_path"`
			}
			if block.Name != "Read" || json.Unmarshal([]byte(block.Text), &arguments) != nil || !c.Paths[anonymous(arguments.Path)] {
				continue
			}
			all = append(all, reread{anonymous(arguments.Path), numbered(results[block.ID])})
		}
	}
	return all
}

var numberedLine = regexp.MustCompile(`(?m)^ *\d{1,8}(?:→|\t|\| )(.*)$`)

// numbered returns the numbered lines of a file in a result.
func numbered(result string) []string {
	var lines []string
	for _, match := range numberedLine.FindAllStringSubmatch(conversation.WithoutReminders(result), -1) {
		lines = append(lines, strings.TrimSpace(match[1]))
	}
	return lines
}

// shownIn returns the lines of each file in a block.
func shownIn(block string) map[string]map[string]bool {
	files := map[string]map[string]bool{}
	var current map[string]bool
	for line := range strings.SplitSeq(block, "\n") {
		if head, isHead := strings.CutPrefix(line, "--- "); isHead {
			path, _, _ := strings.Cut(head, ", ")
			path = anonymous(path)
			if files[path] == nil {
				files[path] = map[string]bool{}
			}
			current = files[path]
			continue
		}
		if current != nil {
			current[strings.TrimSpace(line)] = true
		}
	}
	return files
}

// Rereads returns measured blocks as a table.
func Rereads(rows []Carried) string {
	var text strings.Builder
	text.WriteString("| maxTokens | compactions | re-reads | of files with content in the block | to reach | with half of the lines or more | tokens a block |\n" + strings.Repeat("| --- ", 7) + "|\n")
	for _, row := range rows {
		share := func(part int) string {
			return fmt.Sprintf("%d (%s)", part, percent(float64(part)/float64(max(row.Rereads, 1))))
		}
		target := ""
		if row.MaxTokens == compactionbridge.DefaultConfig().MaxTokens {
			target = fmt.Sprintf("%.0f %%", 100*LeastFiles)
		}
		fmt.Fprintf(&text, "| %d | %d | %d | **%s** | %s | %s | %d |\n", row.MaxTokens, row.Compactions, row.Rereads,
			share(row.Files), target, share(row.Half), row.Tokens/max(row.Compactions, 1))
	}
	return text.String()
}
