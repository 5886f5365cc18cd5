package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// listedModel is a model of a list, in no provider's shape.
type listedModel struct {
	ID      string
	Name    string // display name
	Created time.Time
	Owner   string
}

// modelShape is how one provider's API lists models.
type modelShape interface {
	// read reads the entries of a list.
	read(entries json.RawMessage) ([]listedModel, error)

	// entry writes a model.
	entry(model listedModel) (json.RawMessage, error)

	// list writes a list of entries.
	list(entries []json.RawMessage) ([]byte, error)

	// entries returns the entries of a list, id the model of one.
	entries(list []byte) json.RawMessage
	id(entry json.RawMessage) string
}

// shapeOf returns how a provider's API lists models.
func shapeOf(provider tenants.Provider) modelShape {
	switch provider {
	case tenants.ProviderAnthropic:
		return anthropicModels{}
	case tenants.ProviderGemini:
		return geminiModelList{}
	default:
		return openAIModels{}
	}
}

// dataList is the part that Anthropic's and OpenAI's lists share.
type dataList struct{}

func (dataList) entries(list []byte) json.RawMessage { return wire.Get(list, "data") }

func (dataList) id(entry json.RawMessage) string { return wire.Text(entry, "id") }

// modelsAs returns a provider's list of models, or one model of it, in the shape of
// another.
func modelsAs(wanted, from tenants.Provider, body []byte) ([]byte, error) {
	var listed struct {
		ID   string          `json:"id"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &listed); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	isOne := listed.Data == nil
	if isOne && listed.ID == "" {
		return nil, errors.New("it is neither a model nor a list of models")
	}
	data := listed.Data
	if isOne {
		data = append(append([]byte{'['}, body...), ']')
	}
	models, err := shapeOf(from).read(data)
	if err != nil {
		return nil, err
	}
	shape := shapeOf(wanted)
	entries := make([]json.RawMessage, len(models))
	for i, model := range models {
		if entries[i], err = shape.entry(model); err != nil {
			return nil, err
		}
	}
	if isOne {
		return entries[0], nil
	}
	return shape.list(entries)
}

// anthropicModels is the shape of https://platform.claude.com/docs/en/api/models-list.
type anthropicModels struct{ dataList }

type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

func (anthropicModels) read(entries json.RawMessage) ([]listedModel, error) {
	var models []anthropicModel
	if err := json.Unmarshal(entries, &models); err != nil {
		return nil, fmt.Errorf("read Anthropic's models: %w", err)
	}
	listed := make([]listedModel, len(models))
	for i, model := range models {
		listed[i] = listedModel{ID: model.ID, Name: model.DisplayName, Created: model.CreatedAt, Owner: string(tenants.ProviderAnthropic)}
	}
	return listed, nil
}

func (anthropicModels) entry(model listedModel) (json.RawMessage, error) {
	return encoded(anthropicModel{Type: "model", ID: model.ID, DisplayName: model.Name, CreatedAt: model.Created.UTC()})
}

func (anthropicModels) list(entries []json.RawMessage) ([]byte, error) {
	list := struct {
		Data    []json.RawMessage `json:"data"`
		HasMore bool              `json:"has_more"`
		FirstID *string           `json:"first_id"`
		LastID  *string           `json:"last_id"`
	}{Data: append([]json.RawMessage{}, entries...)}
	if len(entries) > 0 {
		first, last := wire.Text(entries[0], "id"), wire.Text(entries[len(entries)-1], "id")
		list.FirstID, list.LastID = &first, &last
	}
	return encoded(list)
}

// openAIModels is the shape of https://platform.openai.com/docs/api-reference/models/list.
type openAIModels struct{ dataList }

type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (openAIModels) read(entries json.RawMessage) ([]listedModel, error) {
	var models []openAIModel
	if err := json.Unmarshal(entries, &models); err != nil {
		return nil, fmt.Errorf("read OpenAI's models: %w", err)
	}
	listed := make([]listedModel, len(models))
	for i, model := range models {
		listed[i] = listedModel{ID: model.ID, Name: model.ID, Created: time.Unix(model.Created, 0), Owner: model.OwnedBy}
	}
	return listed, nil
}

func (openAIModels) entry(model listedModel) (json.RawMessage, error) {
	return encoded(openAIModel{ID: model.ID, Object: "model", Created: model.Created.Unix(), OwnedBy: model.Owner})
}

func (openAIModels) list(entries []json.RawMessage) ([]byte, error) {
	return encoded(struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}{"list", append([]json.RawMessage{}, entries...)})
}

// geminiModelList is the shape of https://ai.google.dev/api/models.
type geminiModelList struct{}

type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func (geminiModelList) read(entries json.RawMessage) ([]listedModel, error) {
	var models []geminiModel
	if err := json.Unmarshal(entries, &models); err != nil {
		return nil, fmt.Errorf("read Google's models: %w", err)
	}
	listed := make([]listedModel, len(models))
	for i, model := range models {
		listed[i] = listedModel{ID: strings.TrimPrefix(model.Name, "models/"), Name: model.DisplayName, Owner: "google"}
	}
	return listed, nil
}

func (geminiModelList) entry(model listedModel) (json.RawMessage, error) {
	return encoded(geminiModel{Name: "models/" + model.ID, DisplayName: model.Name, Methods: []string{"generateContent", "countTokens"}})
}

func (geminiModelList) list(entries []json.RawMessage) ([]byte, error) {
	return encoded(struct {
		Models []json.RawMessage `json:"models"`
	}{append([]json.RawMessage{}, entries...)})
}

func (geminiModelList) entries(list []byte) json.RawMessage { return wire.Get(list, "models") }

func (geminiModelList) id(entry json.RawMessage) string {
	return strings.TrimPrefix(wire.Text(entry, "name"), "models/")
}

func encoded[T any](value T) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode models: %w", err)
	}
	return body, nil
}

// Interface guards.
var (
	_ modelShape = anthropicModels{}
	_ modelShape = openAIModels{}
	_ modelShape = geminiModelList{}
)
