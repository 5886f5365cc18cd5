package session

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// originalsAtOnce is how many originals of a run are shown at once.
const originalsAtOnce = 12

// pane is a turn: its original beside the text sent.
type pane struct {
	Title   string
	Index   string
	Level   int
	Message int // the first message

	IsChosen bool // the address names it, so that a phone shows it alone
	At       time.Time
	Asked    *session.Asked // the request that it answers; nil if unknown
	ListPath string         // the page with the list
	Previous string         // the address of the message before it; "" if absent
	Next     string

	Originals  []original
	Damaged    []string // messages whose stored bytes do not match their hash
	Missing    bool     // some are not in the archive, perhaps not yet
	MorePath   string
	BeforePath string

	Sent       []text
	AsItCame   bool // the original was sent unchanged, byte for byte
	Inserts    []insert
	SharedWith string // messages that share one text with the row, including its own: "a–b"; "" if it has its own

	Tokens, SentTokens int
	Raw                bool
	Diff               bool
	Exact              bool // the text as sent, not rendered
	Renders            bool // rendering changes some of the text
	IsCut              bool // the text is cut
	TextPath, RawPath  string
	DiffPath           string
	RenderedPath       string
	ExactPath          string
	WholePath          string     // the address of the whole text
	Lines              []diffLine // the difference, if Diff is set

	isWhole bool // the whole text is requested

	MayChange   bool
	MayComment  bool
	CommentPath string // the address to comment on its message

	ContinuePath string // continues the session with the messages up to it; "" if it cannot be
	Remarks      int    // comments on its messages
	end          int    // the message after its last one
	Lane         string
	Messages     string // of the row, in forms: "4", "2-9"
	Pinned       []int
	PinPath      string
	ReleasePath  string
	RestorePath  string
	SelfPath     string

	Epoch *session.EpochOverview // that made the projection; nil if it does not cover the turn
}

