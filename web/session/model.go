package session

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

const (
	exchangePage     = 200
	maxExchangePages = 5 // requests in the chart: the newest 1,000
)

// model is the page.
type model struct {
	session.Detail

	Title    string // overrides the session's own, which may be empty
	Lane     session.LaneOverview
	KeyName  string
	Now      time.Time
	Archived int // messages in the archive, over all lanes

	Exchanges []tenants.Exchange // of the lane, oldest first
	Cut       bool               // there were more
	Target    float64            // share of the window, as set now; 0: off
	Epochs    []session.EpochOverview

	Decisions []cost.Decision // of the lane, oldest first
	WarnAfter int             // epochs from which on the lane is pointed out; 0: never

	Read readModel
}

func (h *Handler) model(ctx context.Context, who tenants.Principal, detail session.Detail, lane session.LaneOverview, reader *reader, read readModel) (model, error) {
	m := model{Detail: detail, Title: titleOf(detail.Overview), Lane: lane, Now: h.deps.Now(), Epochs: reader.epochs, Read: read}
	for _, other := range detail.Lanes {
		m.Archived += max(0, other.Archived-other.ForkAt) // what is shared counts with the parent
	}
	var err error
	if m.Exchanges, m.Cut, err = h.exchanges(ctx, who.Workspace.ID, detail.ID, lane.ID); err != nil {
		return model{}, err
	}
	if m.Target, m.WarnAfter, err = h.settings(ctx, who.Workspace.ID); err != nil {
		return model{}, err
	}
	decisions, err := h.deps.Sessions.Decisions(ctx, who.Workspace.ID, detail.ID)
	if err != nil {
		return model{}, err
	}
	m.Decisions = decisionsOf(m.Epochs, decisions)
	if m.KeyName, err = h.keyName(ctx, who.Workspace.ID, detail.APIKey); err != nil {
		return model{}, err
	}
	return m, nil
}

func titleOf(overview session.Overview) string {
	switch {
	case overview.Title != "":
		return overview.Title
	case overview.Name != "":
		return overview.Name
	default:
		return "Untitled session"
	}
}

// lanePath returns the page of another lane.
func (m model) lanePath(lane session.LaneOverview) string {
	return paths.With(paths.Session(m.ID), "lane", lane.ID.String())
}

// laneTitle names the lane at a place of the list.
func laneTitle(i int, lane session.LaneOverview) string {
	switch {
	case i == 0:
		return "Main lane"
	case lane.Kind == session.Subagent:
		return "Subagent"
	case lane.Kind == session.Side:
		return "Side call"
	case lane.Parent != uuid.Nil:
		return "Earlier branch"
	default:
		return "Earlier lane"
	}
}

func (m model) savedShare() string {
	if m.TokensAfter > m.TokensBefore {
		return components.Share(m.TokensAfter-m.TokensBefore, m.TokensBefore) + " more"
	}
	return components.Share(m.TokensBefore-m.TokensAfter, m.TokensBefore) + " less"
}

// first returns the number of the first request in the chart.
func (m model) first() int64 {
	if m.Cut {
		return max(1, int64(m.Detail.Exchanges-len(m.Exchanges)+1))
	}
	return 1
}

// isEpoch reports whether an exchange made a new projection.
func isEpoch(exchange tenants.Exchange) bool {
	return exchange.Compression == string(pipeline.Epoch) || exchange.Compression == string(pipeline.Truncated)
}

// chart returns what each request held.
func (m model) chart() string {
	chart := components.Chart{Kind: components.InOrder, XLabel: "Request"}
	before := components.Line{Label: "Without Palimpsest", Colour: "lapis-fill", Key: "lapis", Fill: 0.17}
	after := components.Line{Label: "Sent", Colour: "verdigris-fill", Key: "verd", Fill: 0.22}
	limit := components.Line{Label: "Limit", Colour: "minium-fill", Key: "minium", Dash: true}
	target := components.Line{Label: "Target, as set now", Colour: "ochre-fill", Key: "ochre", Dash: true}
	hasLimit := false
	for i, exchange := range m.Exchanges {
		x := m.first() + int64(i)
		chart.X = append(chart.X, x)
		before.Values = append(before.Values, new(int64(exchange.TokensBefore)))
		after.Values = append(after.Values, new(int64(exchange.TokensAfter)))
		var window, share *int64
		if exchange.Window > 0 {
			hasLimit = true
			window, share = new(int64(exchange.Window)), new(int64(float64(exchange.Window)*m.Target))
		}
		limit.Values, target.Values = append(limit.Values, window), append(target.Values, share)
		if isEpoch(exchange) {
			chart.Marks = append(chart.Marks, components.Mark{X: x, Text: strconv.Itoa(len(chart.Marks) + 1)})
		}
	}
	chart.Series = []components.Line{before, after}
	if hasLimit {
		chart.Series = append(chart.Series, limit)
	}
	if hasLimit && m.Target > 0 {
		chart.Series = append(chart.Series, target)
	}
	return chart.JSON()
}

// window returns the limit of the newest request; 0 if it is unknown.
func (m model) window() int64 {
	if len(m.Exchanges) == 0 {
		return 0
	}
	return int64(m.Exchanges[len(m.Exchanges)-1].Window)
}

// startsAt returns the tokens at which compression will start; 0: unknown or off.
func (m model) startsAt() int64 { return int64(float64(m.window()) * m.Target) }

// reasonName says why an epoch happened.
func reasonName(reason string) string {
	switch reason {
	case "target":
		return "the target"
	case session.ReasonIdle:
		return "a cache that had expired"
	case "limit":
		return "the limit"
	case "":
		return "an unknown reason"
	default:
		return reason
	}
}
