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
	maxSide  = 12 << 10  // bytes of one side unless all are requested
	maxWhole = 512 << 10 // bytes of one side if all are requested
	patience = 3 * time.Second
)

// text is a message for people to read.
type text struct {
	Blocks []block
}

// block is one piece of a message.
type block struct {
	Title    string // the block's kind; "" for plain text
	Kind     render.Kind
	File     string // the file that a result is about; "" if unknown
	Segments []segment
	More     int // bytes not shown

	Shown string   // one HTML element; "" if nothing is shown
	Notes []string // remarks on unexpected content
}

// segment is a run of text. Class is its style: "kept" was sent, "gone" was not, "" is neutral.
type segment struct{ Class, Text string }

// text returns a readable message: its blocks, or its bytes if raw is requested or they cannot be parsed.
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

// call is a tool's call, for describing its result.
type call struct{ name, file string }

// noteCalls records a message's tool calls and the files that they read.
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

// kindOf returns a block's kind for rendering.
func kindOf(piece conversation.Block) render.Kind {
	switch piece.Kind {
	case conversation.Text, conversation.Thinking:
		return render.Prose
	case conversation.ToolCall, conversation.ToolResult, conversation.Opaque:
		return render.Result // a call whose arguments are not JSON stays unchanged
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

// blockTitle names a block's kind; "" for plain text.
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
		return "Sent unchanged: " + piece.Name
	case conversation.Text:
		return ""
	default:
		return string(piece.Kind)
	}
}

// textOf returns a block's text.
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

// unrendered shows blocks that differ from the original's as plain text, because they are our own text, cut
// from the originals.
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

// draw renders a pane as HTML: the beginning of each side, or all if requested.
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

// drawing is one side while it is rendered.
type drawing struct {
	isExact bool
	left    int       // bytes that may still be shown
	until   time.Time // afterwards texts are shown unrendered
	isCut   bool
	renders bool // rendering changes some text
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

// renders reports whether rendering changes the block. Blocks with marked differences stay as text.
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

// cut limits a block's bytes and returns how many it removed.
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

// draw renders the block as HTML. Blocks with marked differences, or requested as sent, stay as text.
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
			b.Notes = append(b.Notes, "Hidden, reordering and control characters are spelled out. The original bytes hold them.")
			return
		}
	}
}

// html returns a block's text as HTML. All of it is escaped, because others wrote it.
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
