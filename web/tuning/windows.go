package tuning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// mostWindows limits the card's rows, because a workspace learns up to a thousand windows.
const mostWindows = 40

// windowsModel is the card with the context windows of models.
type windowsModel struct {
	Rows   []tenants.ModelWindow
	More   int // not listed
	Failed string
	Done   string // the last action

	Model, Tokens components.FieldModel
}

// newWindows returns the card with the input of its form.
func newWindows(model, tokens string) windowsModel {
	return windowsModel{
		Model:  components.FieldModel{Label: "Model", Name: "model", Value: model, Hint: "As clients name it."},
		Tokens: components.FieldModel{Label: "Context window, tokens", Name: "window_tokens", Value: tokens, Hint: "1,000 to 100,000,000."},
	}
}

// fillWindows reads the rows of the card.
func (h *Handler) fillWindows(ctx context.Context, who tenants.Principal, card *windowsModel) {
	windows, err := h.windows(ctx, who)
	card.Failed = h.failed(ctx, "windows", err)
	card.Rows = windows[:min(len(windows), mostWindows)]
	card.More = len(windows) - len(card.Rows)
}

// windows returns all rows of the card, manually set ones first.
func (h *Handler) windows(ctx context.Context, who tenants.Principal) ([]tenants.ModelWindow, error) {
	windows, err := h.deps.Windows.ModelWindows(ctx, who.Workspace.ID)
	slices.SortStableFunc(windows, func(a, b tenants.ModelWindow) int {
		return cmp.Compare(rank(a.Source), rank(b.Source))
	})
	return windows, err
}

// WindowsCSV answers with all current context windows of models as a file.
func (h *Handler) WindowsCSV(c echo.Context, who tenants.Principal) error {
	windows, err := h.windows(c.Request().Context(), who)
	if err != nil {
		return err
	}
	rows := [][]string{{"model", "tokens", "source", "since"}}
	for _, window := range windows {
		rows = append(rows, []string{tenants.CSVCell(window.Model), strconv.Itoa(window.Tokens), string(window.Source), tenants.CSVTime(window.SetAt)})
	}
	return layout.CSV(c, "palimpsest-windows.csv").WriteAll(rows)
}

func rank(source tenants.WindowSource) int {
	if source == tenants.WindowOverride {
		return 0
	}
	return 1
}

// SetWindow sets the context window of a model.
func (h *Handler) SetWindow(c echo.Context, who tenants.Principal) error {
	name, text := strings.TrimSpace(c.FormValue("model")), strings.TrimSpace(c.FormValue("window_tokens"))
	card := newWindows(name, text)
	tokens, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	switch {
	case !tenants.IsModelName(name):
		card.Model.Error = fmt.Sprintf("Model must be a name of at most %d bytes.", tenants.MaxModelName)
	case err != nil || tokens < tenants.MinModelWindow || tokens > tenants.MaxModelWindow:
		card.Tokens.Error = fmt.Sprintf("Context window must be a whole number from %s to %s.", components.Count(tenants.MinModelWindow), components.Count(tenants.MaxModelWindow))
	default:
		if _, err := h.deps.Windows.SetModelWindow(c.Request().Context(), who.Workspace.ID, name, tokens, who.User.ID); err != nil {
			return err
		}
		return layout.Redirect(c, paths.With(paths.Pipeline, "window", "set")+windowsAnchor)
	}
	st, err := h.current(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := newModel(who, st, st.now)
	page.Windows = card
	return h.answer(c, http.StatusUnprocessableEntity, who, page)
}

// RemoveWindow removes a model's context window, so that the table of models applies again.
func (h *Handler) RemoveWindow(c echo.Context, who tenants.Principal) error {
	err := h.deps.Windows.DeleteModelWindow(c.Request().Context(), who.Workspace.ID, c.FormValue("model"))
	if err != nil && !errors.Is(err, tenants.ErrNotFound) { // someone else was faster
		return err
	}
	return layout.Redirect(c, paths.With(paths.Pipeline, "window", "removed")+windowsAnchor)
}

// windowsAnchor links to the card.
const windowsAnchor = "#windows"

func windowDone(done string) string {
	return map[string]string{
		"set":     "The window is set. It applies to new requests within 5 s.",
		"removed": "The window is removed. The table of models applies again within 5 s.",
	}[done]
}

// keysModel is the card of the API keys with pipelines of their own.
type keysModel struct {
	Rows   []keyRow
	Failed string
}

type keyRow struct {
	Name, Key string
	Pipeline  string
	Path      string // the address to change it; "" if the reader may not
}

// keys returns the card of the working API keys with pipelines of their own.
func (h *Handler) keys(ctx context.Context, who tenants.Principal) keysModel {
	keys, err := h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	card := keysModel{Failed: h.failed(ctx, "keys", err)}
	for _, key := range keys {
		if key.Pipeline == "" || key.RevokedAt != nil {
			continue
		}
		row := keyRow{Name: key.Name, Key: key.Prefix + "…" + key.Suffix, Pipeline: key.Pipeline}
		if who.MayChangeKey(key) {
			row.Path = paths.EditKey(key.ID)
		}
		card.Rows = append(card.Rows, row)
	}
	return card
}
