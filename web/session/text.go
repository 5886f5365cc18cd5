package session

import (
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/web/components"
	"palimpsest/web/render"
)

const (
	maxShown = 64 << 10  // bytes of one block
	maxSide  = 12 << 10  // bytes of one side until all of it is asked for
	maxWhole = 512 << 10 // bytes of one side then
	patience = 3 * time.Second
)

// text is a message as people read it.
type text struct {
	Blocks []block
}

// block is one piece of a message.
type block struct {
	Title    string // what it is; empty for plain text
	Kind     render.Kind
	File     string // that a result is about; empty: not known
	Segments []segment
	More     int // bytes that are not shown

	Shown string   // one element of HTML; empty if nothing is shown
	Notes []string // what is not as one would expect of it
}

// segment is a run of text; Class says how it is drawn: "kept" was sent, "gone"
// was not, "" is neither.
type segment struct{ Class, Text string }

// text returns a message to read: its blocks, or its bytes if raw is wanted or it
// cannot be understood.
func (r *reader) text(raw json.RawMessage, wantsRaw bool) text {
	message, err := r.codec.Parse(raw)
	if wantsRaw || err != nil {
		return text{Blocks: []block{newBlock("", render.Plain, "", string(raw))}}
	}
	r.noteCalls(message)
	var blocks []block
	for _, piece := range message.Blocks {
		file := ""
		if piece.Kind == conversation.ToolResult {
			file = r.calls[piece.ID].file
		}
		blocks = append(blocks, newBlock(blockTitle(piece), kindOf(piece), file, textOf(piece)))
	}
	return text{Blocks: blocks}
}

// call is a tool's call, as its result is told by it.
type call struct{ name, file string }

// noteCalls keeps which tools a message calls, and the files that they are to read.
func (r *reader) noteCalls(message conversation.Message) {
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.ToolCall {
			continue
		}
		noted := call{name: block.Name}
		if parsed := ledger.ParseCall(block); len(parsed.Reads) == 1 {
			noted.file = parsed.Reads[0]
		}
		r.calls[block.ID] = noted
	}
}

// kindOf says how a block is rendered.
func kindOf(piece conversation.Block) render.Kind {
	switch piece.Kind {
	case conversation.Text, conversation.Thinking:
		return render.Prose
	case conversation.ToolCall, conversation.ToolResult, conversation.Opaque:
		return render.Result // a call whose arguments are no JSON stays as it is
	default:
		return render.Plain
	}
}

func newBlock(title string, kind render.Kind, file, content string) block {
	shown := content
	if len(shown) > maxShown {
		shown = strings.ToValidUTF8(shown[:maxShown], "")
	}
	b := block{Title: render.Visible(title), Kind: kind, File: file, More: len(content) - len(shown)}
	if shown != "" {
		b.Segments = []segment{{Text: shown}}
	}
	return b
}

// blockTitle says what a block is; empty for plain text.
func blockTitle(piece conversation.Block) string {
	switch piece.Kind {
	case conversation.Thinking:
		return "Thinking"
	case conversation.ToolCall:
		return "Call of " + piece.Name
	case conversation.ToolResult:
		if piece.IsError {
			return "Tool result, failed"
		}
		return "Tool result"
	case conversation.Media:
		return "Attachment"
	case conversation.Opaque:
		return "Passed on as it is: " + piece.Name
	case conversation.Text:
		return ""
	default:
		return string(piece.Kind)
	}
}

// textOf returns what a block says.
func textOf(piece conversation.Block) string {
	lines := []string{}
	if piece.Text != "" {
		lines = append(lines, piece.Text)
	}
	for _, media := range piece.Media {
		size := ""
		if media.Size > 0 {
			size = fmt.Sprintf(", %d bytes", media.Size)
		}
		lines = append(lines, fmt.Sprintf("[%s%s]", media.Type, size))
	}
	return strings.Join(lines, "\n")
}

