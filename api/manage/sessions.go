package manage

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// lanes finds the lanes in requests.
type lanes struct {
	sessions session.Records
	readers  readers
}

// sessionHandler serves recorded sessions, and changes their prompts.
type sessionHandler struct {
	lanes

	costs   sessiondb.Browser
	remarks remarks
	notes   notes
	now     func() time.Time
}

func (h sessionHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions", a.as(tenants.ReadSessions, withQuery(h.listSessions, "q", "client", "model", "key", "member", "project", "end_user", "show", "label", "score", "starred", "from", "to", "cursor", "limit")))
	group.GET("/sessions/:id", a.as(tenants.ReadSessions, withID(h.getSession)))
	group.DELETE("/sessions/:id", a.as(tenants.DeleteSessions, withID(h.deleteSession)))
	group.POST("/sessions/:id/compact", a.as(tenants.ChangeSessions, withQuery(h.compact, "lane")))
	group.PUT("/sessions/:id/pin", a.as(tenants.ChangeSessions, withQuery(h.pinSession)))
	group.DELETE("/sessions/:id/pin", a.as(tenants.ChangeSessions, withQuery(h.unpinSession)))
	group.GET("/sessions/:id/pins", a.as(tenants.ReadSessions, withQuery(h.listPins, "lane")))
	group.POST("/sessions/:id/pins", a.as(tenants.ChangeSessions, withQuery(withBody(h.createPin), "lane")))
	group.DELETE("/sessions/:id/pins/:message", a.as(tenants.ChangeSessions, withQuery(h.deletePin, "lane")))
}

type sessionJSON struct {
	ID        uuid.UUID           `json:"id"`
	APIKey    uuid.UUID           `json:"api_key"`
	Format    conversation.Format `json:"format"`
	Name      string              `json:"name,omitempty"` // the client's own id
	Source    string              `json:"source"`         // origin of the id
	Title     string              `json:"title"`
	Client    string              `json:"client"`
	Model     string              `json:"model"`
	StartedAt time.Time           `json:"started_at"`
	LastAt    time.Time           `json:"last_at"`

	session.Sums

	TokensSaved int64 `json:"tokens_saved"` // of requests short enough to be sent unchanged

	Single      bool       `json:"single"`  // single calls: its requests carry no history
	Starred     bool       `json:"starred"` // by the caller
	Comments    int        `json:"comments"`
	Labels      []string   `json:"labels"`      // only with the right to read the session, as the scores
	Up          int        `json:"scores_up"`   // people who scored it 1
	Down        int        `json:"scores_down"` // people who scored it -1
	Project     string     `json:"project,omitempty"`
	EndUser     string     `json:"end_user,omitempty"`
	EndUserName string     `json:"end_user_name,omitempty"` // only with the right to read the session
	Lanes       []laneJSON `json:"lanes,omitempty"`         // only for a single session
	PinnedAt    *time.Time `json:"pinned_at,omitempty"`     // as a whole; only for a single session
}

type laneJSON struct {
	ID        uuid.UUID   `json:"id"`
	Parent    *uuid.UUID  `json:"parent,omitempty"`
	ForkAt    int         `json:"fork_at,omitempty"`
	Continues *uuid.UUID  `json:"continues,omitempty"`    // session of the parent, if different
	Continued []uuid.UUID `json:"continued_in,omitempty"` // sessions that continue it
	Kind      string      `json:"kind"`
	Messages  int         `json:"messages"`
	Archived  int         `json:"archived"`
	CreatedAt time.Time   `json:"created_at"`
	LastAt    time.Time   `json:"last_at"`
	WarmUntil *time.Time  `json:"warm_until,omitempty"` // of the provider's cache; absent without a cache
	AskedAt   *time.Time  `json:"asked_at,omitempty"`   // of a compaction that is due with the next request
	Breaker   string      `json:"breaker,omitempty"`    // why it is open
	Epochs    []epochJSON `json:"epochs"`
}

type epochJSON struct {
	Number       int       `json:"number"`
	Covers       int       `json:"covers"`
	Reason       string    `json:"reason"`
	TokensBefore int       `json:"tokens_before"`
	TokensAfter  int       `json:"tokens_after"`
	At           time.Time `json:"at"`

	Predicted *int64 `json:"predicted_micro_usd"` // expected savings until the next one; null without a prediction
	Worst     *int64 `json:"worst_micro_usd"`     // expected result without further requests; null if unknown
	Realized  int64  `json:"realised_micro_usd"`  // savings until now
	Requests  int    `json:"requests"`            // under it
	Reach     int    `json:"reach"`               // of them, those too long to be sent unchanged

	Certificate session.Certificate `json:"certificate"` // null without a comparison
}

