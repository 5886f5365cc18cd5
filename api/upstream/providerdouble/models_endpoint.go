package providerdouble

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
	MaxInput    int    `json:"max_input_tokens"`
	MaxOutput   int    `json:"max_tokens"`
}

type anthropicModelList struct {
	Data    []anthropicModel `json:"data"`
	HasMore bool             `json:"has_more"`
	FirstID string           `json:"first_id"`
	LastID  string           `json:"last_id"`
}

type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int    `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type openaiModelList struct {
	Object string        `json:"object"`
	Data   []openaiModel `json:"data"`
}

// listModels answers GET /v1/models in the caller's dialect.
func (c *call) listModels() {
	c.w.Header().Set("Content-Type", "application/json")
	ids := c.modelIDs()
	if familyOf(c.r) != Anthropic {
		list := openaiModelList{Object: "list", Data: []openaiModel{}}
		for _, id := range ids {
			list.Data = append(list.Data, openaiModelOf(id))
		}
		writeBody(c.w, list)
		return
	}
	list := anthropicModelList{Data: []anthropicModel{}}
	for _, id := range ids {
		list.Data = append(list.Data, c.anthropicModelOf(id))
	}
	list.FirstID, list.LastID = ids[0], ids[len(ids)-1]
	writeBody(c.w, list)
}

// getModel answers GET /v1/models/{id}.
func (c *call) getModel(id string) {
	if !slices.Contains(c.modelIDs(), id) {
		c.refuse(familyOf(c.r), noModel(familyOf(c.r), id), false)
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	if familyOf(c.r) == Anthropic {
		writeBody(c.w, c.anthropicModelOf(id))
		return
	}
	writeBody(c.w, openaiModelOf(id))
}

// modelIDs lists the models of the caller's provider.
func (c *call) modelIDs() []string {
	table := openaiModels()
	if familyOf(c.r) == Anthropic {
		table = anthropicModels()
	}
	ids := slices.Sorted(maps.Keys(c.double.config.Models))
	for _, entry := range table {
		if !strings.HasSuffix(entry.prefix, "-3") && !slices.Contains(ids, entry.prefix) {
			ids = append(ids, entry.prefix)
		}
	}
	return ids
}

func (c *call) anthropicModelOf(id string) anthropicModel {
	known, _ := c.double.config.model(id)
	return anthropicModel{Type: "model", ID: id, DisplayName: id, CreatedAt: "2026-01-01T00:00:00Z", MaxInput: known.Window, MaxOutput: known.MaxOutput}
}

func openaiModelOf(id string) openaiModel {
	return openaiModel{ID: id, Object: "model", Created: 1_767_225_600, OwnedBy: "system"}
}

// noModel refuses an unlisted model.
func noModel(format, id string) *Rejection {
	if isGoogle(format) {
		return &Rejection{Status: http.StatusNotFound, Message: "models/" + id + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
	}
	if format == Anthropic {
		return &Rejection{Status: http.StatusNotFound, Type: "not_found_error", Message: "model: " + id}
	}
	return &Rejection{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Message: "The model `" + id + "` does not exist or you do not have access to it."}
}
