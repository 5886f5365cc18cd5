package providertest

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"net/http"
	"strings"
)

const dimensions = 64

type embeddingList struct {
	Object string         `json:"object"`
	Data   []embedding    `json:"data"`
	Model  string         `json:"model"`
	Usage  embeddingUsage `json:"usage"`
}

type embedding struct {
	Object string    `json:"object"`
	Index  int       `json:"index"`
	Vector []float64 `json:"embedding"`
}

type embeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// embed answers POST /v1/embeddings. Texts that share words get vectors that
// point in similar directions.
func (c *call) embed() {
	m, _ := objectMembers(c.entry.Body)
	model, _ := m.text("model")
	inputs, rejection := embeddingInputs(m)
	if rejection != nil {
		c.refuse(OpenAIChat, rejection, true)
		return
	}
	list := embeddingList{Object: "list", Model: model, Data: []embedding{}}
	for i, text := range inputs {
		list.Data = append(list.Data, embedding{Object: "embedding", Index: i, Vector: vector(text)})
		list.Usage.PromptTokens += c.double.config.reported(c.double.config.Count(text))
	}
	list.Usage.TotalTokens = list.Usage.PromptTokens
	c.double.log.update(func() { c.entry.Model, c.entry.Prompt = model, list.Usage.PromptTokens })
	c.w.Header().Set("Content-Type", "application/json")
	writeBody(c.w, list)
}

func embeddingInputs(m members) ([]string, *Rejection) {
	if text, ok := m.text("input"); ok && text != "" {
		return []string{text}, nil
	}
	var texts []string
	if m == nil || json.Unmarshal(m["input"], &texts) != nil || len(texts) == 0 {
		return nil, &Rejection{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference."}
	}
	return texts, nil
}

// vector adds up one direction for each word and scales the sum to length one.
func vector(text string) []float64 {
	sum := make([]float64, dimensions)
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		words = []string{""}
	}
	for _, word := range words {
		direction := sha256.Sum256([]byte(word))
		for i := range sum {
			sum[i] += float64(direction[i%len(direction)]>>(4*(i/len(direction)))&15) - 7.5
		}
	}
	length := 0.0
	for _, value := range sum {
		length += value * value
	}
	for i := range sum {
		sum[i] /= max(math.Sqrt(length), 1e-9)
	}
	return sum
}