// insert is a text that a module put into the prompt.
type insert struct {
	Module   string
	Where    string // "after the message", "after the system prompt"
	Tokens   int
	Text     text
	IsBehind bool // after the message, not after the system prompt
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

// hasInserts reports whether there are inserts after the message.
func (p pane) hasInserts() bool {
	return slices.ContainsFunc(p.Inserts, func(put insert) bool { return put.IsBehind })
}

// view is the pane's view in its address.
func (p pane) view() string {
	switch {
	case p.Raw:
		return "raw"
	case p.Diff:
		return "diff"
	default:
		return ""
	}
}

// less returns how many percent smaller the sent text is; "" if it is not.
func (p pane) less() string {
	if p.Tokens == 0 || p.SentTokens >= p.Tokens {
		return ""
	}
	return fmt.Sprintf("%.1f%% less", 100*float64(p.Tokens-p.SentTokens)/float64(p.Tokens))
}

// storedBefore reports whether the originals shown were durable before their epoch was made.
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

// pane reads a row's originals and the text sent for them.
func (r *reader) pane(ctx context.Context, chosen span, listed row, asked query) (pane, error) {
	p := pane{
		Title: listed.Title, Index: listed.index(), Level: chosen.Level, Message: chosen.From, Tokens: chosen.tokens.Received, SentTokens: chosen.tokens.Sent,
		Raw: asked.Raw, Diff: asked.Diff, Exact: asked.Exact, isWhole: asked.Whole, Pinned: listed.Pinned, AsItCame: chosen.part < 0 || r.projection.Parts[chosen.part].Raw == nil,
	}
	here := query{Message: chosen.From, From: asked.From, Offset: asked.Offset, Folded: asked.Folded, Exact: asked.Exact}
	p.TextPath, p.RawPath, p.DiffPath = r.path(here), r.path(here.as("raw")), r.path(here.as("diff"))
	p.RenderedPath, p.ExactPath = r.path(here.exact(false)), r.path(here.exact(true))
	whole := asked
	whole.Message, whole.Whole = chosen.From, true
	p.WholePath = r.path(whole)
	p.SelfPath = r.path(query{Message: chosen.From, From: -1, Offset: -1})
	p.IsChosen, p.At, p.Asked = asked.Message >= 0, listed.At, listed.Asked
	p.ListPath = r.path(query{Message: -1, From: asked.From, Offset: -1, Folded: asked.Folded})
	if chosen.From > 0 {
		p.Previous = r.path(query{Message: chosen.From - 1, From: -1, Offset: -1, Folded: asked.Folded})
	}
	if chosen.To < r.lane.Position {
		p.Next = r.path(query{Message: chosen.To, From: -1, Offset: -1, Folded: asked.Folded})
	}
	about := strconv.Itoa(chosen.From)
	// Without a fragment, because a browser that jumps to one does not focus a field.
	p.CommentPath = paths.With(paths.Session(r.session), "lane", r.lane.ID.String(), "m", about, "comment", about)
	if r.isMain && r.role.May(tenants.ReadArchive) && chosen.To > 1 {
		p.ContinuePath = paths.With(paths.ContinueSession(r.session), "m", strconv.Itoa(chosen.To-1))
	}
	p.MayComment, p.end = r.mayRead && r.role.May(tenants.CommentSessions), chosen.To
	p.MayChange, p.Lane, p.Messages = r.mayRead && r.role.May(tenants.ChangeSessions), r.lane.ID.String(), chosen.form()
	p.PinPath, p.ReleasePath, p.RestorePath = paths.PinTurn(r.session), paths.ReleaseTurn(r.session), paths.RestoreTurns(r.session)
	if chosen.part >= 0 && len(r.epochs) > 0 {
		p.Epoch = &r.epochs[len(r.epochs)-1]
	}
	if err := r.originals(ctx, chosen, asked, &p); err != nil {
		return pane{}, err
	}
	for _, put := range r.insertsOf(chosen) {
		shown := insert{Module: put.Module, Where: "after the message", Tokens: r.sizes.scaled(put.Tokens), Text: text{Blocks: []block{newBlock("", render.Plain, "", put.Text)}}, IsBehind: true}
		if put.Message == session.InSystem {
			shown.Where, shown.IsBehind = "after the system prompt", false
		}
		p.Inserts = append(p.Inserts, shown)
	}
	if p.AsItCame {
		draw(&p)
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
	draw(&p)
	return p, nil
}

// originals reads the row's messages; of a run, the first few or those from the requested offset.
func (r *reader) originals(ctx context.Context, chosen span, asked query, p *pane) error {
	from := chosen.From
	if asked.Offset > from && asked.Offset < chosen.To {
		from = asked.Offset
	}
	to := min(from+originalsAtOnce, chosen.To)
	step := query{Message: chosen.From, From: asked.From, Folded: asked.Folded, Raw: asked.Raw, Diff: asked.Diff, Exact: asked.Exact}
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

// whole returns the undamaged archived messages from index from to to, and notes which are missing or
// damaged.
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

// sent reads the row's text in the prompt, which may be shared with adjacent rows.
func (r *reader) sent(chosen span, p *pane) error {
	texts := r.texts()
	at := texts[chosen.part]
	part := r.projection.Parts[at]
	if from, to := sharing(texts, at); to-from > 1 {
		p.SharedWith = fmt.Sprintf("%d–%d", r.projection.Parts[from].From, r.projection.Parts[to-1].To-1)
	}
	for _, message := range wire.Elements(bytes.Join([][]byte{[]byte("["), part.Raw, []byte("]")}, nil)) {
		p.Sent = append(p.Sent, r.text(message, p.Raw).unrendered(p.Originals))
	}
	if len(p.Sent) != part.Messages {
		return fmt.Errorf("part %d of projection %d: %d messages can be read, want %d", at, r.projection.Number, len(p.Sent), part.Messages)
	}
	return nil
}

// sharing returns the range of parts that share one text.
func sharing(texts []int, text int) (from, to int) {
	from, to = text, text+1
	for from > 0 && texts[from-1] == text {
		from--
	}
	for to < len(texts) && texts[to] == text {
		to++
	}
	return from, to
}
