package providerdouble

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
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

// Echoed is the answer of an endpoint that the double does not know: the request as it came.
type Echoed struct {
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Query  string      `json:"query"`
	Header http.Header `json:"headers"`
	SHA256 string      `json:"sha256"` // of the body, hexadecimal
	Size   int         `json:"size"`
}

// other answers every request that generates nothing.
func (c *call) other() {
	c.entry.Status = http.StatusOK
	path := strings.TrimSuffix(c.r.URL.Path, "/")
	if !strings.HasPrefix(path, "/v1/") {
		c.entry.Status = http.StatusNotFound
	}
	c.double.log.add(c.entry)
	model, isModel := strings.CutPrefix(path, "/v1/models/")
	response, isStoredResponse := isStored(c.r.Method, path)
	switch reads := c.r.Method == http.MethodGet; {
	case reads && path == "/v1/models":
		c.listModels()
	case reads && isModel:
		c.getModel(model)
	case isStoredResponse:
		c.storedResponse(response)
	case path == "/v1/embeddings" && c.r.Method == http.MethodPost:
		c.embed()
	case path == "/v1/responses":
		c.refuse(OpenAIResponses, &Rejection{Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Message: "This server does not speak WebSocket."}, false)
	case c.entry.Status == http.StatusNotFound:
		(&Rejection{Status: http.StatusNotFound, Type: "not_found_error", Message: "Not found"}).write(c.w, familyOf(c.r), c.requestID)
	default:
		c.echo()
	}
}

func (c *call) echo() {
	sum := sha256.Sum256(c.entry.Body)
	c.w.Header().Set("Content-Type", "application/json")
	writeBody(c.w, Echoed{
		Method: c.r.Method, Path: c.r.URL.Path, Query: c.r.URL.RawQuery, Header: c.r.Header,
		SHA256: hex.EncodeToString(sum[:]), Size: len(c.entry.Body),
	})
}

// embeddingModels are the models for embeddings and the length of their vectors. The double always uses
// dimensions, unless a request asks for fewer.
var embeddingModels = []string{"text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002"}

const (
	dimensions    = 256
	maxInputs     = 2048
	maxInput      = 8192    // tokens of one text
	maxInputTotal = 300_000 // tokens of all texts
)

type embeddingList struct {
	Object string         `json:"object"`
	Data   []embedding    `json:"data"`
	Model  string         `json:"model"`
	Usage  embeddingUsage `json:"usage"`
}

type embedding struct {
	Object string          `json:"object"`
	Index  int             `json:"index"`
	Vector json.RawMessage `json:"embedding"` // numbers, or their bytes in base64
}

type embeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// embeddingRequest is a checked request.
type embeddingRequest struct {
	model  string
	texts  []string
	length int
	packed bool // base64
}

// embed answers POST /v1/embeddings as strictly as OpenAI does:
// https://platform.openai.com/docs/api-reference/embeddings/create.
func (c *call) embed() {
	request, rejection := c.double.config.readEmbedding(c.body)
	if rejection != nil {
		c.refuse(OpenAIChat, rejection, true)
		return
	}
	list := embeddingList{Object: "list", Model: request.model, Data: []embedding{}}
	for i, text := range request.texts {
		list.Data = append(list.Data, embedding{Object: "embedding", Index: i, Vector: encodeVector(Vector(text, request.length), request.packed)})
		list.Usage.PromptTokens += c.double.config.reported(c.double.config.Count(text))
	}
	list.Usage.TotalTokens = list.Usage.PromptTokens
	c.double.log.update(func() { c.entry.Model, c.entry.Prompt = request.model, list.Usage.PromptTokens })
	c.w.Header().Set("Content-Type", "application/json")
	writeBody(c.w, list)
}

