package manage

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/tenants"
)

// patternHandler serves learned patterns of a workspace.
type patternHandler struct {
	patterns *patternsdb.Store
	notes    notes
	now      func() time.Time
}

func (h patternHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/patterns", a.as(tenants.ReadConfig, withQuery(h.listPatterns, "status", "cursor", "limit")))
	group.POST("/patterns", a.as(tenants.ManagePatterns, withBody(h.createPattern)))
	group.GET("/patterns/:id", a.as(tenants.ReadConfig, withID(h.getPattern)))
	group.PATCH("/patterns/:id", a.as(tenants.ManagePatterns, withID(h.changePattern)))
	group.DELETE("/patterns/:id", a.as(tenants.ManagePatterns, withID(h.deletePattern)))
}

type whenJSON struct {
	Terms      []string `json:"terms"`
	Paths      []string `json:"paths"`
	Signatures []string `json:"signatures"`
	Always     bool     `json:"always"`
}

type patternJSON struct {
	ID        uuid.UUID       `json:"id"`
	Kind      patterns.Kind   `json:"kind"`
	Text      string          `json:"text"`
	When      whenJSON        `json:"when"`
	Status    patterns.Status `json:"status"`
	Version   int             `json:"version"`
	CreatedAt time.Time       `json:"created_at"`
	CreatedBy *uuid.UUID      `json:"created_by,omitempty"`
	EditedAt  time.Time       `json:"edited_at"`
	EditedBy  *uuid.UUID      `json:"edited_by,omitempty"`
}

func patternOf(p *patterns.Pattern) patternJSON {
	return patternJSON{
		ID: p.ID, Kind: p.Kind, Text: p.Text, Status: p.Status, Version: p.Version,
		When:      whenJSON{Terms: list(p.When.Terms), Paths: list(p.When.Paths), Signatures: list(p.When.Signatures), Always: p.When.Always},
		CreatedAt: p.CreatedAt, CreatedBy: nullable(p.CreatedBy), EditedAt: p.EditedAt, EditedBy: nullable(p.EditedBy),
	}
}

func (h patternHandler) listPatterns(c echo.Context, who caller) error {
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	filter := patterns.Filter{Limit: limit + 1}
	if filter.Status = patterns.Status(c.QueryParam("status")); filter.Status != "" && !slices.Contains(patterns.Statuses(), filter.Status) {
		return tenants.Invalid{Field: "status", Message: "must be approved or disabled"}
	}
	if cursor := c.QueryParam("cursor"); cursor != "" {
		if filter.After, err = uuid.Parse(cursor); err != nil {
			return wrongCursor()
		}
	}
	found, err := h.patterns.List(c.Request().Context(), who.workspace, filter)
	if err != nil {
		return err
	}
	found, next := firstOf(found, limit, func(p *patterns.Pattern) uuid.UUID { return p.ID })
	data := make([]patternJSON, len(found))
	for i := range found {
		data[i] = patternOf(&found[i])
	}
	return answerPage(c, data, next)
}

func (h patternHandler) getPattern(c echo.Context, who caller, id uuid.UUID) error {
	ctx := c.Request().Context()
	found, err := h.patterns.Pattern(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	return answerPattern(c, http.StatusOK, &found)
}

// newPattern is the body of a request to add a pattern by hand.
type newPattern struct {
	Kind patterns.Kind `json:"kind"`
	Text string        `json:"text"`
	When *whenJSON     `json:"when"`
}

// createPattern adds a pattern, approved by the person who adds it.
func (h patternHandler) createPattern(c echo.Context, who caller, asked newPattern) error {
	if !slices.Contains(patterns.Kinds(), asked.Kind) {
		return tenants.Invalid{Field: "kind", Message: "must be convention or directive"}
	}
	text, err := patternText(asked.Text)
	if err != nil {
		return err
	}
	when := patterns.When{Terms: patterns.Terms(text)}
	if asked.When != nil {
		if when, err = readWhen(*asked.When); err != nil {
			return err
		}
	}
	if when.IsNever() {
		return tenants.Invalid{Field: "when", Message: "must name terms, paths or signatures, or say always"}
	}
	p := patterns.Pattern{Kind: asked.Kind, Text: text, When: when, CreatedBy: who.author()}
	var added patterns.Pattern
	err = h.notes.together(c, who, func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error) {
		var err error
		added, err = h.patterns.Add(ctx, tenant, p, h.now().UTC())
		return patternNote(tenants.PatternAdded, nil, &added), err
	})
	if err != nil {
		return err
	}
	return answerPattern(c, http.StatusCreated, &added)
}