// unrendered returns what stands for originals: what is not a block of its own is
// ours, and cut out of what they are.
func (t text) unrendered(originals []original) text {
	for i := range t.Blocks {
		is := func(original original) bool {
			return len(originals) == 1 && i < len(original.Text.Blocks) && slices.Equal(original.Text.Blocks[i].Segments, t.Blocks[i].Segments)
		}
		if !slices.ContainsFunc(originals, is) {
			t.Blocks[i].Kind = render.Plain
		}
	}
	return t
}

// draw makes HTML of what a pane shows: of each side its beginning, unless all is
// asked for.
func draw(p *pane) {
	side := drawing{isExact: p.Exact || p.Raw, left: maxSide, until: time.Now().Add(patience)}
	if p.isWhole {
		side.left = maxWhole
	}
	sent := side
	for i := range p.Originals {
		side.draw(&p.Originals[i].Text)
	}
	for i := range p.Sent {
		sent.draw(&p.Sent[i])
	}
	for i := range p.Inserts {
		sent.draw(&p.Inserts[i].Text)
	}
	p.Renders = side.renders || sent.renders
	p.IsCut = (side.isCut || sent.isCut) && !p.isWhole
}

// drawing is one side that is made.
type drawing struct {
	isExact bool
	left    int       // bytes that it may still show
	until   time.Time // after which texts are shown as they are
	isCut   bool
	renders bool // some text looks otherwise rendered
}

func (d *drawing) draw(text *text) {
	for i := range text.Blocks {
		b := &text.Blocks[i]
		if cut := b.cut(d.left); cut > 0 {
			d.isCut = true
			b.More += cut
		}
		d.left -= b.size()
		d.renders = d.renders || b.renders()
		b.draw(d.isExact || time.Now().After(d.until))
	}
}

// renders reports whether the block looks otherwise once it is rendered: what is told
// apart from what was sent stands as it is.
func (b *block) renders() bool {
	return len(b.Segments) == 1 && b.Segments[0].Class == "" && b.Kind != render.Plain
}

func (b *block) size() int {
	size := 0
	for _, segment := range b.Segments {
		size += len(segment.Text)
	}
	return size
}

// cut leaves at most so many bytes of a block and returns how many it took away.
func (b *block) cut(most int) int {
	before := b.size()
	for i := range b.Segments {
		if text := b.Segments[i].Text; len(text) > most {
			b.Segments[i].Text = strings.ToValidUTF8(text[:most], "")
			b.Segments = b.Segments[:i+1]
			break
		}
		most -= len(b.Segments[i].Text)
	}
	b.Segments = nonEmpty(b.Segments...)
	return before - b.size()
}

// draw makes the block's HTML. What is told apart from what was sent, or is wanted as it
// was sent, stands as it is.
func (b *block) draw(isExact bool) {
	if b.More > 0 {
		b.Notes = append(b.Notes, components.Size(int64(b.More))+" more are not shown here. The original bytes hold them.")
	}
	if len(b.Segments) == 0 {
		return
	}
	if isExact || len(b.Segments) > 1 || b.Segments[0].Class != "" {
		b.Shown = "<pre>" + b.html() + "</pre>"
	} else {
		var isWhole bool
		if b.Shown, isWhole = render.HTML(b.Kind, b.File, b.Segments[0].Text); !isWhole {
			b.Notes = append(b.Notes, "Too large, too deep or too slow to be rendered: shown as it was sent.")
		}
	}
	for _, segment := range b.Segments {
		if strings.ReplaceAll(segment.Text, "\r\n", "\n") != render.Visible(segment.Text) {
			b.Notes = append(b.Notes, "Characters that hide, reorder or control are spelled out. The original bytes hold them.")
			return
		}
	}
}

// html returns a block's text as HTML. All of it is escaped: it is what others wrote.
func (b *block) html() string {
	var out strings.Builder
	for _, segment := range b.Segments {
		escaped := html.EscapeString(render.Visible(segment.Text))
		if segment.Class == "" {
			out.WriteString(escaped)
			continue
		}
		fmt.Fprintf(&out, `<span class="%s">%s</span>`, segment.Class, escaped)
	}
	return out.String()
}
