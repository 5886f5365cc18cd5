package session

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

const (
	offered      = 12  // sessions offered for comparison
	comparedStep = 500 // messages of each session compared at once
)

// comparison is two sessions side by side, or one with the choices for the other.
type comparison struct {
	First, Second *counterpart // Second is nil before the choice

	Parting *parting // the first difference, or nil if unknown
	Offers  []session.Overview
	Field   components.FieldModel
}

// counterpart is one of the sessions.
type counterpart struct {
	model

	Totals   session.Totals
	readable bool
}

// parting is the first message in which two sessions differ.
type parting struct {
	At            int
	First, Second templ.Component // nil if the session has no such message
	FirstTitle    string
	SecondTitle   string
	Why           string // why the messages are not compared; "" if they are
	Same          bool   // all messages are equal
}

// CompareSessions shows two sessions side by side. The list of sessions passes the ticked boxes.
func (h *Handler) CompareSessions(c echo.Context, who tenants.Principal) error {
	return comparer{h}.show(c, who)
}

// comparer compares two sessions.
type comparer struct{ *Handler }

func (h comparer) show(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	ticked := c.QueryParams()["id"]
	first, typed := c.QueryParam("a"), strings.TrimSpace(c.QueryParam("b"))
	switch {
	case first == "" && len(ticked) == 0:
		return layout.Redirect(c, paths.With(paths.Sessions, "compare", "none"))
	case first == "" && len(ticked) == 2:
		return layout.Redirect(c, paths.With(paths.CompareSessionsWith, "a", ticked[0], "b", ticked[1]))
	case first == "":
		first = ticked[0]
	}
	id, err := uuid.Parse(first)
	if err != nil {
		return session.ErrNotFound
	}
	var shown comparison
	if shown.First, err = h.compared(ctx, who, id); err != nil {
		return err
	}
	status := http.StatusOK
	shown.Field = components.FieldModel{Label: "Id of another session", Name: "b", Value: typed}
	if typed != "" {
		if shown.Second, err = h.other(ctx, who, id, typed); err != nil {
			return err
		}
		if shown.Second == nil {
			status, shown.Field.Error = http.StatusUnprocessableEntity, "There is no other session with this id in the workspace."
		}
	}
	if shown.Second != nil {
		shown.Parting, err = h.parting(ctx, who, shown.First, shown.Second)
	} else {
		shown.Offers, err = h.offers(ctx, who, id, ticked)
	}
	if err != nil {
		return err
	}
	frame := layout.Frame{Title: "Compare sessions", Section: layout.Sessions, Who: who, Breadcrumbs: []layout.Breadcrumb{
		{Title: "Sessions", Path: paths.Sessions}, {Title: id.String()[:8], Path: paths.Session(id)}, {Title: "Compare"},
	}}
	return layout.Page(c, status, frame, compareView(shown))
}

// other returns the session with the typed id, or nil if it does not exist or is the first one.
func (h comparer) other(ctx context.Context, who tenants.Principal, first uuid.UUID, typed string) (*counterpart, error) {
	id, err := uuid.Parse(typed)
	if err != nil || id == first {
		return nil, nil //nolint:nilnil,nilerr // the form says so
	}
	found, err := h.compared(ctx, who, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil //nolint:nilnil // the form says so
	}
	return found, err
}

// offers returns other sessions: the ticked ones, or else the most recently active.
func (h comparer) offers(ctx context.Context, who tenants.Principal, first uuid.UUID, ticked []string) ([]session.Overview, error) {
	may, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return nil, err
	}
	filter := session.Filter{Show: session.ShowConversations, Masked: !may.All, Shown: may.Keys, Limit: offered + 1}
	for _, text := range ticked[:min(len(ticked), offered+1)] {
		if id, err := uuid.Parse(text); err == nil && id != first {
			filter.IDs, filter.Show = append(filter.IDs, id), session.ShowAll
		}
	}
	page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, filter)
	if err != nil {
		return nil, err
	}
	var offers []session.Overview
	for _, overview := range page.Sessions {
		if overview.ID != first && len(offers) < offered {
			offers = append(offers, overview)
		}
	}
	return offers, nil
}

// compared reads one of the sessions, with its main lane.
func (h comparer) compared(ctx context.Context, who tenants.Principal, id uuid.UUID) (*counterpart, error) {
	of, err := h.subjectOf(ctx, who, id, "")
	if err != nil {
		return nil, err
	}
	workspace := who.Workspace.ID
	side := counterpart{readable: of.mayRead, model: model{Detail: of.detail, Title: titleOf(of.detail.Overview), Lane: of.lane, Now: h.deps.Now()}}
	if side.Timeline, err = h.deps.Sessions.Timeline(ctx, workspace, id, of.lane.ID, chartPoints); err != nil {
		return nil, err
	}
	if side.Epochs, err = h.deps.Sessions.Epochs(ctx, workspace, of.lane.ID); err != nil {
		return nil, err
	}
	side.Totals, err = h.deps.Sessions.Totals(ctx, workspace, id)
	return &side, err
}

