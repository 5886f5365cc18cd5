package requests

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// beside limits the requests of the same session that are offered for comparison.
const beside = 10

// comparison is two requests side by side, or one with the choices for the other.
type comparison struct {
	First, Second *opened // Second is nil before the choice

	Nearby  []row   // of First's session
	Prompts prompts // if Second is set
	Field   components.FieldModel
}

// Compare shows two requests side by side.
func (h *Handler) Compare(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	first, err := uuid.Parse(c.QueryParam("a"))
	if err != nil {
		return tenants.ErrNotFound
	}
	var shown comparison
	var exchange *tenants.Exchange
	if _, shown.First, exchange, err = h.one(ctx, who, first); err != nil {
		return err
	}
	status := http.StatusOK
	typed := strings.TrimSpace(c.QueryParam("b"))
	shown.Field = components.FieldModel{Label: "Id of another request", Name: "b", Value: typed}
	if typed != "" {
		if shown.Second, err = h.second(ctx, who, first, typed); err != nil {
			return err
		}
		if shown.Second != nil {
			shown.Prompts = h.prompts(ctx, who, shown.First, shown.Second)
		} else {
			status, shown.Field.Error = http.StatusUnprocessableEntity, "There is no other request with this id in the workspace."
		}
	}
	if shown.Second == nil && exchange.Request.Session != uuid.Nil {
		if shown.Nearby, err = h.nearby(ctx, who, shown.First, exchange); err != nil {
			return err
		}
	}
	page := frame(who)
	page.Title = "Compare requests"
	page.Breadcrumbs = []layout.Breadcrumb{{Title: "Requests", Path: paths.Requests}, {Title: shown.First.id(), Path: paths.Request(first)}, {Title: "Compare"}}
	return layout.Page(c, status, page, compareView(shown))
}

// second returns the request with the typed id, or nil if it does not exist or is the first one.
func (h *Handler) second(ctx context.Context, who tenants.Principal, first uuid.UUID, typed string) (*opened, error) {
	id, err := uuid.Parse(typed)
	if err != nil || id == first {
		return nil, nil //nolint:nilnil,nilerr // the form says so
	}
	_, opened, _, err := h.one(ctx, who, id)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil, nil //nolint:nilnil // the form says so
	}
	return opened, err
}

// nearby returns other requests of a request's session, newest first.
func (h *Handler) nearby(ctx context.Context, who tenants.Principal, o *opened, exchange *tenants.Exchange) ([]row, error) {
	found, _, err := h.deps.Exchanges.Exchanges(ctx, who.Workspace.ID, tenants.ExchangeFilter{Session: exchange.Request.Session, Limit: beside + 1})
	if err != nil {
		return nil, err
	}
	var rows []row
	for i := range found {
		if found[i].ID != exchange.ID && len(rows) < beside {
			rows = append(rows, newRow(&found[i], o.names))
		}
	}
	return rows, nil
}

// heading names the request on a side of the comparison.
func (s comparison) heading(o *opened) string {
	switch {
	case s.Second != nil && s.Second.Again.First == s.First.ID && o == s.Second:
		return "Sent again"
	case s.Second != nil && s.Second.Again.First == s.First.ID, o == s.First:
		return "First request"
	}
	return "Second request"
}

// difference is one fact about both requests.
type difference struct {
	Name, First, Second string

	Differs bool
}

// differences returns the facts about both requests, in reading order.
func (s comparison) differences() []difference {
	a, b := s.First, s.Second
	pairs := []difference{
		{Name: "Status", First: statusText(a.Answer.Status), Second: statusText(b.Answer.Status)},
		{Name: "Sent", First: a.At.UTC().Format(time.DateTime) + " UTC", Second: b.At.UTC().Format(time.DateTime) + " UTC"},
		{Name: "Model", First: a.Request.Model, Second: b.Request.Model},
		{Name: "Endpoint", First: a.endpoint(), Second: b.endpoint()},
		{Name: "Client", First: components.ClientName(a.Request.Client), Second: components.ClientName(b.Request.Client)},
		{Name: "API key", First: a.Key, Second: b.Key},
		{Name: "Messages", First: components.Count(int64(a.Request.Position)), Second: components.Count(int64(b.Request.Position))},
		{Name: "Changes to the prompt", First: a.between(), Second: b.between()},
	}
	first, second := a.tokens(), b.tokens()
	for _, fact := range first {
		if other, ok := factNamed(second, fact.Name); ok {
			pairs = append(pairs, difference{Name: fact.Name, First: fact.Value, Second: other})
		}
	}
	pairs = append(pairs,
		difference{Name: "Cost", First: components.Money(a.Cost.CostMicroUSD), Second: components.Money(b.Cost.CostMicroUSD)},
		difference{Name: "First byte", First: seconds(a.Times.TTFB), Second: seconds(b.Times.TTFB)},
		difference{Name: "Total time", First: seconds(a.Times.Duration), Second: seconds(b.Times.Duration)},
	)
	for i := range pairs {
		pairs[i].Differs = pairs[i].First != pairs[i].Second
	}
	return pairs
}

func factNamed(facts []fact, name string) (string, bool) {
	for _, fact := range facts {
		if fact.Name == name {
			return fact.Value, true
		}
	}
	return "", false
}

// one returns one request with all its data.
func (h *Handler) one(ctx context.Context, who tenants.Principal, id uuid.UUID) (model, *opened, *tenants.Exchange, error) {
	m := newModel(url.Values{}, who.Role, time.UTC, h.deps.Now())
	h.name(ctx, who, &m)
	exchange, err := h.deps.Exchanges.Exchange(ctx, who.Workspace.ID, id)
	if err != nil {
		return m, nil, nil, err
	}
	opened, err := h.open(ctx, who, &exchange, &m)
	return m, opened, &exchange, err
}
