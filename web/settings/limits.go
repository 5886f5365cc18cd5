package settings

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// limitsModel is the card with the limits of models.
type limitsModel struct {
	Rows   []limitRow
	Failed string

	Key    components.FieldModel
	Keys   []components.Option
	Fields []components.FieldModel
}

type limitRow struct {
	tenants.ModelLimit

	KeyName string
}

func (h *Handler) limits(ctx context.Context, who tenants.Principal, typed func(string) string) (card limitsModel, err error) {
	var names map[uuid.UUID]string
	if card.Keys, names, err = h.keyChoices(ctx, who); err != nil {
		return card, err
	}
	limits, err := h.deps.Data.ModelLimits(ctx, who.Workspace.ID)
	if err != nil {
		return card, err
	}
	card.Key = components.FieldModel{Label: "Provider key", Name: "limit_key", Value: typed("limit_key")}
	for _, field := range []components.FieldModel{
		{Label: "Model", Name: "limit_model", Hint: "As clients name it."},
		{Label: "Context window, tokens", Name: "window_tokens", Hint: "Only for one provider key."}, {Label: "Longest answer, tokens", Name: "output_tokens"},
	} {
		field.Value = typed(field.Name)
		card.Fields = append(card.Fields, field)
	}
	for _, limit := range limits {
		card.Rows = append(card.Rows, limitRow{limit, names[limit.ProviderKey]})
	}
	return card, nil
}

// keyChoices returns the workspace's provider keys as choices, and their names.
func (h *Handler) keyChoices(ctx context.Context, who tenants.Principal) ([]components.Option, map[uuid.UUID]string, error) {
	keys, err := h.deps.ProviderKeys.ProviderKeys(ctx, who.Workspace.ID)
	if err != nil {
		return nil, nil, err
	}
	choices, names := []components.Option{{Value: "", Label: "Every provider key"}}, map[uuid.UUID]string{uuid.Nil: "every key"}
	for _, key := range keys {
		names[key.ID] = key.Name
		choices = append(choices, components.Option{Value: key.ID.String(), Label: key.Name})
	}
	return choices, names, nil
}

// chosenKey reads a form's provider key; uuid.Nil means every key.
func chosenKey(c echo.Context, name string) (uuid.UUID, error) {
	id := c.FormValue(name)
	if id == "" {
		return uuid.Nil, nil
	}
	key, err := uuid.Parse(id)
	if err != nil {
		return uuid.Nil, tenants.Invalid{Field: "provider_key_id", Message: "is not a provider key of the workspace"}
	}
	return key, nil
}

// whole reads a form's whole number; 0 if empty.
func whole(c echo.Context, name string) (int, error) {
	const wanted = "must be a whole number; empty for no limit"
	value, err := number(c, name, wanted)
	if err == nil && value != math.Trunc(value) {
		err = tenants.Invalid{Field: name, Message: wanted}
	}
	return int(value), err
}

// SetLimit sets the limits of a model.
func (h *Handler) SetLimit(c echo.Context, who tenants.Principal) error {
	limit := tenants.ModelLimit{Model: strings.TrimSpace(c.FormValue("limit_model"))}
	var wrong [3]error
	limit.ProviderKey, wrong[0] = chosenKey(c, "limit_key")
	limit.Window, wrong[1] = whole(c, "window_tokens")
	limit.Output, wrong[2] = whole(c, "output_tokens")
	err := errors.Join(wrong[:]...)
	if err == nil {
		err = limit.Validate()
	}
	if err == nil {
		err = h.deps.Data.ChangeModelLimits(c.Request().Context(), who.Workspace.ID, func(limits []tenants.ModelLimit) ([]tenants.ModelLimit, error) {
			return append(slices.DeleteFunc(limits, limitsOf(limit.Model, limit.ProviderKey)), limit), nil
		})
	}
	return h.changed(c, who, err, func(m *model, invalid tenants.Invalid) {
		switch invalid.Field { // the form for prices has fields with these names
		case "limits", "model":
			invalid.Field = "limit_model"
		case "provider_key_id":
			invalid.Field = "limit_key"
		}
		components.FieldErrors(invalid, &m.Limits.Key)
		fieldErrors(invalid, m.Limits.Fields)
	})
}

// limitsOf reports whether limits are for a model at a provider key.
func limitsOf(model string, key uuid.UUID) func(tenants.ModelLimit) bool {
	return func(limit tenants.ModelLimit) bool { return limit.Model == model && limit.ProviderKey == key }
}

// RemoveLimit removes a model's limits, so that the catalog's apply again.
func (h *Handler) RemoveLimit(c echo.Context, who tenants.Principal) error {
	key, err := uuid.Parse(c.FormValue("provider_key_id"))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	err = h.deps.Data.ChangeModelLimits(c.Request().Context(), who.Workspace.ID, func(limits []tenants.ModelLimit) ([]tenants.ModelLimit, error) {
		return slices.DeleteFunc(limits, limitsOf(c.FormValue("model"), key)), nil
	})
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Settings, "saved", "yes"))
}
