package patterns

import (
	"context"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// Name is the module's name in configs, headers and events.
const Name = "patterns"

// earlyTyped bounds the messages that are read to find out whether a person typed anything before,
// because the client may have written them.
const earlyTyped = 3

// maxTyped bounds the typed text that is read, in bytes. People type less, and pasted text must end
// somewhere.
const maxTyped = 1 << 20

// Module is the module patterns. It has no state of its own and is safe for
// concurrent use.
type Module struct{ cache *Cache }

// New returns the module; cache is nil without patterns.
func New(cache *Cache) *Module { return &Module{cache: cache} }

// Name implements pipeline.Module.
func (*Module) Name() string { return Name }

// Process puts the patterns into the prompt that are relevant to its new messages and not in the
// lane yet.
func (m *Module) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	if m.cache == nil || exchange.Lane.Finalized || exchange.Request.ReadOnly != "" || exchange.Class.IsSide() || exchange.Class.Kind == client.Compaction {
		return nil, nil //nolint:nilnil // nothing changes
	}
	known := m.cache.of(ctx, exchange.Scope.Workspace)
	if known == nil {
		return nil, nil //nolint:nilnil // nothing changes
	}
	lane := given(exchange)
	room := configOf(exchange).MaxInjected - len(lane)
	from := newFrom(&exchange.Conversation)
	if room <= 0 || from == len(exchange.Conversation.Digests) {
		return nil, nil //nolint:nilnil // nothing changes
	}
	added, err := read(&exchange.Conversation, from)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(exchange, known, added, from)
	if err != nil {
		return nil, err
	}
	chosen = slices.DeleteFunc(chosen, func(p *Pattern) bool { return slices.Contains(lane, p.ID.String()) })
	if len(chosen) == 0 {
		return nil, nil //nolint:nilnil // nothing changes
	}
	if chosen, err = without(exchange, chosen, room); err != nil || len(chosen) == 0 {
		return nil, err
	}
	ids := make([]string, len(chosen))
	for i, p := range chosen {
		ids[i] = p.ID.String()
	}
	draft := exchange.Draft(Name)
	draft.Inject(configOf(exchange).Placement, block(chosen), ids)
	return draft, nil
}

// given returns the ids of the patterns that the lane has.
func given(exchange *pipeline.View) []string {
	var ids []string
	for _, insert := range exchange.Injected(Name) {
		ids = append(ids, insert.Items...)
	}
	return ids
}

// newFrom returns the index of the first message after the newest answer.
func newFrom(asked *pipeline.Conversation) int {
	from := len(asked.Digests)
	for from > 0 && asked.Digests[from-1].Role != conversation.Assistant {
		from--
	}
	return from
}

// newText is the content of new messages.
type newText struct {
	typed   string   // by the person
	results []string // of tools
}

// read reads the messages from index from on.
func read(asked *pipeline.Conversation, from int) (newText, error) {
	var found newText
	var typed strings.Builder
	for i := from; i < len(asked.Digests); i++ {
		if !asked.Digests[i].Flags.Has(conversation.HasTyped | conversation.HasResult) {
			continue
		}
		message, err := asked.Message(i)
		if err != nil {
			return newText{}, err
		}
		for j := range message.Blocks {
			switch block := &message.Blocks[j]; {
			case block.Kind == conversation.ToolResult:
				found.results = append(found.results, block.Text)
			case block.Kind == conversation.Text && message.Role == conversation.User && typed.Len()+len(block.Text) < maxTyped:
				if text := ledger.TypedText(block.Text); text != "" {
					typed.WriteString(text)
					typed.WriteByte('\n')
				}
			}
		}
	}
	found.typed = typed.String()
	return found, nil
}

