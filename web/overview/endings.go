package overview

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

const (
	// ahead is how long before its end a model in use needs attention.
	ahead = 90 * day
	// past is how long after its end a model still needs attention.
	past = 30 * day
)

// ended adds the models of the last seven days' sessions that their makers will retire.
func (h *Handler) ended(ctx context.Context, who tenants.Principal, m *model) error {
	if h.deps.Models == nil {
		return nil
	}
	names, err := sessiondb.Models(ctx, h.deps.Costs, who.Workspace.ID, m.Now.Add(-cost.AdviceSpan))
	if err != nil {
		return err
	}
	sessions, named := map[tokens.Ending]int{}, map[tokens.Ending]string{}
	for name, count := range names {
		ending, ends := h.deps.Models.Ending(name)
		if !ends || ending.On.Sub(m.Now) > ahead || m.Now.Sub(ending.On) > past {
			continue
		}
		if sessions[ending] += count; named[ending] == "" || name < named[ending] {
			named[ending] = name
		}
	}
	var endings []tokens.Ending
	for ending := range sessions {
		endings = append(endings, ending)
	}
	slices.SortFunc(endings, func(a, b tokens.Ending) int {
		if byDay := a.On.Compare(b.On); byDay != 0 {
			return byDay
		}
		return strings.Compare(a.Model, b.Model)
	})
	for _, ending := range endings {
		one := endingItem(ending, sessions[ending], m.Now)
		one.link(who.Role, tenants.ReadSessions, "Open sessions", paths.Sessions+"?model="+url.QueryEscape(named[ending]))
		m.Attention = append(m.Attention, one)
	}
	return nil
}

// endingItem is the item for a model that will be retired and that so many sessions of seven days use.
func endingItem(ending tokens.Ending, sessions int, now time.Time) item {
	days := int(cost.AdviceSpan / day)
	title := components.Plural(int64(sessions), "session") + " of the last " + components.Count(int64(days)) + " days used a model"
	if daily := (sessions + days/2) / days; daily > 0 {
		title = components.Plural(int64(daily), "session") + " a day use a model"
		if daily == 1 {
			title = "1 session a day uses a model"
		}
	}
	one := item{Dot: "warn", Title: title + " that ends on " + components.DayIn(ending.On, time.UTC)}
	if ending.On.Before(now) {
		one.Dot, one.Title = "bad", title+" that ended on "+components.DayIn(ending.On, time.UTC)
	}
	one.Text = "From then on its maker refuses requests for " + ending.Model + "."
	if ending.Successor != "" {
		one.Text += " It recommends " + ending.Successor + "."
	}
	one.Text += " Cloud providers may have another date."
	return one
}