// patternChange is a request's change of a pattern; omitted members stay.
type patternChange struct {
	Text   *string          `json:"text"`
	When   *whenJSON        `json:"when"`
	Status *patterns.Status `json:"status"`
}

// readPatternChange reads a request's change of a pattern.
func readPatternChange(c echo.Context) (patterns.Change, error) {
	asked, err := readJSON[patternChange](c)
	if err != nil {
		return patterns.Change{}, err
	}
	change := patterns.Change{Status: asked.Status}
	if asked.Status != nil && !slices.Contains(patterns.Statuses(), *asked.Status) {
		return change, tenants.Invalid{Field: "status", Message: "must be approved or disabled"}
	}
	if asked.Text != nil {
		text, err := patternText(*asked.Text)
		if err != nil {
			return change, err
		}
		change.Text = &text
	}
	if asked.When != nil {
		when, err := readWhen(*asked.When)
		if err != nil {
			return change, err
		}
		change.When = &when
	}
	return change, nil
}

// changePattern approves, disables, rejects or edits a pattern. With If-Match, it is changed only if it has
// that version. Approval and edits require the right to read its text.
func (h patternHandler) changePattern(c echo.Context, who caller, id uuid.UUID) error {
	change, err := readPatternChange(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	found, err := h.patterns.Pattern(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	version, err := matchedPattern(c.Request().Header.Get("If-Match"), found.Version)
	if err != nil {
		return err
	}
	var changed patterns.Pattern
	err = h.notes.together(c, who, func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error) {
		var err error
		changed, err = h.patterns.Change(ctx, tenant, id, version, change, who.author(), h.now().UTC())
		return patternNote(tenants.PatternChanged, &found, &changed), err
	})
	if err != nil {
		return err
	}
	return answerPattern(c, http.StatusOK, &changed)
}

func (h patternHandler) deletePattern(c echo.Context, who caller, id uuid.UUID) error {
	change := tenants.Change{Action: tenants.PatternDeleted, Target: id.String()}
	return done(c, h.notes.noted(c, who, change, func(ctx context.Context, tenant tenants.Tenant) error { return h.patterns.Delete(ctx, tenant, id) }))
}

func answerPattern(c echo.Context, status int, p *patterns.Pattern) error {
	answer := patternOf(p)
	c.Response().Header().Set("ETag", strconv.Quote(strconv.Itoa(p.Version)))
	return c.JSON(status, answer)
}

// patternNote is the audit log's entry about a pattern. It omits the text, which may come from a session.
func patternNote(action tenants.Action, before, after *patterns.Pattern) tenants.Change {
	fields := func(p *patterns.Pattern) tenants.Fields {
		if p == nil {
			return nil
		}
		return p.Facts()
	}
	return tenants.Change{Action: action, Target: after.ID.String(), Before: fields(before), After: fields(after)}
}

// matchedPattern returns the version that a request wants to change.
func matchedPattern(header string, newest int) (int, error) {
	if header == "" || header == "*" {
		return newest, nil
	}
	version, err := strconv.Atoi(strings.Trim(header, `"`))
	if err != nil {
		return 0, tenants.Invalid{Field: "If-Match", Message: "must be the ETag of a pattern"}
	}
	return version, nil
}

// patternText checks the text of a pattern and returns it in one line.
func patternText(text string) (string, error) {
	checked, err := patterns.CheckText(text)
	return checked, invalidPattern(err)
}

// readWhen checks the condition for requests that a pattern applies to.
func readWhen(asked whenJSON) (patterns.When, error) {
	when, err := patterns.CheckWhen(patterns.When(asked))
	return when, invalidPattern(err)
}

// invalidPattern converts a patterns.Invalid to a known kind of error.
func invalidPattern(err error) error {
	if invalid, is := errors.AsType[patterns.Invalid](err); is {
		return tenants.Invalid(invalid)
	}
	return err
}
