package session

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/paths"
)

const (
	originalsAtOnce = 12       // of a run
	maxShown        = 64 << 10 // bytes of one block
)

// pane is a turn: its original beside what was sent.
type pane struct {
	Title string
	Index string
	Level int

	Originals  []original
	Damaged    []string // messages whose stored bytes do not have their hash
	Missing    bool     // some are not in the archive (yet)
	MorePath   string
	BeforePath string

	Sent       []text
	AsItCame   bool // what was sent is the original, byte for byte
	Inserts    []insert
	SharedWith string // the run's text stands further on: messages "a–b"

	Tokens, SentTokens int
	Raw                bool
	Diff               bool
	TextPath, RawPath  string
	DiffPath           string
	Lines              []diffLine // the difference, where Diff is wanted

	MayChange   bool
	Lane        string
	Messages    string // of the row, as forms name them: "4", "2-9"
	Pinned      []int
	PinPath     string
	ReleasePath string
	RestorePath string
	SelfPath    string

	Epoch *session.EpochOverview // that made the projection; nil: none covers the turn
	Now   time.Time
}

// insert is text that a module has put into the prompt.
type insert struct {
	Module   string
	Where    string // "behind the message", "behind the system prompt"
	Tokens   int
	Text     text
	IsBehind bool // the message, not the system prompt
}

// original is a message as the client sent it.
type original struct {
	Index    int
	Role     string
	Hash     string
	Size     int64
	StoredAt time.Time
	Path     string // of its bytes
	Text     text
}

// hasInserts reports whether something was put in behind the message.
func (p pane) hasInserts() bool {
	return slices.ContainsFunc(p.Inserts, func(put insert) bool { return put.IsBehind })
}

// less returns by how many percent what was sent is smaller; empty if it is not.
func (p pane) less() string {
	if p.Tokens == 0 || p.SentTokens >= p.Tokens {
		return ""
	}
	return fmt.Sprintf("%.1f%% less", 100*float64(p.Tokens-p.SentTokens)/float64(p.Tokens))
}

// storedBefore reports whether the originals shown were durable when the epoch
// that stands for them was made.
func (p pane) storedBefore() bool {
	if p.Epoch == nil || len(p.Originals) == 0 {
		return false
	}
	for _, original := range p.Originals {
		if original.StoredAt.After(p.Epoch.At) {
			return false
		}
	}
	return true
}

// pane reads a row's originals and what was sent for them.
func (r *reader) pane(ctx context.Context, chosen span, listed row, asked query) (pane, error) {
	p := pane{
		Title: listed.Title, Index: listed.index(), Level: chosen.Level, Tokens: listed.Tokens, SentTokens: listed.Sent,
		Raw: asked.Raw, Diff: asked.Diff, Pinned: listed.Pinned, AsItCame: chosen.part < 0 || r.projection.Parts[chosen.part].Raw == nil, Now: r.now,
	}
	p.TextPath = r.path(query{Message: chosen.From, From: asked.From, Offset: asked.Offset, Folded: asked.Folded})
	p.RawPath = r.path(query{Message: chosen.From, From: asked.From, Offset: asked.Offset, Folded: asked.Folded, Raw: true})
	p.DiffPath = r.path(query{Message: chosen.From, From: asked.From, Offset: asked.Offset, Folded: asked.Folded, Diff: true})
	p.SelfPath = r.path(query{Message: chosen.From, From: -1, Offset: -1})
	p.MayChange, p.Lane, p.Messages = r.mayRead && r.role.May(tenants.ChangeSessions), r.lane.ID.String(), chosen.form()
	p.PinPath, p.ReleasePath, p.RestorePath = paths.PinTurn(r.session), paths.ReleaseTurn(r.session), paths.RestoreTurns(r.session)
	if chosen.part >= 0 && len(r.epochs) > 0 {
		p.Epoch = &r.epochs[len(r.epochs)-1]
	}
	if err := r.originals(ctx, chosen, asked, &p); err != nil {
		return pane{}, err
	}
	for _, put := range r.insertsOf(chosen) {
		shown := insert{Module: put.Module, Where: "behind the message", Tokens: put.Tokens, Text: text{Blocks: []block{newBlock("", put.Text)}}, IsBehind: true}
		if put.Message == session.InSystem {
			shown.Where, shown.IsBehind = "behind the system prompt", false
		}
		p.Inserts = append(p.Inserts, shown)
	}
	if p.AsItCame {
		return p, nil
	}
	if err := r.sent(chosen, &p); err != nil {
		return pane{}, err
	}
	if p.Diff {
		p.Lines = diffOf(p.Originals, p.Sent)
	}
	if !chosen.isRun() && len(p.Originals) == 1 && len(p.Sent) == 1 && !p.Raw {
		mark(&p.Originals[0].Text, &p.Sent[0])
	}
	return p, nil
}