// readEmbedding reads and checks a body.
func (c Config) readEmbedding(body []byte) (embeddingRequest, *Rejection) {
	m, ok := document(body)
	if !ok {
		return embeddingRequest{}, refuse("We could not parse the JSON body of your request.")
	}
	request := embeddingRequest{length: dimensions}
	for name := range m {
		switch name {
		case "model", "input", "encoding_format", "dimensions", "user":
		default:
			return embeddingRequest{}, refuse("Unrecognized request argument supplied: %s", name)
		}
	}
	model, named := m.text("model")
	switch {
	case !named || model == "":
		return embeddingRequest{}, refuse("you must provide a model parameter")
	case !isEmbeddingModel(model):
		return embeddingRequest{}, noModel(OpenAIChat, model)
	}
	request.model = model
	switch format, given := m.text("encoding_format"); {
	case given && format == "base64":
		request.packed = true
	case m["encoding_format"] != nil && format != "float":
		return embeddingRequest{}, refuse("'encoding_format' must be one of 'float', 'base64'")
	}
	if raw := m["dimensions"]; raw != nil {
		if json.Unmarshal(raw, &request.length) != nil || request.length < 1 || request.length > dimensions || model == "text-embedding-ada-002" {
			return embeddingRequest{}, refuse("Invalid value for 'dimensions' = %s", raw)
		}
	}
	var rejection *Rejection
	request.texts, rejection = c.embeddingInputs(m["input"])
	return request, rejection
}

func isEmbeddingModel(id string) bool {
	return slices.Contains(embeddingModels, id)
}

// embeddingInputs reads a text or a list of texts and checks the limits.
func (c Config) embeddingInputs(raw json.RawMessage) ([]string, *Rejection) {
	invalid := refuse("'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
	var texts []string
	var text string
	switch {
	case raw == nil:
		return nil, refuse("Missing required parameter: 'input'.")
	case json.Unmarshal(raw, &text) == nil:
		texts = []string{text}
	case json.Unmarshal(raw, &texts) != nil || len(texts) == 0 || len(texts) > maxInputs:
		return nil, invalid
	}
	total := 0
	for _, text := range texts {
		tokens := c.Count(text)
		total += tokens
		switch {
		case text == "":
			return nil, invalid
		case tokens > maxInput:
			return nil, refuse("This model's maximum context length is %d tokens, however you requested %d tokens (%d in your prompt; 0 for the completion).", maxInput, tokens, tokens)
		}
	}
	if total > maxInputTotal {
		return nil, &Rejection{Status: http.StatusBadRequest, Type: "max_tokens_per_request", Message: fmt.Sprintf("Requested %d tokens, max %d tokens per request", total, maxInputTotal), Code: "max_tokens_per_request"}
	}
	return texts, nil
}

// encodeVector writes a vector as numbers, or as its little-endian bytes in base64.
func encodeVector(vector []float32, packed bool) json.RawMessage {
	if !packed {
		encoded, err := json.Marshal(vector)
		if err != nil {
			panic(err) // its numbers are finite
		}
		return encoded
	}
	bytes := make([]byte, 0, 4*len(vector))
	for _, value := range vector {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(value))
	}
	return json.RawMessage(`"` + base64.StdEncoding.EncodeToString(bytes) + `"`)
}

// Vector is the double's embedding of a text: a bag of its words, of the pairs of adjacent words and of the
// words' three-letter pieces, each hashed to one place with a sign, and the sum scaled to length one. It is
// deterministic and real in that texts with common wording are close together; unlike a trained model's it
// knows nothing of meaning.
func Vector(text string, length int) []float32 {
	sum := make([]float64, length)
	add := func(feature string, weight float64) {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(feature))
		value := hash.Sum64()
		if value>>63 == 1 {
			weight = -weight
		}
		sum[value%uint64(length)] += weight //nolint:gosec // a length is positive
	}
	words := strings.Fields(strings.ToLower(text))
	for i, word := range words {
		add("w "+word, 1)
		if i > 0 {
			add("p "+words[i-1]+" "+word, 0.5)
		}
		padded := "^" + word + "$"
		for j := 0; j+3 <= len(padded); j++ {
			add("t "+padded[j:j+3], 0.5)
		}
	}
	add("any text", 0.1) // otherwise a text without words has no direction
	size := 0.0
	for _, value := range sum {
		size += value * value
	}
	vector := make([]float32, length)
	for i, value := range sum {
		vector[i] = float32(value / max(math.Sqrt(size), 1e-9))
	}
	return vector
}