func sessionOf(overview session.Overview) sessionJSON {
	return sessionJSON{
		ID: overview.ID, APIKey: overview.APIKey, Format: overview.Format, Name: overview.Name, Source: overview.Source,
		Title: overview.Title, Client: overview.Client, Model: overview.Model, StartedAt: overview.StartedAt, LastAt: overview.LastAt,
		Sums: overview.Sums, TokensSaved: overview.Sums.Saved(), Single: overview.Single,
		EndUser: overview.EndUser, EndUserName: overview.EndUserName, Project: overview.Project,
	}
}

func (h sessionHandler) listSessions(c echo.Context, who caller) error {
	filter, err := session.FilterOf(who.workspace, c.QueryParams())
	if err != nil {
		return err
	}
	if filter.From, filter.To, err = queryRange(c); err != nil {
		return err
	}
	if filter.Limit, err = queryLimit(c); err != nil {
		return err
	}
	if err := h.remarks.onlyStarred(c, who, &filter); err != nil {
		return err
	}
	reader, err := h.readers.reader(c, who)
	if err != nil {
		return err
	}
	filter.Masked, filter.Shown = !reader.All, reader.Keys
	found, err := h.sessions.Sessions(c.Request().Context(), who.workspace, filter)
	if err != nil {
		return err
	}
	data := each(found.Sessions, sessionOf)
	if err := h.remarks.remark(c.Request().Context(), who, data); err != nil {
		return err
	}
	if err := h.remarks.judge(c.Request().Context(), who, reader, data); err != nil {
		return err
	}
	return answerPage(c, data, found.Next)
}