// parting finds the first message in which the main lanes of two sessions differ, by the hashes of the
// clients' messages.
func (h comparer) parting(ctx context.Context, who tenants.Principal, a, b *counterpart) (*parting, error) {
	if !a.readable || !b.readable {
		return &parting{Why: "The workspace does not let you read both sessions, so their messages are not compared."}, nil
	}
	shared := min(a.Lane.Position, b.Lane.Position)
	for from := 0; from < shared; from += comparedStep {
		of, err := h.deps.Archive.Entries(ctx, who.Workspace.ID, a.Lane.ID, from, comparedStep)
		if err != nil {
			return nil, err
		}
		others, err := h.deps.Archive.Entries(ctx, who.Workspace.ID, b.Lane.ID, from, comparedStep)
		if err != nil {
			return nil, err
		}
		if at, differs := firstDifference(of, others, from, min(from+comparedStep, shared)); differs {
			return h.parted(ctx, who, a, b, at)
		}
	}
	if a.Lane.Position == b.Lane.Position {
		return &parting{Same: true}, nil
	}
	return h.parted(ctx, who, a, b, shared)
}

// firstDifference returns the first message that is not in both of two lists of entries.
func firstDifference(a, b []archive.Entry, from, to int) (at int, differs bool) {
	byIndex := make(map[int]archive.Entry, len(b))
	for _, entry := range b {
		byIndex[entry.Index] = entry
	}
	known := make(map[int]archive.Entry, len(a))
	for _, entry := range a {
		known[entry.Index] = entry
	}
	for at := from; at < to; at++ {
		one, hasOne := known[at]
		other, hasOther := byIndex[at]
		if !hasOne || !hasOther || one.Hash != other.Hash {
			return at, true
		}
	}
	return 0, false
}

// parted returns both sessions' versions of the message in which they differ.
func (h comparer) parted(ctx context.Context, who tenants.Principal, a, b *counterpart, at int) (*parting, error) {
	found := parting{At: at}
	var err error
	if found.First, found.FirstTitle, err = h.said(ctx, who, a, at); err != nil {
		return nil, err
	}
	found.Second, found.SecondTitle, err = h.said(ctx, who, b, at)
	return &found, err
}

// said returns the rendered message of a session's main lane, and its speaker; nil if the session ends before
// it or the archive does not have it.
func (h comparer) said(ctx context.Context, who tenants.Principal, of *counterpart, at int) (templ.Component, string, error) {
	codec, known := h.deps.Codecs[of.Format]
	if at >= of.Lane.Position || !known {
		return nil, "", nil
	}
	entry, err := h.deps.Archive.Original(ctx, who.Workspace.ID, of.Lane.ID, at)
	if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return Said(codec, entry.Raw), roleName(entry.Role), nil
}

// comparedFact is one figure for both sessions.
type comparedFact struct {
	Name, First, Second string
}

// facts returns the figures of both sessions, in reading order.
func (s comparison) facts() []comparedFact {
	a, b := s.First, s.Second
	fact := func(name string, of func(*counterpart) string) comparedFact { return comparedFact{name, of(a), of(b)} }
	return []comparedFact{
		fact("Requests", func(of *counterpart) string { return components.Count(int64(of.Sums.Exchanges)) }),
		fact("Messages", func(of *counterpart) string { return components.Count(int64(of.Lane.Position)) }),
		fact("Tokens received", func(of *counterpart) string { return components.Count(of.Sums.TokensBefore) }),
		fact("Tokens sent", func(of *counterpart) string { return of.sent() }),
		fact("Cost", func(of *counterpart) string { return components.Cents(of.Totals.CostMicroUSD) }),
		fact("Saved, net", func(of *counterpart) string { return components.Cents(of.Sums.NetMicroUSD) }),
		fact("Kept alive", func(of *counterpart) string { return components.Count(of.Sums.Reach) }),
		fact("Compactions", func(of *counterpart) string { return components.Count(int64(of.Detail.Sums.Epochs)) }),
		fact("Cache misses", func(of *counterpart) string { return of.misses() }),
		fact("Failed requests", func(of *counterpart) string { return components.Count(int64(of.Totals.Failed)) }),
		fact("Models", func(of *counterpart) string { return strings.Join(of.Totals.Models, ", ") }),
		fact("Client", func(of *counterpart) string { return components.ClientName(of.Client) }),
		fact("Duration", func(of *counterpart) string { return components.Span(of.LastAt.Sub(of.StartedAt)) }),
	}
}

// sent returns the tokens sent, and how many fewer than received.
func (c *counterpart) sent() string {
	if c.Sums.TokensAfter == c.Sums.TokensBefore {
		return components.Count(c.Sums.TokensAfter)
	}
	return components.Count(c.Sums.TokensAfter) + ", " + c.savedShare()
}

// misses returns the number and size of provider cache misses.
func (c *counterpart) misses() string {
	text := components.Count(int64(c.Totals.Misses))
	if c.Totals.MissedTokens > 0 {
		text += ", " + components.Short(c.Totals.MissedTokens) + " tokens"
	}
	return text
}

// step is an event in a session.
type step struct {
	At   time.Time
	Text string
	Path string // "" for no link
}

// timeline returns the events of a session's main lane, oldest first.
func (c *counterpart) timeline() []step {
	steps := []step{{At: c.StartedAt, Text: "first request"}}
	events := c.events()
	moments := c.Timeline.Events[max(0, len(c.Timeline.Events)-maxMarks):]
	for i, event := range events {
		steps = append(steps, step{
			At: moments[i].At, Text: "request " + strconv.Itoa(event.Request) + ": " + event.Text, Path: event.Path,
		})
	}
	if c.Sums.Exchanges < 2 {
		steps[0].Text = "only request, " + c.strip()
		return steps
	}
	return append(steps, step{At: c.LastAt, Text: "newest request, " + c.strip()})
}
