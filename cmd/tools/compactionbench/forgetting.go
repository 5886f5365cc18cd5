package compactionbench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/tokens"
)

// How many requests after a compaction are checked.
const (
	namesWithin = 10
	editsWithin = 20
)

// The cost of getting something again, in tokens of the model: the call, and the maximum that the client
// reads of the result.
const (
	askingAgain = 60
	resultAgain = 4_000
)

// Forgetting measures how much of the history the prompts after compactions still contain: our prompts, and
// those of a sliding window with as many tokens, which has only the newest messages.
type Forgetting struct {
	Compactions int
	Verbatim    []int // turns left word for word by each compaction
	Cliffs      int   // compactions without a level between word for word and one line for a block

	Ours, Sliding, Client, Masked Kept

	Bill     Bill // of the prompts
	Original Bill // of the prompts without compaction
	Itself   Bill // of a client that compacts itself, including its summaries
	Masking  Bill // of the prompts with old tool results masked
	Requests int
	Sessions int
}

// Kept counts the content that one way to compact keeps.
type Kept struct {
	Names      Share   // identifiers used by the next requests
	Unrepeated Share   // and that no message since the compaction repeats
	Edits      Share   // replaced texts last seen before the compaction: all of their lines
	Typed      Share   // typed messages word for word
	Second     Share   // the second newest typed message
	Tasks      Share   // open tasks
	Recoveries int     // messages to get again
	Recovery   float64 // its cost, in tokens of plain input
	Lost       int     // typed messages, tasks, decisions and failed attempts that a prompt lacks

	lost map[string]bool
}

func (k *Kept) add(other *Kept) {
	k.Names, k.Unrepeated, k.Edits = k.Names.and(other.Names), k.Unrepeated.and(other.Unrepeated), k.Edits.and(other.Edits)
	k.Typed, k.Second, k.Tasks = k.Typed.and(other.Typed), k.Second.and(other.Second), k.Tasks.and(other.Tasks)
	k.Recoveries += other.Recoveries
	k.Lost += other.Lost
	k.Recovery += other.Recovery
}

// Add adds another talk.
func (f *Forgetting) Add(other *Forgetting) {
	f.Compactions += other.Compactions
	f.Verbatim = append(f.Verbatim, other.Verbatim...)
	f.Cliffs += other.Cliffs
	f.Ours.add(&other.Ours)
	f.Sliding.add(&other.Sliding)
	f.Client.add(&other.Client)
	f.Masked.add(&other.Masked)
	for _, bills := range [][2]*Bill{{&f.Bill, &other.Bill}, {&f.Original, &other.Original}, {&f.Itself, &other.Itself}, {&f.Masking, &other.Masking}} {
		bills[0].Cost += bills[1].Cost
		bills[0].Busts += bills[1].Busts
		bills[0].TooLong += bills[1].TooLong
	}
	f.Requests += other.Requests
	f.Sessions += other.Sessions
}

// standing is the result of a compaction, until the next one.
type standing struct {
	length  int // messages of the conversation at the time
	request int // its index
	sides   []side
}

// side is one way to compact: ours, the sliding window, or the client's own.
type side struct {
	kept *Kept
	sight

	named    map[string]bool // identifiers found missing
	recalled map[int]bool    // messages already got again
}

// Forget replays a talk and measures the content that its compactions forget.
func (b *Bench) Forget(ctx context.Context, talk *Talk, prices Prices, pace Pace) (*Forgetting, error) {
	r, err := read(talk, b.counter)
	if err != nil {
		return nil, err
	}
	f, err := forget(ctx, r, b.Pipeline, prices, pace)
	if err == nil {
		f.forgetItself(r, prices, pace)
	}
	return f, err
}