// originals reads the row's messages, of a run the first few or those from the
// offset that is asked for.
func (r *reader) originals(ctx context.Context, chosen span, asked query, p *pane) error {
	from := chosen.From
	if asked.Offset > from && asked.Offset < chosen.To {
		from = asked.Offset
	}
	to := min(from+originalsAtOnce, chosen.To)
	step := query{Message: chosen.From, From: asked.From, Folded: asked.Folded, Raw: asked.Raw, Diff: asked.Diff}
	if to < chosen.To {
		step.Offset = to
		p.MorePath = r.path(step)
	}
	if from > chosen.From {
		step.Offset = max(chosen.From, from-originalsAtOnce)
		p.BeforePath = r.path(step)
	}
	entries, err := r.whole(ctx, from, to, p)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		p.Originals = append(p.Originals, original{
			Index: entry.Index, Role: roleName(entry.Role), Hash: hex.EncodeToString(entry.Hash[:]), Size: int64(len(entry.Raw)),
			StoredAt: entry.StoredAt, Path: paths.OriginalBytes(r.session, r.lane.ID, entry.Index), Text: r.text(entry.Raw, p.Raw),
		})
	}
	return nil
}

// whole returns the messages from index from to to that are in the archive and
// undamaged, and notes which are not.
func (r *reader) whole(ctx context.Context, from, to int, p *pane) ([]archive.Entry, error) {
	entries, err := r.archive.Originals(ctx, r.workspace, r.lane.ID, from, to)
	if err == nil {
		p.Missing = len(entries) < to-from
		return entries, nil
	}
	if !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrNotFound) {
		return nil, err
	}
	for at := from; at < to; at++ {
		entry, err := r.archive.Original(ctx, r.workspace, r.lane.ID, at)
		switch {
		case errors.Is(err, archive.ErrDamaged):
			p.Damaged = append(p.Damaged, strconv.Itoa(at))
		case errors.Is(err, archive.ErrNotFound):
			p.Missing = true
		case err != nil:
			return nil, err
		default:
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// sent reads what stands for the row in the prompt. The text of a run that goes on
// at another level stands with its last part.
func (r *reader) sent(chosen span, p *pane) error {
	at := chosen.part
	for at+1 < len(r.projection.Parts) && r.projection.Parts[at].Messages == 0 {
		at++
	}
	part := r.projection.Parts[at]
	if at != chosen.part {
		p.SharedWith = fmt.Sprintf("%d–%d", chosen.From, part.To-1)
		p.SentTokens = part.Tokens
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(bytes.Join([][]byte{[]byte("["), part.Raw, []byte("]")}, nil), &messages); err != nil {
		return fmt.Errorf("part %d of projection %d: %w", at, r.projection.Number, err)
	}
	for _, message := range messages {
		p.Sent = append(p.Sent, r.text(message, p.Raw))
	}
	return nil
}

// text is a message as people read it.
type text struct {
	Blocks []block
}

// block is one piece of a message.
type block struct {
	Title    string // what it is; empty for plain text
	Segments []segment
	More     int // bytes that are not shown
}

// segment is a run of text; Class says how it is drawn: "kept" was sent, "gone"
// was not, "" is neither.
type segment struct{ Class, Text string }

// text returns a message to read: its blocks, or its bytes if raw is wanted or it
// cannot be understood.
func (r *reader) text(raw json.RawMessage, wantsRaw bool) text {
	message, err := r.codec.Parse(raw)
	if wantsRaw || err != nil {
		return text{Blocks: []block{newBlock("", string(raw))}}
	}
	var blocks []block
	for _, piece := range message.Blocks {
		blocks = append(blocks, newBlock(blockTitle(piece), textOf(piece)))
	}
	return text{Blocks: blocks}
}

func newBlock(title, content string) block {
	shown := content
	if len(shown) > maxShown {
		shown = strings.ToValidUTF8(shown[:maxShown], "")
	}
	b := block{Title: title, More: len(content) - len(shown)}
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
	switch {
	case piece.Kind == conversation.ToolCall && json.Valid([]byte(piece.Text)):
		lines = append(lines, indented(piece.Text))
	case piece.Text != "":
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

// indented returns JSON with a line for each member.
func indented(arguments string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(arguments), "", "  "); err != nil {
		return arguments
	}
	return out.String()
}

// mark tells apart, block by block, what of the original was sent and what not.
func mark(original, sent *text) {
	if len(original.Blocks) != len(sent.Blocks) {
		return
	}
	for i := range original.Blocks {
		was, is := &original.Blocks[i], &sent.Blocks[i]
		if len(was.Segments) != 1 || len(is.Segments) != 1 || was.Segments[0].Text == is.Segments[0].Text {
			continue
		}
		before, after := was.Segments[0].Text, is.Segments[0].Text
		was.Segments, is.Segments = compared(before, after)
	}
}

// leastKept is the length, in bytes, of what has to stand in both texts behind where
// they part to count as sent.
const leastKept = 8

// compared tells apart what two texts share and what not: their beginning, and
// further lines of the original, such as its verdict, that stand in the other.
func compared(original, sent string) (was, is []segment) {
	at := commonPrefix(original, sent)
	was, is = []segment{{"kept", original[:at]}}, []segment{{"kept", sent[:at]}}
	for line := range strings.Lines(sent[at:]) {
		core, _, _ := strings.Cut(line, "…")
		core, _, _ = strings.Cut(core, " [")
		core = strings.TrimRight(core, "\n")
		gap := strings.Index(original[at:], core)
		if len(core) < leastKept || gap < 0 {
			is = append(is, segment{"stub", line})
			continue
		}
		was = append(was, segment{"gone", original[at : at+gap]}, segment{"kept", core})
		is = append(is, segment{"kept", core}, segment{"stub", line[len(core):]})
		at += gap + len(core)
	}
	return nonEmpty(append(was, segment{"gone", original[at:]})...), nonEmpty(is...)
}

// commonPrefix returns how many bytes two texts share at their head, whole
// characters only.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) {
		x, size := utf8.DecodeRuneInString(a[n:])
		y, _ := utf8.DecodeRuneInString(b[n:])
		if x != y {
			break
		}
		n += size
	}
	return min(n, len(b))
}

func nonEmpty(segments ...segment) []segment {
	var kept []segment
	for _, segment := range segments {
		if segment.Text != "" {
			kept = append(kept, segment)
		}
	}
	return kept
}

// html returns a block's text as HTML. All of it is escaped: it is what others wrote.
func (b block) html() string {
	var out strings.Builder
	for _, segment := range b.Segments {
		if segment.Class == "" {
			out.WriteString(html.EscapeString(segment.Text))
			continue
		}
		fmt.Fprintf(&out, `<span class="%s">%s</span>`, segment.Class, html.EscapeString(segment.Text))
	}
	return out.String()
}
