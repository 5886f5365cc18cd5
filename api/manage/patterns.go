package manage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
)

// maxPlaces is how many places of its evidence an answer about a pattern holds.
const maxPlaces = 20

// Patterns keeps what was learnt in workspaces. What is not there is
// patterns.ErrNotFound.
type Patterns interface {
	List(ctx context.Context, workspace tenants.WorkspaceID, filter patterns.Filter) ([]patterns.Pattern, error)
	Pattern(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (patterns.Pattern, error)
	Places(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, limit int) ([]patterns.Place, error)

	// Add writes over a pattern with the same words. It returns patterns.ErrFull.
	Add(ctx context.Context, workspace tenants.WorkspaceID, pattern patterns.Pattern, now time.Time) (patterns.Pattern, error)

	// Change returns patterns.ErrChanged if the pattern has another version.
	Change(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, version int, change patterns.Change, by uuid.UUID, now time.Time) (patterns.Pattern, error)

	Delete(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
}

// whenJSON says which requests a pattern is relevant to.
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
	Reason    string          `json:"reason,omitempty"`
	Source    patterns.Source `json:"source"`
	Version   int             `json:"version"`
	Sessions  int             `json:"sessions"`
	Evidence  int             `json:"evidence"`
	Injected  int             `json:"injected"`
	Successes int             `json:"successes"`
	CreatedAt time.Time       `json:"created_at"`
	CreatedBy *uuid.UUID      `json:"created_by,omitempty"`
	EditedAt  time.Time       `json:"edited_at"`
	EditedBy  *uuid.UUID      `json:"edited_by,omitempty"`
	LastSeen  time.Time       `json:"last_seen"`
	Places    []placeJSON     `json:"places,omitempty"`
}

type placeJSON struct {
	Session uuid.UUID `json:"session"`
	Lane    uuid.UUID `json:"lane"`
	Message int       `json:"message"`
	At      time.Time `json:"at"`
}

func patternOf(p *patterns.Pattern) patternJSON {
	out := patternJSON{
		ID: p.ID, Kind: p.Kind, Text: p.Text, Status: p.Status, Reason: p.Reason, Source: p.Source, Version: p.Version,
		When:     whenJSON{Terms: p.When.Terms, Paths: p.When.Paths, Signatures: p.When.Signatures, Always: p.When.Always},
		Sessions: p.Sessions, Evidence: p.Evidence, Injected: p.Injected, Successes: p.Successes,
		CreatedAt: p.CreatedAt, EditedAt: p.EditedAt, LastSeen: p.LastSeen,
	}
	if p.CreatedBy != uuid.Nil {
		out.CreatedBy = &p.CreatedBy
	}
	if p.EditedBy != uuid.Nil {
		out.EditedBy = &p.EditedBy
	}
	return out
}

func (s *server) listPatterns(c echo.Context, who caller) error {
	if err := allowQuery(c, "status", "cursor", "limit"); err != nil {
		return err
	}
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	filter := patterns.Filter{Status: patterns.Status(c.QueryParam("status")), Limit: limit + 1}
	if filter.Status != "" && !slices.Contains(decided(), filter.Status) {
		return tenants.Invalid{Field: "status", Message: "must be candidate, approved, disabled or rejected"}
	}
	if cursor := c.QueryParam("cursor"); cursor != "" {
		if filter.After, err = uuid.Parse(cursor); err != nil {
			return tenants.Invalid{Field: "cursor", Message: "is not a next_cursor of this list; leave it out for the first page"}
		}
	}
	found, err := s.Patterns.List(c.Request().Context(), who.workspace, filter)
	if err != nil {
		return err
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].ID.String()
	}
	reader, err := s.reader(c, who)
	if err != nil {
		return err
	}
	data := make([]patternJSON, len(found))
	for i := range found {
		hide(&found[i], reader)
		data[i] = patternOf(&found[i])
	}
	return answerPage(c, data, next)
}

// decided are the statuses that people see and give.
func decided() []patterns.Status {
	return []patterns.Status{patterns.Candidate, patterns.Approved, patterns.Disabled, patterns.Rejected}
}

