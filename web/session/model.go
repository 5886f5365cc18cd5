package session

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// chartPoints limits the moments in the chart and its table.
const chartPoints = 200

// model is the page's data.
type model struct {
	session.Detail

	Title    string // overrides the session's own, which may be empty
	Lane     session.LaneOverview
	KeyName  string
	Unkept   string // why the session's new messages are not kept; "" if they are
	Now      time.Time
	Archived int // messages in the archive, over all lanes

	Timeline session.Timeline // of the lane
	Target   float64          // share of the window, as set now; 0 means off
	Epochs   []session.EpochOverview

	Decisions []cost.Decision // of the lane, oldest first
	WarnAfter int             // epochs after which the lane is highlighted; 0 means never

	Read      readModel
	Comments  commentsModel
	Judge     judgeModel
	Star      components.StarModel
	WithTable bool // the requests' figures are shown as a table

	MayRead   bool // the session's messages
	MayChange bool
	MayDelete bool
	NoCompact string       // why an order to compact would have no effect; "" if it would
	Done      string       // a form's last action; "" if none
	Problem   string       // why a form had no effect; "" unless it was refused
	Compact   *compactForm // nil if the dialog is closed
	Delete    *deleteForm  // nil if the dialog is closed
}

func (h *Handler) model(ctx context.Context, who tenants.Principal, of subject, reader *reader, read readModel) (model, error) {
	detail := of.detail
	m := model{
		Detail: detail, Title: titleOf(detail.Overview), Lane: of.lane, Now: h.deps.Now(), Epochs: reader.epochs, Read: read, Comments: read.comments,
		MayRead: of.mayRead, MayChange: of.mayRead && who.Role.May(tenants.ChangeSessions), MayDelete: who.Role.May(tenants.DeleteSessions), Archived: archivedIn(detail.Lanes),
	}
	var err error
	if m.Judge, err = h.judged(ctx, who, of); err != nil {
		return model{}, err
	}
	if m.Star, err = h.star(ctx, who, detail.Overview); err != nil {
		return model{}, err
	}
	if m.Timeline, err = h.deps.Sessions.Timeline(ctx, who.Workspace.ID, detail.ID, of.lane.ID, chartPoints); err != nil {
		return model{}, err
	}
	decisions, err := h.deps.Costs.Decisions(ctx, who.Workspace.ID, detail.ID)
	if err != nil {
		return model{}, err
	}
	m.Decisions = decisionsOf(m.Epochs, decisions)
	key, err := h.key(ctx, who.Workspace.ID, detail.APIKey)
	if err != nil {
		return model{}, err
	}
	settings, err := h.deps.Readers.DataSettings(ctx, who.Workspace.ID)
	if err != nil {
		return model{}, err
	}
	m.KeyName, m.Unkept = key.Name, components.Unkept(settings, []tenants.APIKey{key})
	if m.Target, m.WarnAfter, err = h.settings(ctx, who.Workspace.ID, key); err != nil {
		return model{}, err
	}
	m.NoCompact = grounds{of, key, m.Unkept, m.Target, m.newest()}.whyNot()
	return m, nil
}

// archivedIn returns how many messages of a session's lanes are in the archive.
func archivedIn(lanes []session.LaneOverview) int {
	archived := 0
	for _, lane := range lanes {
		archived += max(0, lane.Archived-lane.ForkAt) // shared messages count with the parent
	}
	return archived
}

// exportForm is a format for exporting a session.
type exportForm struct{ Format, Title, Words string }

func exportForms() []exportForm {
	return []exportForm{
		{"markdown", "Markdown", "A transcript to read, with the level and hash of each message."},
		{"tar", "Tar", "Each original as a file, for palimpsest verify to check."},
		{"ndjson", "NDJSON", "All data as lines, for palimpsest verify to check."},
		{"jsonl", "Data set", "One line of JSON: messages, labels, scores, and comments."},
	}
}

// continues returns the session that this one continues, or uuid.Nil.
func (m *model) continues() uuid.UUID {
	for _, lane := range m.Lanes {
		if lane.Continues != uuid.Nil {
			return lane.Continues
		}
	}
	return uuid.Nil
}