func forget(ctx context.Context, r *reading, config pipeline.Config, prices Prices, pace Pace) (*Forgetting, error) {
	priced := r.model
	priced.Price = prices.of(priced.Price)
	run, err := replay.New(replay.Config{
		Format: r.talk.Format, Pipeline: config, Window: r.talk.Window, Clock: pace.At, TTL: prices.TTL, Automatic: prices.Automatic, Models: []tokens.Model{priced},
	})
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", r.talk.Name, err)
	}
	f := &Forgetting{Sessions: 1}
	f.Original, _ = charge(r, untouched{r}, prices, pace)
	var now *standing
	_, err = run.Run(ctx, r.talk.Body, func(step replay.Step) error {
		f.Requests++
		f.Bill.add(prices, r.tokens(step.Sent.Use.Read), r.tokens(step.Sent.Use.Write), 0)
		if step.Bust {
			f.Bill.Busts++
		}
		if step.Sent.Report.Archived > 0 {
			var err error
			if now, err = f.stand(r, &step); err != nil {
				return err
			}
			f.compacted(r, &step, now)
		}
		if now != nil {
			prompt := r.tokens(step.Sent.Use.Read + step.Sent.Use.Write)
			f.used(r, now, step.Number-1, prompt, prices)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", r.talk.Name, err)
	}
	return f, nil
}

// stand reads the prompt of a compaction, and the sliding window of its size.
func (f *Forgetting) stand(r *reading, step *replay.Step) (*standing, error) {
	sent := *r.talk
	sent.Body = step.Sent.Body
	prompt, err := read(&sent, r.counter)
	if err != nil {
		return nil, err
	}
	now := &standing{length: step.Messages, request: step.Number - 1}
	left, from := step.Sent.Use.Read+step.Sent.Use.Write-r.fixed.Tokens, now.length
	for from > 0 && left >= r.messages[from-1].Tokens {
		from--
		left -= r.messages[from].Tokens
	}
	now.sides = []side{newSide(&f.Ours, textOf(prompt.messages)), newSide(&f.Sliding, textOf(r.messages[from:now.length]))}
	return now, nil
}

func newSide(kept *Kept, text string) side {
	return side{kept: kept, sight: sightOf(text), named: map[string]bool{}, recalled: map[int]bool{}}
}

// textOf returns the text of messages.
func textOf(messages []message) string {
	var text strings.Builder
	for i := range messages {
		text.WriteString(fidelity.Written(&messages[i].Message) + "\n" + fidelity.Returned(&messages[i].Message) + "\n")
	}
	return text.String()
}

// compacted notes the content that a compaction leaves.
func (f *Forgetting) compacted(r *reading, step *replay.Step, now *standing) {
	f.Compactions++
	f.Verbatim = append(f.Verbatim, step.Levels[0])
	if step.Levels[1]+step.Levels[2] == 0 {
		f.Cliffs++
	}
	f.noteKept(r, now)
}

// noteKept notes which typed messages and tasks prompts have.
func (f *Forgetting) noteKept(r *reading, now *standing) {
	typed, tasks, noted := r.typed(now.length), r.openTasks(now.length), r.noted(now.length)
	for i := range now.sides {
		side := &now.sides[i]
		for n, text := range typed {
			isKept := strings.Contains(side.text, text)
			side.kept.Typed = side.kept.Typed.with(isKept)
			if n == len(typed)-2 {
				side.kept.Second = side.kept.Second.with(isKept)
			}
		}
		for _, task := range tasks {
			side.kept.Tasks = side.kept.Tasks.with(strings.Contains(side.text, task))
		}
		side.noteLost(slices.Concat(typed, tasks, noted))
	}
}

// noteLost notes which texts a prompt lacks that nothing but the client's history has, each once in a
// session.
func (s *side) noteLost(texts []string) {
	if s.kept.lost == nil {
		s.kept.lost = map[string]bool{}
	}
	flat := strings.Join(strings.Fields(s.text), " ")
	for _, text := range texts {
		text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "…")
		if !s.kept.lost[text] && !strings.Contains(flat, text) {
			s.kept.lost[text] = true
			s.kept.Lost++
		}
	}
}

// used checks which content from before the compaction the model used after a request.
func (f *Forgetting) used(r *reading, now *standing, request int, prompt float64, prices Prices) {
	if request+1 >= len(r.ends) {
		return
	}
	names, edits := r.takenUp(now, request), r.edited(now, request)
	for i := range now.sides {
		side := &now.sides[i]
		for _, message := range append(side.lacks(r, now, names, request), side.lacksLines(edits, request-now.request < editsWithin)...) {
			if side.recalled[message] {
				continue
			}
			side.recalled[message] = true
			side.kept.Recoveries++
			side.kept.Recovery += prices.Read*prompt + prices.Output*askingAgain + prices.Write*min(resultAgain, r.tokens(r.messages[message].Tokens))
		}
	}
}

// takenUp returns the identifiers that the model used after a request, and whether a message since the
// compaction contains them.
func (r *reading) takenUp(now *standing, request int) map[string]bool {
	newer := map[string]bool{}
	for _, names := range r.names.All[now.length:r.ends[request]] {
		for _, name := range names {
			newer[name] = true
		}
	}
	isNewer := map[string]bool{}
	for _, name := range r.names.TakenUp(r.ends[request], r.ends[request+1]) {
		if !r.isOfTools(name) {
			isNewer[name] = newer[name]
		}
	}
	return isNewer
}

// lacks notes which identifiers a prompt has, and returns the messages with the missing ones.
func (s *side) lacks(r *reading, now *standing, names map[string]bool, request int) []int {
	var messages []int
	for name, isNewer := range names {
		held := isNewer || s.has(name)
		if request-now.request < namesWithin {
			s.kept.Names = s.kept.Names.with(held)
			if !isNewer {
				s.kept.Unrepeated = s.kept.Unrepeated.with(held)
			}
		}
		if !held && !s.named[name] {
			s.named[name] = true
			messages = append(messages, r.lastWith(name, now.length))
		}
	}
	return messages
}

// edit is a text that the model replaced, with the message that contained it.
type edit struct {
	lines  []string
	source int
}

// edited returns the texts that the model replaced after a request and that it last saw before the
// compaction.
func (r *reading) edited(now *standing, request int) []edit {
	var edits []edit
	for _, text := range replacedIn(r.messages[r.ends[request]:r.ends[request+1]]) {
		lines := linesOf(text)
		if len(lines) == 0 || r.seen(lines, now.length, r.ends[request]) >= 0 {
			continue
		}
		if source := r.seen(lines, 0, now.length); source >= 0 {
			edits = append(edits, edit{lines, source})
		}
	}
	return edits
}

