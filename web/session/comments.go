package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// A comment's change, as in the address of the next page.
const (
	doneCommented = "commented"
	doneUncomment = "comment-deleted"
)

// commentsModel is the session's comments.
type commentsModel struct {
	All    []remark
	Open   bool // someone is about to comment, or looks at the comments
	MayAdd bool
	Path   string // where a comment is added
	Lane   string
	About  int // message that the form is for; -1 for the whole session
	Typed  string
	Error  string // why a comment was refused; "" otherwise
}

// remark is a comment on the page.
type remark struct {
	tenants.Comment

	Author    string
	Place     string // "message 7"; "" if it is about the whole session
	PlacePath string
	Delete    string // the address that deletes it; "" if the person may not
}

// title returns the number of comments.
func (m *commentsModel) title() string {
	if len(m.All) == 0 {
		return "Comments"
	}
	return "Comments " + strconv.Itoa(len(m.All))
}

// strip names the last commenter.
func (m *commentsModel) strip() string {
	if len(m.All) == 0 {
		return "No comments yet."
	}
	newest := m.All[len(m.All)-1]
	return "the newest by " + newest.Author
}

// hint describes the allowed content of a comment.
func (m *commentsModel) hint() string {
	return "Plain text, " + components.Count(tenants.MaxComment) + " characters at most, for everyone who may read this session. API keys and passwords in it are removed."
}

// comments returns a session's comments if the person may read it.
func (h *Handler) comments(ctx context.Context, who tenants.Principal, of subject) (commentsModel, error) {
	m := commentsModel{
		Path: paths.CommentOnSession(of.detail.ID), Lane: of.lane.ID.String(), About: -1, MayAdd: of.mayRead && who.Role.May(tenants.CommentSessions),
	}
	if !of.mayRead {
		return m, nil
	}
	found, err := h.deps.Comments.Comments(ctx, who.Workspace.ID, of.detail.ID)
	if err != nil {
		return commentsModel{}, err
	}
	for _, comment := range found {
		shown := remark{Comment: comment, Author: comment.Name}
		shown.Text = render.Visible(comment.Text)
		if comment.Author == uuid.Nil {
			shown.Author = "a former member"
		}
		if comment.HasMessage() {
			shown.Place = "message " + strconv.Itoa(comment.Message)
			shown.PlacePath = paths.Message(comment.Session, comment.Lane, comment.Message)
		}
		if comment.MayDelete(who.User.ID, who.Role.May) {
			shown.Delete = paths.DeleteComment(comment.Session, comment.ID)
		}
		m.All = append(m.All, shown)
	}
	return m, nil
}

// remarksOf counts the comments on the messages of the open lane.
func (m *commentsModel) remarksOf(read subject) map[int]int {
	counts := map[int]int{}
	for i := range m.All {
		if of := &m.All[i]; of.HasMessage() && read.holds(of.Lane, of.Message) {
			counts[of.Message]++
		}
	}
	return counts
}

// Comment adds a comment to the session or to one message of it.
func (h Forms) Comment(c echo.Context, who tenants.Principal) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	comment := tenants.Comment{Session: of.detail.ID, Author: who.User.ID, Text: c.FormValue("text")}
	about := c.FormValue("m")
	if about != "" {
		if comment.Message, err = strconv.Atoi(about); err != nil {
			return session.ErrNotFound
		}
		comment.Lane = of.lane.ID
	}
	_, err = h.deps.Comments.AddComment(c.Request().Context(), who.Workspace.ID, comment)
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		return h.page(c, who, http.StatusUnprocessableEntity, of, func(m *model) {
			m.Comments.Open, m.Comments.Typed, m.Comments.Error = true, comment.Text, components.FieldError("Comment", invalid.Message)
			if comment.HasMessage() {
				m.Comments.About = comment.Message
			}
		})
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, after(of, about, doneCommented)+"#comments")
}

// DeleteComment deletes a comment on the session.
func (h Forms) DeleteComment(c echo.Context, who tenants.Principal) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	id, err := uuid.Parse(c.Param("comment"))
	if err != nil {
		return tenants.ErrNotFound
	}
	if err := h.deps.Comments.DeleteComment(c.Request().Context(), who.Workspace.ID, of.detail.ID, id, who.User.ID, who.Role.May); err != nil {
		return err
	}
	return layout.Redirect(c, after(of, "", doneUncomment)+"#comments")
}

// commentsDone are the actions after which the page shows the comments.
func commentsDone() []string { return []string{doneCommented, doneUncomment} }

// opened opens the comments if the address asks for it, with the form for a message of the lane.
func (m *commentsModel) opened(c echo.Context, lane session.LaneOverview) {
	m.Open = m.Open || slices.Contains(commentsDone(), c.QueryParam("done"))
	if about := c.QueryParam("comment"); about != "" {
		m.Open = true
		if message, err := strconv.Atoi(about); err == nil && message >= 0 && message < lane.Position {
			m.About = message
		}
	}
}

// remarks returns the number of a row's comments; "" if 0.
func (r row) remarks() string {
	if r.Remarks == 0 {
		return ""
	}
	return components.Plural(int64(r.Remarks), "comment")
}

// countRemarks counts the comments on the messages of rows.
func (m *readModel) countRemarks(counts map[int]int) {
	for i := range m.Rows {
		for at := m.Rows[i].From; at < m.Rows[i].To; at++ {
			m.Rows[i].Remarks += counts[at]
		}
	}
	if m.Pane != nil {
		for at := m.Pane.Message; at < m.Pane.end; at++ {
			m.Pane.Remarks += counts[at]
		}
	}
}

// remarks returns the number of comments on the pane's messages.
func (p pane) remarks() string {
	if p.Remarks == 0 {
		return "Comment"
	}
	return fmt.Sprintf("Comments %d", p.Remarks)
}
