package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

const (
	rowsPerPage  = 100
	previewBytes = 256 << 10 // larger messages are listed without a preview
	previewRunes = 120
)

// reader reads the turns of a lane.
type reader struct {
	archive    archive.Reader
	store      session.Records
	codec      wire.Codec
	workspace  tenants.WorkspaceID
	session    uuid.UUID
	lane       session.LaneOverview
	projection session.Projection // the newest; its Number is 0 before the first
	epochs     []session.EpochOverview
	inserts    []session.Insert
	pins       []session.Pin
	calls      map[string]call // by their ids, from the messages read
	mayRead    bool            // the messages may be shown
	isMain     bool            // the lane is the session's main one
	requests   sessiondb.Browser
	role       tenants.Role
	now        time.Time
	archived   []int // tokens of each message, -1 if not in the archive; set once the rows are measured
	sizes      sizes // the same
}

// span is a row before its messages are read: one message, or a run of messages with one text for all of
// them.
type span struct {
	From, To int
	Level    int
	part     int // of the projection; -1 if after it, sent unchanged
	tokens   figure
}

func (s span) isRun() bool { return s.To-s.From > 1 }

// form returns the span's value in forms.
func (s span) form() string {
	if s.isRun() {
		return fmt.Sprintf("%d-%d", s.From, s.To-1)
	}
	return strconv.Itoa(s.From)
}

// spans returns all rows of the lane, in order.
func (r *reader) spans() []span {
	var spans []span
	for i, part := range r.projection.Parts {
		if part.Raw != nil && part.To-part.From > 1 {
			spans = append(spans, span{From: part.From, To: part.To, Level: part.Level, part: i})
			continue
		}
		for at := part.From; at < part.To; at++ {
			spans = append(spans, span{From: at, To: at + 1, Level: part.Level, part: i})
		}
	}
	for at := r.projection.Covers; at < r.lane.Position; at++ {
		spans = append(spans, span{From: at, To: at + 1, part: -1})
	}
	return spans
}

// row is a row of the turn list.
type row struct {
	span

	Title   string // the speaker
	Preview string // its beginning
	Known   bool   // the originals are in the archive
	PutIn   string // modules with inserts after it
	Path    string
	Current bool
	Pinned  []int // its messages that are never compressed
	Remarks int   // comments on its messages

	At    time.Time      // when it came; zero if unknown
	Asked *session.Asked // the request that it answers; nil if unknown
}

// index returns the position of the row's messages in the client's list.
func (r row) index() string {
	if r.isRun() {
		return fmt.Sprintf("%d–%d", r.From, r.To-1)
	}
	return strconv.Itoa(r.From)
}

// readModel is the turn list with the chosen turn.
type readModel struct {
	Rows          []row
	Prompt, Rest  figure // of the rows' prompt, and the part of it outside the rows; zero if unknown
	First, Total  int    // number of the first row, and of all
	Compressed    int    // rows below L0
	Earlier       string
	Later         string
	All, OnlyDeep string // addresses of the two filters
	Folded        bool
	MayRead       bool
	Role          tenants.Role
	Position      int
	Find          findModel
	Pane          *pane   // optional
	Answer        *answer // to the newest request, if archived
	Now           time.Time
	MayChange     bool
	RestorePath   string // puts compressed turns back
	comments      commentsModel
	Lane          string
}

// part is the part of the turn list that a request asks for.
type part int

const (
	allOfIt  part = iota
	onlyPane      // the chosen turn
	onlyRows      // a page of the list
)

// read returns the requested page of the turn list and the chosen turn.
func (r *reader) read(ctx context.Context, asked query, wanted part) (readModel, error) {
	all := r.spans()
	if err := r.measure(ctx, all); err != nil {
		return readModel{}, err
	}
	shown := all
	if asked.Folded {
		shown = compressed(all)
	}
	model := readModel{
		Prompt: r.sizes.prompt, Rest: r.sizes.rest, Total: len(shown), Compressed: len(compressed(all)), Folded: asked.Folded, MayRead: r.mayRead, Role: r.role, Position: r.lane.Position,
		MayChange: r.mayRead && r.role.May(tenants.ChangeSessions), RestorePath: paths.RestoreTurns(r.session), Lane: r.lane.ID.String(),
		All: r.path(query{Message: asked.Message, From: -1, Offset: -1}), OnlyDeep: r.path(query{Message: asked.Message, From: -1, Offset: -1, Folded: true}),
	}
	if len(shown) == 0 {
		return model, nil
	}
	model.First = firstRow(shown, asked)
	page := shown[model.First:min(model.First+rowsPerPage, len(shown))]
	r.neighbors(&model, shown, len(page), asked)
	chosen := choose(page, asked.Message)
	switch wanted {
	case onlyPane: // with the turn before it, because that has the calls of its results
		page = page[max(chosen-1, 0) : chosen+1]
		chosen = len(page) - 1
	case onlyRows:
		chosen = -1
	case allOfIt:
	}
	var err error
	if model.Rows, err = r.rows(ctx, page, chosen, asked); err != nil {
		return readModel{}, err
	}
	if model.Now = r.now; r.mayRead && wanted == allOfIt {
		if model.Answer, err = r.answer(ctx); err != nil {
			return readModel{}, err
		}
	}
	if r.mayRead && chosen >= 0 {
		pane, err := r.pane(ctx, page[chosen], model.Rows[chosen], asked)
		if err != nil {
			return readModel{}, err
		}
		model.Pane = &pane
	}
	return model, nil
}

