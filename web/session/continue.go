package session

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// continueModel says how a session can be continued elsewhere.
type continueModel struct {
	model

	At      int    // the last message to take along; -1 means all
	Last    int    // the newest message of the main thread
	Wrong   string // what is wrong with the chosen message; "" if valid
	Refused string // why it cannot be continued; "" if it can

	Summary       string // the shorter form of its compacted messages; "" if absent
	SummaryTokens int
}

// continuedIn are the clients in which palimpsest resume continues a session. A test compares them with the
// program's.
func continuedIn() []string { return []string{"claude-code", "codex", "pi", "opencode"} }

// Continue shows how to continue a session in a client, or with its messages or its summary alone.
func (h *Handler) Continue(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, "")
	if err != nil {
		return err
	}
	shown := continueModel{model: model{Detail: of.detail, Title: titleOf(of.detail.Overview), Lane: of.lane, MayRead: of.mayRead}, At: -1, Last: of.lane.Archived - 1}
	status := http.StatusOK
	switch {
	case !of.mayRead || !who.Role.May(tenants.ReadArchive):
		shown.Refused = "The workspace does not let you read this session. Ask an admin, or the person whose API key it is."
	case !shown.mayContinue():
		shown.Refused = "There is no conversation of it in the archive. A session of single calls, or one that was not kept, cannot be continued."
	}
	if asked := c.QueryParam("m"); asked != "" && shown.Refused == "" {
		at, err := strconv.Atoi(asked)
		shown.At = at
		if err != nil || at < 0 || at > shown.Last {
			status, shown.At, shown.Wrong = http.StatusUnprocessableEntity, -1, "Must be a message from 0 to "+strconv.Itoa(shown.Last)+"."
		}
	}
	if shown.Refused == "" {
		reader, err := h.reader(c.Request().Context(), who, of.detail, of.lane, of.mayRead)
		if err != nil {
			return err
		}
		shown.Summary, shown.SummaryTokens = reader.summary()
	}
	frame := layout.Frame{Title: "Continue " + shown.Title, Section: layout.Sessions, Who: who, Breadcrumbs: []layout.Breadcrumb{
		{Title: "Sessions", Path: paths.Sessions}, {Title: shortID(of.detail.ID), Path: paths.Session(of.detail.ID)}, {Title: "Continue"},
	}}
	return layout.Page(c, status, frame, continueView(shown))
}

// resumeCommand is the command that continues the session in a client.
func (m continueModel) resumeCommand(client string) string {
	command := "palimpsest resume " + m.ID.String() + " --in " + client
	if m.At >= 0 {
		command += " --at " + strconv.Itoa(m.At)
	}
	return command
}

// at is the chosen message, as the form shows it.
func (m continueModel) at() string {
	if m.At < 0 {
		return ""
	}
	return strconv.Itoa(m.At)
}

// messagesPath is the download of the messages to take along.
func (m continueModel) messagesPath() string {
	return paths.With(paths.Export(m.ID), "format", "jsonl", "at", m.at())
}

// summary returns the shorter forms of the lane's compacted messages as text, and their tokens.
func (r *reader) summary() (text string, tokens int) {
	var parts []string
	for _, part := range r.projection.Parts {
		if part.Raw == nil || part.Messages == 0 {
			continue
		}
		tokens += part.Tokens
		for _, raw := range wire.Elements(bytes.Join([][]byte{[]byte("["), part.Raw, []byte("]")}, nil)) {
			message, err := r.codec.Parse(raw)
			if err != nil {
				continue
			}
			for _, block := range message.Blocks {
				if said := strings.TrimSpace(textOf(block)); said != "" {
					parts = append(parts, roleName(message.Role)+": "+said)
				}
			}
		}
	}
	return render.Visible(strings.Join(parts, "\n\n")), tokens
}