func (h sessionHandler) getSession(c echo.Context, who caller, id uuid.UUID) error {
	ctx := c.Request().Context()
	detail, err := h.sessions.Session(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	reader, err := h.readers.reader(c, who)
	if err != nil {
		return err
	}
	if !reader.MayRead(detail.APIKey) {
		detail.Mask()
	}
	decisions, err := h.costs.Decisions(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	remarked := []sessionJSON{sessionOf(detail.Overview)}
	if err := h.remarks.remark(ctx, who, remarked); err != nil {
		return err
	}
	if err := h.remarks.judge(ctx, who, reader, remarked); err != nil {
		return err
	}
	answer := remarked[0]
	if !detail.PinnedAt.IsZero() {
		answer.PinnedAt = &detail.PinnedAt
	}
	for _, lane := range detail.Lanes {
		epochs, err := h.sessions.Epochs(ctx, who.workspace, lane.ID)
		if err != nil {
			return err
		}
		answer.Lanes = append(answer.Lanes, laneOf(lane, epochs, decisions))
	}
	return c.JSON(http.StatusOK, answer)
}

func laneOf(lane session.LaneOverview, epochs []session.EpochOverview, decisions []cost.Decision) laneJSON {
	answer := laneJSON{
		ID: lane.ID, Parent: nullable(lane.Parent), ForkAt: lane.ForkAt, Continues: nullable(lane.Continues), Continued: lane.Continued, Kind: string(lane.Kind), Messages: lane.Position, Archived: lane.Archived,
		CreatedAt: lane.CreatedAt, LastAt: lane.LastAt, Breaker: lane.Breaker, Epochs: make([]epochJSON, len(epochs)),
	}
	if lane.Order != nil {
		answer.AskedAt = &lane.Order.At
	}
	if !lane.WarmUntil.IsZero() {
		answer.WarmUntil = &lane.WarmUntil
	}
	for i, epoch := range epochs {
		answer.Epochs[i] = epochJSON{
			Number: epoch.Number, Covers: epoch.Covers, Reason: epoch.Reason,
			TokensBefore: epoch.Before, TokensAfter: epoch.After, At: epoch.At, Certificate: epoch.Certificate,
		}
		for _, decision := range decisions {
			if decision.Lane == epoch.Lane && decision.Number == epoch.Number {
				answer.Epochs[i].Worst, answer.Epochs[i].Realized = decision.Worst, decision.Realized
				answer.Epochs[i].Requests, answer.Epochs[i].Reach = decision.Exchanges, decision.Reach
				if decision.Guessed {
					answer.Epochs[i].Predicted = &decision.Predicted
				}
			}
		}
	}
	return answer
}

func (h sessionHandler) deleteSession(c echo.Context, who caller, id uuid.UUID) error {
	change := tenants.Change{Action: tenants.SessionDeleted, Target: id.String()}
	return done(c, h.notes.noted(c, who, change, func(ctx context.Context, tenant tenants.Tenant) error { return h.sessions.Delete(ctx, tenant, id) }))
}

// lane returns the session in the path and its lane in the query; the most recently active one by default.
func (l lanes) lane(c echo.Context, who caller) (session.Detail, session.LaneOverview, error) {
	id, err := pathID(c)
	if err != nil {
		return session.Detail{}, session.LaneOverview{}, err
	}
	detail, err := l.sessions.Session(c.Request().Context(), who.workspace, id)
	if err != nil {
		return session.Detail{}, session.LaneOverview{}, err
	}
	wanted := c.QueryParam("lane")
	for _, lane := range detail.Lanes {
		if wanted == "" || lane.ID.String() == wanted {
			return detail, lane, nil
		}
	}
	return session.Detail{}, session.LaneOverview{}, session.ErrNotFound
}

// laneText is lane for a caller who wants to read the lane's messages, or to change its prompts.
func (l lanes) laneText(c echo.Context, who caller) (session.Detail, session.LaneOverview, error) {
	reader, err := l.readers.textReader(c, who)
	if err != nil {
		return session.Detail{}, session.LaneOverview{}, err
	}
	detail, lane, err := l.lane(c, who)
	if err == nil && !reader.MayRead(detail.APIKey) {
		err = tenants.ErrTextDenied
	}
	return detail, lane, err
}

type pinJSON struct {
	Lane    uuid.UUID `json:"lane"`
	Message int       `json:"message"`
	By      uuid.UUID `json:"pinned_by"`
	At      time.Time `json:"pinned_at"`
}

// listPins lists the pins of a lane, including those of messages shared with the lane it forked from.
func (h sessionHandler) listPins(c echo.Context, who caller) error {
	_, lane, err := h.lane(c, who)
	if err != nil {
		return err
	}
	return h.answerPins(c, who, lane.ID)
}

// newPin is the body of a request to add a pin.
type newPin struct {
	Message *int `json:"message"`
}

// createPin pins the turn of a message: later epochs don't compress it, and the next one restores it if it
// was compressed.
func (h sessionHandler) createPin(c echo.Context, who caller, asked newPin) error {
	ctx := c.Request().Context()
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	if asked.Message == nil || *asked.Message < 0 || *asked.Message >= lane.Position {
		return tenants.Invalid{Field: "message", Message: fmt.Sprintf("must be the index of a message of the lane, from 0 to %d", lane.Position-1)}
	}
	pins, err := h.sessions.Pins(ctx, who.workspace, lane.ID)
	if err != nil {
		return err
	}
	if len(pins) >= session.MaxPins {
		return tenants.Invalid{Field: "message", Message: fmt.Sprintf("cannot be pinned: the lane has %d pins; take one away first", len(pins))}
	}
	pin := session.Pin{Lane: lane.ID, Message: *asked.Message, By: who.author()}
	err = h.notes.noted(c, who, pinChange(tenants.PinAdded, detail.ID, pin), func(ctx context.Context, tenant tenants.Tenant) error { return h.sessions.Pin(ctx, tenant, pin) })
	if err != nil {
		return err
	}
	return h.answerPins(c, who, lane.ID)
}

func (h sessionHandler) deletePin(c echo.Context, who caller) error {
	message, err := strconv.Atoi(c.Param("message"))
	if err != nil {
		return session.ErrNotFound
	}
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	change := pinChange(tenants.PinRemoved, detail.ID, session.Pin{Lane: lane.ID, Message: message})
	err = h.notes.noted(c, who, change, func(ctx context.Context, tenant tenants.Tenant) error {
		return h.sessions.Unpin(ctx, tenant, lane.ID, message)
	})
	return done(c, err)
}

// pinSession pins a whole session: only an order compacts its prompts.
func (h sessionHandler) pinSession(c echo.Context, who caller) error {
	return h.changeSession(c, who, tenants.SessionPinned, func(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error {
		return h.sessions.PinSession(ctx, tenant, id, who.author())
	})
}

func (h sessionHandler) unpinSession(c echo.Context, who caller) error {
	return h.changeSession(c, who, tenants.SessionUnpinned, h.sessions.UnpinSession)
}

// changeSession makes a change of a whole session that the caller may read, and logs it.
func (h sessionHandler) changeSession(c echo.Context, who caller, action tenants.Action, change func(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error) error {
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	return done(c, h.notes.noted(c, who, tenants.Change{Action: action, Target: detail.ID.String()}, func(ctx context.Context, tenant tenants.Tenant) error {
		return change(ctx, tenant, detail.ID)
	}))
}

func (h sessionHandler) answerPins(c echo.Context, who caller, lane uuid.UUID) error {
	pins, err := h.sessions.Pins(c.Request().Context(), who.workspace, lane)
	if err != nil {
		return err
	}
	data := make([]pinJSON, len(pins))
	for i, pin := range pins {
		data[i] = pinJSON{Lane: pin.Lane, Message: pin.Message, By: pin.By, At: pin.At}
	}
	return answerPage(c, data, "")
}

// pinChange is the audit log's entry about a pin.
func pinChange(action tenants.Action, of uuid.UUID, pin session.Pin) tenants.Change {
	fields := tenants.Fields{"lane": pin.Lane.String(), "message": strconv.Itoa(pin.Message)}
	change := tenants.Change{Action: action, Target: of.String(), After: fields}
	if action == tenants.PinRemoved {
		change.Before, change.After = fields, nil
	}
	return change
}