// neighbors fills in the addresses of the previous and the next page. A page is identified by its first
// message, because an epoch does not move messages.
func (r *reader) neighbors(model *readModel, shown []span, rows int, asked query) {
	next := query{Message: -1, Offset: -1, Folded: asked.Folded, Raw: asked.Raw, Diff: asked.Diff, Exact: asked.Exact}
	if model.First > 0 {
		next.From = shown[max(0, model.First-rowsPerPage)].From
		model.Earlier = r.path(next)
	}
	if end := model.First + rows; end < len(shown) {
		next.From = shown[end].From
		model.Later = r.path(next)
	}
}

// compressed returns the rows below L0.
func compressed(all []span) []span {
	var deep []span
	for _, span := range all {
		if span.Level > 0 {
			deep = append(deep, span)
		}
	}
	return deep
}

// firstRow returns the page's first row: the one with the requested first message, or the start of the page
// with the requested message.
func firstRow(spans []span, asked query) int {
	if asked.From >= 0 {
		for i, span := range spans {
			if asked.From < span.To {
				return i
			}
		}
	}
	for i, span := range spans {
		if asked.Message >= span.From && asked.Message < span.To {
			return i / rowsPerPage * rowsPerPage
		}
	}
	return 0
}

// choose returns the row of a page to open: the one with the requested message, else the first compressed
// one, else the first.
func choose(page []span, message int) int {
	deep := -1
	for i, span := range page {
		if message >= span.From && message < span.To {
			return i
		}
		if deep < 0 && span.Level > 0 {
			deep = i
		}
	}
	return max(deep, 0)
}

// path returns the address of a query.
func (r *reader) path(asked query) string {
	number := func(n int) string {
		if n < 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	show, view, exact, whole := "", "", "", ""
	if asked.Folded {
		show = "compressed"
	}
	if asked.Exact {
		exact = "exact"
	}
	if asked.Whole {
		whole = "1"
	}
	switch {
	case asked.Raw:
		view = "raw"
	case asked.Diff:
		view = "diff"
	}
	return paths.With(paths.Session(r.session), "lane", r.lane.ID.String(), "m", number(asked.Message),
		"from", number(asked.From), "o", number(asked.Offset), "show", show, "view", view, "text", exact, "all", whole)
}

// rows reads a page of the turn list.
func (r *reader) rows(ctx context.Context, page []span, chosen int, asked query) ([]row, error) {
	byIndex, err := r.entries(ctx, page)
	if err != nil {
		return nil, err
	}
	messages, err := r.messages(ctx, page, byIndex)
	if err != nil {
		return nil, err
	}
	for _, span := range page {
		r.noteCalls(messages[span.From])
	}
	rows := make([]row, len(page))
	for i, span := range page {
		rows[i] = row{span: span, Current: i == chosen, Known: true,
			Path: r.path(query{Message: span.From, From: asked.From, Offset: -1, Folded: asked.Folded, Raw: asked.Raw, Diff: asked.Diff, Exact: asked.Exact})}
		for at := span.From; at < span.To; at++ {
			rows[i].Known = rows[i].Known && r.archived[at] >= 0
		}
		r.describe(&rows[i], byIndex[span.From], messages)
		if entry, known := byIndex[span.From]; known && !span.isRun() {
			rows[i].At = entry.StoredAt
		}
	}
	return rows, r.clock(ctx, rows)
}

// entries lists the single messages of a page, by index. Runs need no entries: a long one is not read, a
// short one only along with the messages beside it.
func (r *reader) entries(ctx context.Context, page []span) (map[int]archive.Entry, error) {
	byIndex := make(map[int]archive.Entry, len(page))
	for _, stretch := range stretches(page, rowsPerPage, func(span) bool { return true }) {
		entries, err := r.archive.Entries(ctx, r.workspace, r.lane.ID, stretch[0], stretch[1]-stretch[0])
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			byIndex[entry.Index] = entry
		}
	}
	return byIndex, nil
}

