package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"palimpsest/tenants"
)

// anthropicModel is a model as Anthropic lists it.
type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// anthropicModels is Anthropic's list.
type anthropicModels struct {
	Data    []anthropicModel `json:"data"`
	HasMore bool             `json:"has_more"`
	FirstID *string          `json:"first_id"`
	LastID  *string          `json:"last_id"`
}

// openAIModel is a model as OpenAI lists it.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// openAIModels is OpenAI's list.
type openAIModels struct {
	Object string        `json:"object"`
	Data   []openAIModel `json:"data"`
}

// modelsAs returns another provider's list of models, or one model of it, in the
// shape of provider.
func modelsAs(provider tenants.Provider, body []byte) ([]byte, error) {
	var listed struct {
		ID   string          `json:"id"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &listed); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	isOne := listed.Data == nil
	if isOne && listed.ID == "" {
		return nil, errors.New("it is neither a model nor a list of them")
	}
	data := listed.Data
	if isOne {
		data = append(append([]byte{'['}, body...), ']')
	}
	if provider == tenants.ProviderAnthropic {
		return asAnthropic(data, isOne)
	}
	return asOpenAI(data, isOne)
}

func asAnthropic(data []byte, isOne bool) ([]byte, error) {
	var models []openAIModel
	if err := json.Unmarshal(data, &models); err != nil {
		return nil, fmt.Errorf("read OpenAI's models: %w", err)
	}
	list := anthropicModels{Data: make([]anthropicModel, len(models))}
	for i, model := range models {
		list.Data[i] = anthropicModel{Type: "model", ID: model.ID, DisplayName: model.ID, CreatedAt: time.Unix(model.Created, 0).UTC()}
	}
	if isOne {
		return encoded(list.Data[0])
	}
	if len(models) > 0 {
		list.FirstID, list.LastID = &models[0].ID, &models[len(models)-1].ID
	}
	return encoded(list)
}

func asOpenAI(data []byte, isOne bool) ([]byte, error) {
	var models []anthropicModel
	if err := json.Unmarshal(data, &models); err != nil {
		return nil, fmt.Errorf("read Anthropic's models: %w", err)
	}
	list := openAIModels{Object: "list", Data: make([]openAIModel, len(models))}
	for i, model := range models {
		list.Data[i] = openAIModel{ID: model.ID, Object: "model", Created: model.CreatedAt.Unix(), OwnedBy: string(tenants.ProviderAnthropic)}
	}
	if isOne {
		return encoded(list.Data[0])
	}
	return encoded(list)
}

func encoded[T any](value T) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode models: %w", err)
	}
	return body, nil
}