func (s *server) getPattern(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	found, err := s.Patterns.Pattern(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	places, err := s.Patterns.Places(ctx, who.workspace, id, maxPlaces)
	if err != nil {
		return err
	}
	reader, err := s.reader(c, who)
	if err != nil {
		return err
	}
	hide(&found, reader)
	return answerPattern(c, http.StatusOK, &found, places)
}

// hide takes the words off a pattern that nobody has approved, from who may not read
// all sessions: they are those of one. What is approved is the workspace's own.
func hide(p *patterns.Pattern, reader tenants.Reader) {
	if p.Status != patterns.Approved && p.Source == patterns.Mined && !reader.All {
		p.Text, p.When = "", patterns.When{Always: p.When.Always}
	}
}

// newPattern is what a request says of a pattern that is added by hand.
type newPattern struct {
	Kind patterns.Kind `json:"kind"`
	Text string        `json:"text"`
	When *whenJSON     `json:"when"`
}

// createPattern adds a pattern, approved by whoever adds it.
func (s *server) createPattern(c echo.Context, who caller) error {
	asked, err := readJSON[newPattern](c)
	if err != nil {
		return err
	}
	if !slices.Contains([]patterns.Kind{patterns.Fix, patterns.Convention, patterns.Directive}, asked.Kind) {
		return tenants.Invalid{Field: "kind", Message: "must be fix, convention or directive"}
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
	if len(when.Terms)+len(when.Paths)+len(when.Signatures) == 0 && !when.Always {
		return tenants.Invalid{Field: "when", Message: "must name terms, paths or signatures, or say always"}
	}
	p := patterns.Pattern{Kind: asked.Kind, Text: text, When: when, CreatedBy: who.author()}
	var added patterns.Pattern
	err = s.together(c, who, func(ctx context.Context) (tenants.Change, error) {
		var err error
		added, err = s.Patterns.Add(ctx, who.workspace, p, s.Now().UTC())
		return patternNote(tenants.PatternAdded, nil, &added), err
	})
	if err != nil {
		return err
	}
	return answerPattern(c, http.StatusCreated, &added, nil)
}

// patternChange is what a request changes of a pattern; what it leaves out stays.
type patternChange struct {
	Text   *string          `json:"text"`
	When   *whenJSON        `json:"when"`
	Status *patterns.Status `json:"status"`
}

// changePattern approves, disables, rejects or edits a pattern. With If-Match, it is
// changed only if it has that version.
func (s *server) changePattern(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	asked, err := readJSON[patternChange](c)
	if err != nil {
		return err
	}
	change := patterns.Change{Status: asked.Status}
	if asked.Status != nil && !slices.Contains(decided(), *asked.Status) {
		return tenants.Invalid{Field: "status", Message: "must be candidate, approved, disabled or rejected"}
	}
	if asked.Text != nil {
		text, err := patternText(*asked.Text)
		if err != nil {
			return err
		}
		change.Text = &text
	}
	if asked.When != nil {
		when, err := readWhen(*asked.When)
		if err != nil {
			return err
		}
		change.When = &when
	}
	ctx := c.Request().Context()
	found, err := s.Patterns.Pattern(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	version, err := matchedPattern(c.Request().Header.Get("If-Match"), found.Version)
	if err != nil {
		return err
	}
	var changed patterns.Pattern
	err = s.together(c, who, func(ctx context.Context) (tenants.Change, error) {
		var err error
		changed, err = s.Patterns.Change(ctx, who.workspace, id, version, change, who.author(), s.Now().UTC())
		return patternNote(tenants.PatternChanged, &found, &changed), err
	})
	if err != nil {
		return err
	}
	return answerPattern(c, http.StatusOK, &changed, nil)
}

func (s *server) deletePattern(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	change := tenants.Change{Action: tenants.PatternDeleted, Target: id.String()}
	err = s.noted(c, who, change, func(ctx context.Context) error { return s.Patterns.Delete(ctx, who.workspace, id) })
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func answerPattern(c echo.Context, status int, p *patterns.Pattern, places []patterns.Place) error {
	answer := patternOf(p)
	for _, place := range places {
		answer.Places = append(answer.Places, placeJSON(place))
	}
	c.Response().Header().Set("ETag", strconv.Quote(strconv.Itoa(p.Version)))
	return c.JSON(status, answer)
}

// patternNote is what the audit log says of a pattern: not its words, which may be
// those of a session.
func patternNote(action tenants.Action, before, after *patterns.Pattern) tenants.Change {
	fields := func(p *patterns.Pattern) tenants.Fields {
		if p == nil {
			return nil
		}
		return tenants.Fields{"kind": string(p.Kind), "status": string(p.Status), "version": strconv.Itoa(p.Version)}
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
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case text == "" || utf8.RuneCountInString(text) > patterns.MaxText:
		return "", tenants.Invalid{Field: "text", Message: fmt.Sprintf("must have 1 to %d characters", patterns.MaxText)}
	case len(patterns.Words(text)) == 0:
		return "", tenants.Invalid{Field: "text", Message: "must have words that say something"}
	case patterns.HoldsSecret(text):
		return "", tenants.Invalid{Field: "text", Message: "looks as if it held a key, a password or an address; patterns go into prompts"}
	}
	return text, nil
}

// readWhen checks which requests a pattern is to be relevant to. Terms may be written
// as they stand in texts, and signatures as the lines that report the error.
func readWhen(asked whenJSON) (patterns.When, error) {
	when := patterns.When{Always: asked.Always}
	for _, term := range asked.Terms {
		when.Terms = append(when.Terms, patterns.Words(term)...)
	}
	for _, path := range asked.Paths {
		when.Paths = append(when.Paths, strings.TrimSpace(path))
	}
	for _, line := range asked.Signatures {
		signature := patterns.Signature(line)
		if signature == "" {
			return when, tenants.Invalid{Field: "when.signatures", Message: "must be lines that report an error, with at least three words"}
		}
		when.Signatures = append(when.Signatures, signature)
	}
	for field, values := range map[string][]string{"when.terms": when.Terms, "when.paths": when.Paths, "when.signatures": when.Signatures} {
		wrong := slices.ContainsFunc(values, func(value string) bool {
			return value == "" || len(value) > patterns.MaxOfTerm || patterns.HoldsSecret(value)
		})
		if wrong || len(values) > patterns.MaxTerms {
			return when, tenants.Invalid{Field: field, Message: fmt.Sprintf("must be at most %d, each of at most %d bytes and without secrets", patterns.MaxTerms, patterns.MaxOfTerm)}
		}
	}
	return when, nil
}