// describe fills in a row's text.
func (r *reader) describe(row *row, entry archive.Entry, messages map[int]conversation.Message) {
	row.Pinned = r.pinnedIn(row.span)
	for _, insert := range r.insertsOf(row.span) {
		if what := " + " + components.ModuleName(insert.Module); !strings.Contains(row.PutIn, what) {
			row.PutIn += what
		}
	}
	if row.isRun() {
		row.Title = fmt.Sprintf("%d messages, %s", row.To-row.From, map[bool]string{true: "outline of requests", false: "first sentences"}[row.Level == 3])
		return
	}
	message, read := messages[row.From]
	if !read {
		row.Title = roleName(entry.Role)
		return
	}
	row.Title, row.Preview = render.Visible(titleOfMessage(message, r.calls)), render.Visible(preview(message))
}

// messages reads the single messages of a page, by index. It leaves out messages that are too large, and
// damaged ones, because their own page reports the damage.
func (r *reader) messages(ctx context.Context, page []span, entries map[int]archive.Entry) (map[int]conversation.Message, error) {
	read := map[int]conversation.Message{}
	if !r.mayRead {
		return read, nil
	}
	isWorthReading := func(one span) bool {
		entry, known := entries[one.From]
		return known && entry.Size <= previewBytes
	}
	for _, stretch := range stretches(page, 0, isWorthReading) {
		originals, err := r.archive.Originals(ctx, r.workspace, r.lane.ID, stretch[0], stretch[1])
		if errors.Is(err, archive.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, original := range originals {
			if message, err := r.codec.Parse(original.Raw); err == nil {
				read[original.Index] = message
			}
		}
	}
	return read, nil
}

// stretches returns the ranges of the wanted single messages of a page. Messages at most gap apart share a
// range, with those between them.
func stretches(page []span, gap int, isWanted func(span) bool) [][2]int {
	var found [][2]int
	for _, one := range page {
		if one.isRun() || !isWanted(one) {
			continue
		}
		if n := len(found); n > 0 && one.From-found[n-1][1] <= gap {
			found[n-1][1] = one.To
			continue
		}
		found = append(found, [2]int{one.From, one.To})
	}
	return found
}

func roleName(role conversation.Role) string {
	switch role {
	case conversation.System:
		return "System"
	case conversation.User:
		return "User"
	case conversation.Assistant:
		return "Assistant"
	case conversation.Tool:
		return "Tool result"
	default:
		return "Message"
	}
}

// titleOfMessage names the speaker: "User", "Assistant · Bash, Read", "Tool result · Bash".
func titleOfMessage(message conversation.Message, calls map[string]call) string {
	var tools []string
	title := roleName(message.Role)
	for _, block := range message.Blocks {
		switch block.Kind {
		case conversation.ToolCall:
			tools = append(tools, block.Name)
		case conversation.ToolResult:
			title = "Tool result"
			if name := calls[block.ID].name; name != "" {
				tools = append(tools, name)
			}
		default:
		}
	}
	if len(tools) == 0 {
		return title
	}
	return title + " · " + strings.Join(tools, ", ")
}

// preview returns a message's beginning, on one line.
func preview(message conversation.Message) string {
	for _, block := range message.Blocks {
		if block.Kind == conversation.Thinking && len(message.Blocks) > 1 {
			continue
		}
		if line := strings.Join(strings.Fields(textOf(block)), " "); line != "" {
			return excerpts.Start(line, previewRunes)
		}
	}
	return ""
}

// pinnedIn returns a row's messages that are never compressed.
func (r *reader) pinnedIn(of span) []int {
	var pinned []int
	for _, pin := range r.pins {
		if of.From <= pin.Message && pin.Message < of.To {
			pinned = append(pinned, pin.Message)
		}
	}
	return pinned
}

// insertsOf returns the modules' inserts at an unchanged row; the first row also has those after the system
// prompt.
func (r *reader) insertsOf(of span) []session.Insert {
	var found []session.Insert
	for i := range r.inserts {
		insert := &r.inserts[i]
		isHere := of.From <= insert.Message && insert.Message < of.To && insert.Stands(&r.projection)
		if isHere || insert.Message == session.InSystem && of.From == 0 {
			found = append(found, *insert)
		}
	}
	return found
}