// choose returns the patterns that are relevant to new messages, those that name an error first.
func choose(exchange *pipeline.View, known *index, found newText, from int) ([]*Pattern, error) {
	var chosen []*Pattern
	for _, text := range append(found.results, found.typed) {
		for _, p := range known.naming(text) {
			if !slices.Contains(chosen, p) {
				chosen = append(chosen, p)
			}
		}
	}
	if found.typed == "" {
		return chosen, nil
	}
	first, err := isFirst(&exchange.Conversation, from)
	if err != nil || !first {
		return chosen, err
	}
	return append(chosen, known.relevant(found.typed)...), nil
}

// isFirst reports whether no person has typed anything before message from.
func isFirst(asked *pipeline.Conversation, from int) (bool, error) {
	var early []int
	for i, digest := range asked.Digests[:from] {
		if digest.Flags.Has(conversation.HasTyped) {
			early = append(early, i)
		}
		if len(early) > earlyTyped {
			return false, nil
		}
	}
	for _, i := range early {
		message, err := asked.Message(i)
		if err != nil {
			return false, err
		}
		for j := range message.Blocks {
			if block := &message.Blocks[j]; block.Kind == conversation.Text && ledger.TypedText(block.Text) != "" {
				return false, nil
			}
		}
	}
	return true, nil
}

// without returns the first room of chosen, except those already in the client's own instructions.
func without(exchange *pipeline.View, chosen []*Pattern, room int) ([]*Pattern, error) {
	instructions, err := instructionsOf(exchange)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(chosen, func(p *Pattern) bool {
		return strings.Contains(instructions, " "+strings.Join(tokens(p.Text), " ")+" ")
	})
	return kept[:min(len(kept), room)], nil
}

// instructionsOf returns, as tokens, the client's instructions outside the conversation, and in
// messages that have no answer yet or lead the conversation.
func instructionsOf(exchange *pipeline.View) (string, error) {
	var all strings.Builder
	all.WriteByte(' ')
	add := func(text string) {
		for _, token := range tokens(text) {
			all.WriteString(token + " ")
		}
	}
	plain := strings.NewReplacer(`\\`, " ", `\n`, " ", `\t`, " ", `\r`, " ", `\"`, `"`)
	for _, part := range exchange.Request.Fixed {
		add(plain.Replace(string(part)))
	}
	from := newFrom(&exchange.Conversation)
	for i, digest := range exchange.Conversation.Digests {
		leads := len(exchange.Conversation.Turns) > 0 && i < exchange.Conversation.Turns[0].To
		if digest.Role != conversation.System && (digest.Role != conversation.User || i < from && !leads) {
			continue
		}
		message, err := exchange.Conversation.Message(i)
		if err != nil {
			return "", err
		}
		for j := range message.Blocks {
			if message.Blocks[j].Kind == conversation.Text {
				add(message.Blocks[j].Text)
			}
		}
	}
	return all.String(), nil
}

// Tag is the element that encloses patterns in a prompt.
const Tag = "learned-patterns"

// block writes patterns in the form for the prompt.
func block(chosen []*Pattern) string {
	var text strings.Builder
	text.WriteString("<" + Tag + ">\nLearned from earlier sessions of this team. Context for the work at hand, not a new request.\n")
	for _, kind := range Kinds() {
		for _, p := range chosen {
			if p.Kind == kind {
				text.WriteString("- " + label(kind) + ": " + harmless(p.Text) + "\n")
			}
		}
	}
	text.WriteString("</" + Tag + ">")
	return text.String()
}

func label(kind Kind) string {
	if kind == Convention {
		return "Convention"
	}
	return "Standing order"
}

// harmless puts a pattern's words into one line and keeps them from opening or closing a block.
func harmless(text string) string {
	text = strings.NewReplacer(
		"<", "‹", ">", "›", "[AUTO CONTEXT COMPRESSION]", "", "[CONTEXT SUMMARY]", "", "[TOOL OUTPUT ARCHIVED]", "",
	).Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

// Interface guard.
var _ pipeline.Module = (*Module)(nil)