// continued returns the sessions that continue this one.
func (m *model) continued() []uuid.UUID {
	var all []uuid.UUID
	for _, lane := range m.Lanes {
		for _, id := range lane.Continued {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all
}

// mayContinue reports whether another client can continue the session. It needs the main thread in the archive.
func (m *model) mayContinue() bool {
	return m.MayRead && len(m.Lanes) > 0 && m.Lanes[0].Archived > 0 && !m.Single
}

func titleOf(overview session.Overview) string {
	switch {
	case overview.Title != "":
		return render.Visible(overview.Title)
	case overview.Name != "":
		return render.Visible(overview.Name)
	default:
		return "Untitled session"
	}
}

// lanePath returns the page's address for another lane.
func (m *model) lanePath(lane session.LaneOverview) string {
	return paths.With(paths.Session(m.ID), "lane", lane.ID.String())
}

// laneTitle names the lane at a position of the list.
func laneTitle(i int, lane session.LaneOverview) string {
	switch {
	case i == 0:
		return "Main thread"
	case lane.Kind == session.Subagent:
		return "Subagent"
	case lane.Kind == session.Side:
		return "Side call"
	case lane.Parent != uuid.Nil:
		return "Earlier branch"
	default:
		return "Earlier thread"
	}
}

// laneNode is a lane with its forks.
type laneNode struct {
	Lane     session.LaneOverview
	Title    string
	Children []laneNode
}

// roots returns the session's lanes as trees.
func (m *model) roots() []laneNode {
	known := map[uuid.UUID]bool{}
	for _, lane := range m.Lanes {
		known[lane.ID] = true
	}
	return m.lanesBelow(uuid.Nil, known)
}

// lanesBelow returns the lanes that fork from parent; for uuid.Nil, the lanes whose parent is not in the
// session.
func (m *model) lanesBelow(parent uuid.UUID, known map[uuid.UUID]bool) []laneNode {
	var nodes []laneNode
	for i, lane := range m.Lanes {
		if lane.Parent == parent || parent == uuid.Nil && !known[lane.Parent] {
			nodes = append(nodes, laneNode{Lane: lane, Title: laneTitle(i, lane), Children: m.lanesBelow(lane.ID, known)})
		}
	}
	return nodes
}

// tablePath returns the page's address with the requests' figures as a table.
func (m *model) tablePath() string {
	return paths.With(paths.Session(m.ID), "lane", m.Lane.ID.String(), "table", "1") + "#requests"
}

// messagePath returns the page's address with a message of the lane open.
func (m *model) messagePath(message int) string {
	return paths.With(paths.Session(m.ID), "lane", m.Lane.ID.String(), "m", strconv.Itoa(message)) + "#read"
}

func (m *model) savedShare() string {
	without := ""
	if m.Sums.Reach > 0 {
		without = ", without kept alive"
	}
	switch saved := m.Sums.Saved(); {
	case m.Sums.Sendable() == 0:
		return "kept alive"
	case saved < 0:
		return components.Share(-saved, m.Sums.Sendable()) + " more" + without
	default:
		return components.Share(saved, m.Sums.Sendable()) + " less" + without
	}
}

// reasonName explains an epoch.
func reasonName(reason string) string {
	switch reason {
	case "target":
		return "target reached"
	case session.ReasonIdle:
		return "expired cache"
	case "break-even":
		return "saves money"
	case "limit":
		return "limit reached"
	case "manual":
		return "asked for"
	case "bytes":
		return "size limit reached"
	case "":
		return "unknown"
	default:
		return reason
	}
}

// whyInVain explains why the last attempt at an epoch had no effect.
func whyInVain(reason string) string {
	switch reason {
	case "nothing_to_free":
		return "nothing could be freed"
	case "not_smaller":
		return "the prompt would not have become smaller"
	case "freed_little":
		return "it freed too little"
	case "not_archived":
		return "the originals could not be archived"
	default:
		return "it failed (" + reason + ")"
	}
}