// lacksLines notes which replaced texts a prompt has, if they count, and returns the messages with the
// missing ones.
func (s *side) lacksLines(edits []edit, isCounted bool) []int {
	var messages []int
	for _, one := range edits {
		held := containsAll(s.text, one.lines)
		if isCounted {
			s.kept.Edits = s.kept.Edits.with(held)
		}
		if !held {
			messages = append(messages, one.source)
		}
	}
	return messages
}

// lastWith returns the newest of the first messages that contains a name.
func (r *reading) lastWith(name string, length int) int {
	for i := length - 1; i >= 0; i-- {
		if slices.Contains(r.names.All[i], name) {
			return i
		}
	}
	return 0
}

// seen returns the newest message of a range with all lines, or -1.
func (r *reading) seen(lines []string, from, to int) int {
	for i := to - 1; i >= from; i-- {
		if containsAll(textOf(r.messages[i:i+1]), lines) {
			return i
		}
	}
	return -1
}

func containsAll(text string, lines []string) bool {
	for _, line := range lines {
		if !strings.Contains(text, line) {
			return false
		}
	}
	return true
}

// linesOf returns the nontrivial lines of a text.
func linesOf(text string) []string {
	const least = 4
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= least {
			lines = append(lines, line)
		}
	}
	return lines
}

// replacedIn returns the texts that messages' tool calls replace in files.
func replacedIn(messages []message) []string {
	var texts []string
	for i := range messages {
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall {
				continue
			}
			var arguments any
			if json.Unmarshal([]byte(block.Text), &arguments) == nil {
				texts = replaced(texts, arguments)
			}
		}
	}
	return texts
}

func replaced(texts []string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range []string{"old_string", "old_str", "oldText", "oldString"} {
			if text, isText := value[member].(string); isText && text != "" {
				texts = append(texts, text)
			}
		}
		if edits, isList := value["edits"]; isList {
			texts = replaced(texts, edits)
		}
	case []any:
		for _, one := range value {
			texts = replaced(texts, one)
		}
	}
	return texts
}

// typed returns a person's text in the first messages, except texts as long as a paste.
func (r *reading) typed(length int) []string {
	const paste = 4_000
	var all []string
	for i := range r.messages[:length] {
		message := &r.messages[i]
		if message.Role != conversation.User || !message.flags.Has(conversation.HasTyped) {
			continue
		}
		for j := range message.Blocks {
			block := &message.Blocks[j]
			if block.Kind != conversation.Text || !conversation.IsTyped(block.Text) || message.IsPasted(j) {
				continue
			}
			if text := strings.TrimSpace(ledger.TypedText(block.Text)); text != "" && len(text) <= paste && !strings.HasPrefix(text, "[Request interrupted") {
				all = append(all, text)
			}
		}
	}
	return all
}

// openTasks returns the subjects of the open tasks after the first messages.
func (r *reading) openTasks(length int) []string { //nolint:gocognit // three kinds of task tools, each in a few lines
	var listed []string
	created, order := map[string]string{}, []string{}
	for i := range r.messages[:length] {
		for j := range r.messages[i].Blocks {
			block := &r.messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall {
				continue
			}
			var said struct {
				Todos []struct{ Content, Status string } `json:"todos"`
				Plan  []struct{ Step, Status string }    `json:"plan"`

				Subject, Status string
				TaskID          string `json:"taskId"`
			}
			if json.Unmarshal([]byte(block.Text), &said) != nil { //nolint:musttag // encoding/json ignores case
				continue
			}
			switch block.Name {
			case "TodoWrite", "todowrite", "update_plan":
				listed = nil
				for _, one := range said.Todos {
					if one.Status != "completed" && one.Status != "cancelled" {
						listed = append(listed, one.Content)
					}
				}
				for _, one := range said.Plan {
					if one.Status != "completed" {
						listed = append(listed, one.Step)
					}
				}
			case "TaskCreate":
				id := strconv.Itoa(len(order) + 1)
				order, created[id] = append(order, id), said.Subject
			case "TaskUpdate":
				if said.Status == "completed" || said.Status == "deleted" {
					delete(created, said.TaskID)
				}
			}
		}
	}
	for _, id := range order {
		if subject, isOpen := created[id]; isOpen {
			listed = append(listed, subject)
		}
	}
	return listed
}

// WithFixed returns a talk with a system prompt longer by a number of o200k tokens.
func (t Talk) WithFixed(more int) (Talk, error) {
	if more == 0 {
		return t, nil
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(t.Body, &body); err != nil {
		return t, fmt.Errorf("read talk: %w", err)
	}
	text, err := json.Marshal(strings.Repeat("The sky was blue over the hill that day. ", more/10))
	if err != nil {
		return t, err
	}
	body["system"] = text
	t.Body, err = json.Marshal(body)
	return t, err
}
