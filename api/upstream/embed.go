package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
)

// embeddingsPath is the path of embeddings in OpenAI's dialect:
// https://platform.openai.com/docs/api-reference/embeddings/create.
const embeddingsPath = "/v1/embeddings"

// maxEmbedded is OpenAI's limit for the texts in one request.
const maxEmbedded = 2048

// ErrNotEmbedded says that a provider answered a request for embeddings with something else: it doesn't have
// the model or endpoint, or refused the texts.
var ErrNotEmbedded = errors.New("provider made no embeddings")

// Embedded is a provider's result for texts.
type Embedded struct {
	Vectors [][]float32 // one for each text, in the texts' order, all of one length
	Tokens  int         // the provider's count; charged even if Embed fails later
}

// embeddingRequest is the body of a request for embeddings.
type embeddingRequest struct {
	Model    string   `json:"model"`
	Input    []string `json:"input"`
	Encoding string   `json:"encoding_format"`
}

// embeddingAnswer is the part of the answer that is read.
type embeddingAnswer struct {
	Data []struct {
		Index  int       `json:"index"`
		Vector []float32 `json:"embedding"`
	} `json:"data"`
	Usage struct {
		Tokens int `json:"prompt_tokens"`
	} `json:"usage"`
}

// Embed has the provider turn 1 to 2048 non-empty texts into vectors. The target must speak OpenAI's dialect.
// It adds no retries; a deadline is the context's. The errors are those of Ask and ErrNotEmbedded; they never
// hold a text.
func Embed(ctx context.Context, sender Sender, target Target, model string, texts []string) (Embedded, error) {
	if len(texts) == 0 || len(texts) > maxEmbedded {
		return Embedded{}, fmt.Errorf("%w: %d texts at once; 1 to %d are allowed", ErrNotEmbedded, len(texts), maxEmbedded)
	}
	body, err := json.Marshal(embeddingRequest{Model: model, Input: texts, Encoding: "float"})
	if err != nil {
		return Embedded{}, fmt.Errorf("%w: %w", ErrNotEmbedded, err)
	}
	answer, err := Ask(ctx, sender, Question{Path: embeddingsPath, Body: body}, target)
	if err != nil {
		return Embedded{}, err
	}
	if answer.Status != http.StatusOK {
		return Embedded{}, fmt.Errorf("%w: status %d", ErrNotEmbedded, answer.Status)
	}
	return readEmbedded(answer.Body, len(texts))
}

// readEmbedded reads the vectors of count texts.
func readEmbedded(body []byte, texts int) (Embedded, error) {
	var read embeddingAnswer
	if err := json.Unmarshal(body, &read); err != nil {
		return Embedded{}, fmt.Errorf("%w: the answer is not what it should be", ErrNotEmbedded)
	}
	embedded := Embedded{Vectors: make([][]float32, texts), Tokens: max(read.Usage.Tokens, 0)}
	for _, found := range read.Data {
		if found.Index < 0 || found.Index >= texts || embedded.Vectors[found.Index] != nil {
			return Embedded{Tokens: embedded.Tokens}, fmt.Errorf("%w: vector %d is not one of %d", ErrNotEmbedded, found.Index, texts)
		}
		embedded.Vectors[found.Index] = found.Vector
	}
	for i, vector := range embedded.Vectors {
		if len(vector) == 0 || len(vector) != len(embedded.Vectors[0]) || !isFinite(vector) {
			return Embedded{Tokens: embedded.Tokens}, fmt.Errorf("%w: vector %d is missing or broken", ErrNotEmbedded, i)
		}
	}
	return embedded, nil
}

func isFinite(vector []float32) bool {
	for _, value := range vector {
		if math.IsNaN(float64(value)) || math.IsInf(float64(value), 0) {
			return false
		}
	}
	return true
}

// maxAnswer bounds the answer to a request of our own, in bytes.
const maxAnswer = 16 << 20

// Question is a request of our own: for a summary, for embeddings.
type Question struct {
	Path   string
	Header map[string]string // beside the key and the content's type
	Body   []byte
}

// Answer is a provider's answer to a request of our own.
type Answer struct {
	Status int
	Stream bool // Body is a stream of events
	Body   []byte
}

// Sender sends requests to providers.
type Sender interface {
	Send(ctx context.Context, request Request, target Target) (*http.Response, error)
}

// Ask sends a request of our own and reads the whole answer, whatever its status. It adds no retries. Its
// errors are those of Client.Send, and errors for an answer that ended early or is longer than 16 MiB.
func Ask(ctx context.Context, sender Sender, question Question, target Target) (Answer, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range question.Header {
		header.Set(name, value)
	}
	if dialect, known := DialectOf(target.Provider); known {
		dialect.AddTo(header)
	}
	response, err := sender.Send(ctx, Request{Method: http.MethodPost, Path: question.Path, Header: header, Body: question.Body}, target)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return Answer{}, fmt.Errorf("%w: the answer ended early", ErrUnreachable)
	case len(body) > maxAnswer:
		return Answer{}, fmt.Errorf("%w: the answer has more than %d bytes", ErrUnreachable, maxAnswer)
	}
	stream := strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/event-stream")
	return Answer{Status: response.StatusCode, Stream: stream, Body: body}, nil
}

// Interface guard.
var _ Sender = (*Client)(nil)
