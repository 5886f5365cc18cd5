package manage

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// limitHandler serves a workspace's limits for models.
type limitHandler struct {
	limits tenants.Data
}

func (h limitHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/models/limits", a.as(tenants.ReadConfig, h.listModelLimits))
	group.PUT("/models/limits", a.as(tenants.ManageSettings, h.putModelLimits))
}

func (h limitHandler) listModelLimits(c echo.Context, who caller) error {
	limits, err := h.limits.ModelLimits(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, append([]tenants.ModelLimit{}, limits...), "")
}

// newModelLimits is the body of a request to set limits. It replaces all of them.
type newModelLimits struct {
	Limits *[]tenants.ModelLimit `json:"limits"`
}

func (h limitHandler) putModelLimits(c echo.Context, who caller) error {
	asked, err := readJSON[newModelLimits](c)
	if err != nil {
		return err
	}
	if asked.Limits == nil {
		return tenants.Invalid{Field: "limits", Message: "is missing; an empty list has the catalog's hold again"}
	}
	err = h.limits.ChangeModelLimits(c.Request().Context(), who.workspace, func([]tenants.ModelLimit) ([]tenants.ModelLimit, error) { return *asked.Limits, nil })
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// configModelLimitJSON are the limits of a model in a file, which identifies a provider key by its name or by
// its id.
type configModelLimitJSON struct {
	Model string `json:"model"`
	Key   string `json:"provider_key,omitempty"`

	Window int `json:"window_tokens,omitempty"`
	Output int `json:"output_tokens,omitempty"`
}

// modelLimits returns limits in the form of a file.
func (c *configured) modelLimits() []configModelLimitJSON {
	return each(c.limits, func(limit tenants.ModelLimit) configModelLimitJSON {
		return configModelLimitJSON{Model: limit.Model, Key: c.nameOf(limit.ProviderKey), Window: limit.Window, Output: limit.Output}
	})
}

// takeLimits sets the limits of the models in a file; others stay as they are.
func (i *configImport) takeLimits(ctx context.Context, part configMember) error {
	wanted := slices.Clone(i.now.limits)
	for _, item := range i.items(part) {
		var asked configModelLimitJSON
		if !takeAll(&i.configReader, item, &asked, "model", "provider_key", "window_tokens", "output_tokens") {
			continue
		}
		key, known := i.providerKeyNamed(item.place, asked.Key, "the limits of "+asked.Model)
		if !known {
			continue
		}
		limit := tenants.ModelLimit{Model: asked.Model, ProviderKey: key, Window: asked.Window, Output: asked.Output}
		if err := limit.Validate(); err != nil {
			if err := i.refused(item.place, err); err != nil {
				return err
			}
			continue
		}
		wanted = append(slices.DeleteFunc(wanted, func(other tenants.ModelLimit) bool {
			return other.Model == limit.Model && other.ProviderKey == limit.ProviderKey
		}), limit)
	}
	if len(i.faults) > 0 || !i.changed(part.place, tenants.ModelLimitFields(i.now.limits), tenants.ModelLimitFields(wanted)) {
		return nil
	}
	return i.refused(part.place, i.Data.ChangeModelLimits(ctx, i.tenant, func([]tenants.ModelLimit) ([]tenants.ModelLimit, error) { return wanted, nil }))
}

// providerKeyNamed returns the provider key named in a file; uuid.Nil if absent. If the key is unknown, it
// reports that something has to be set by another import.
func (i *configImport) providerKeyNamed(place, name, something string) (id uuid.UUID, known bool) {
	if name == "" {
		return uuid.Nil, true
	}
	matches := slices.DeleteFunc(slices.Clone(i.now.providers), func(key tenants.ProviderKey) bool { return key.Name != name && key.ID.String() != name })
	switch len(matches) {
	case 1:
		return matches[0].ID, true
	case 0:
		i.byHandf("Provider key %q does not exist here: add it with its secret, then import again to set %s there.", name, something)
	default:
		i.wrong(place+".provider_key", fmt.Sprintf("is the name of %d provider keys of this workspace; give the id of the one that is meant", len(matches)))
	}
	return uuid.Nil, false
}
