package summary

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Call is a request to the provider of a workspace, with its own key.
type Call struct {
	Workspace uuid.UUID
	Format    conversation.Format
	Provider  string    // which of the workspace's keys, by name; empty: the format's first
	Account   uuid.UUID // the provider key that must be used, for the body holds what its account alone can read; uuid.Nil: any
	Path      string
	Header    map[string]string // beside the key and the content's type
	Body      []byte
}

// request is what a model is asked in a request of its own.
type request struct {
	model     tokens.Model
	name      string // of the model, as the provider knows it
	system    string
	user      string
	maxOutput int

	// plain leaves out that the model is not to think: there are models that do
	// not let themselves be told.
	plain bool
}

// quiets reports whether a body tells its model not to think.
func (r request) quiets(format conversation.Format) bool {
	if r.plain {
		return false
	}
	if format == conversation.Anthropic {
		return r.model.ThinksUnasked
	}
	return effort(r.model) != ""
}

// ownBody returns the body of a request of its own in a format's shape: no tools,
// no thinking where that can be said, nothing kept by the provider.
func ownBody(format conversation.Format, r request) ([]byte, error) {
	switch format {
	case conversation.Anthropic:
		return encode(anthropicBody(r))
	case conversation.OpenAIChat:
		return encode(chatBody(r))
	case conversation.OpenAIResponses:
		return encode(responsesBody(r))
	default:
		return nil, fmt.Errorf("no summary in the format %q", format)
	}
}

// Path returns where a format's requests go.
func Path(format conversation.Format) string {
	switch format {
	case conversation.OpenAIChat:
		return "/v1/chat/completions"
	case conversation.OpenAIResponses:
		return "/v1/responses"
	default:
		return "/v1/messages"
	}
}

type textMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	Thinking  *anthropicThinking `json:"thinking,omitempty"`
	System    string             `json:"system"`
	Messages  []textMessage      `json:"messages"`
}

type anthropicThinking struct {
	Type string `json:"type"`
}

func anthropicBody(r request) anthropicRequest {
	body := anthropicRequest{Model: r.name, MaxTokens: r.maxOutput, System: r.system, Messages: []textMessage{{"user", r.user}}}
	if r.quiets(conversation.Anthropic) {
		body.Thinking = &anthropicThinking{Type: "disabled"}
	}
	return body
}

type chatRequest struct {
	Model               string        `json:"model"`
	MaxTokens           int           `json:"max_tokens,omitempty"`            // for servers that know only this one
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"` // OpenAI's own models
	ReasoningEffort     string        `json:"reasoning_effort,omitempty"`
	Messages            []textMessage `json:"messages"`
}

func chatBody(r request) chatRequest {
	body := chatRequest{Model: r.name, Messages: []textMessage{{"system", r.system}, {"user", r.user}}}
	if r.quiets(conversation.OpenAIChat) {
		body.ReasoningEffort = effort(r.model)
	}
	if r.model.Provider == "openai" {
		body.MaxCompletionTokens = r.maxOutput
	} else {
		body.MaxTokens = r.maxOutput
	}
	return body
}

type responsesRequest struct {
	Model           string              `json:"model"`
	MaxOutputTokens int                 `json:"max_output_tokens"`
	Reasoning       *responsesReasoning `json:"reasoning,omitempty"`
	Store           bool                `json:"store"`
	Instructions    string              `json:"instructions"`
	Input           []textMessage       `json:"input"`
}

type responsesReasoning struct {
	Effort string `json:"effort"`
}

func responsesBody(r request) responsesRequest {
	body := responsesRequest{Model: r.name, MaxOutputTokens: r.maxOutput, Instructions: r.system, Input: []textMessage{{"user", r.user}}}
	if r.quiets(conversation.OpenAIResponses) {
		body.Reasoning = &responsesReasoning{Effort: effort(r.model)}
	}
	return body
}

// effort returns the least reasoning that all of a model's relatives take; empty
// where the model does not reason or nobody knows. (OpenAI, "Reasoning models":
// minimal and none are known to some of them only.)
func effort(model tokens.Model) string {
	for _, start := range []string{"gpt-5", "o1", "o3", "o4"} {
		if strings.HasPrefix(model.Name, start) {
			return "low"
		}
	}
	return ""
}

func encode[T any](body T) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// Ride is a prompt of the lane that the provider has, or had just now, in its
// cache: it can be gone on from.
type Ride struct {
	Body    []byte            // as it went out, or would have gone out without an epoch
	Header  map[string]string // that the client sent with it and the provider needs again
	Account uuid.UUID         // the provider key that it went out with
	Tokens  int               // the model's, of the whole prompt
	Cached  int               // of these in the provider's cache, as far as is known; 0: it is cold
	Output  int               // tokens that the client reserved for the answer
}

// rideBody returns the body with an instruction as its last message. ok is false
// where the answer could not be a plain text, or the prompt does not end with a
// message that another one of the user may follow.
func rideBody(codec wire.Codec, ride Ride, instruction string) (body []byte, ok bool) {
	envelope, err := wire.Open(ride.Body, codec.List())
	if err != nil || binds(envelope) || dropsThinking(codec, envelope) {
		return nil, false
	}
	// No message of the user may follow a system message: those at the end are left out.
	end := envelope.Len()
	for ; end > 0; end-- {
		last, err := codec.Parse(envelope.Element(end - 1))
		if err != nil || last.Role == conversation.Assistant {
			return nil, false
		}
		if last.Role != conversation.System {
			break
		}
	}
	if end == 0 {
		return nil, false
	}
	raw, err := codec.Encode(conversation.Message{
		Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.Text, Text: instruction}}, Changed: true,
	})
	if err != nil {
		return nil, false
	}
	return envelope.Seal([]wire.Piece{{From: 0, To: end}, {From: end, To: envelope.Len(), Raw: raw}}), true
}

// dropsThinking reports whether a message of the user at the end may lose the cache
// from the running tool loop on: models that are asked by hand to think drop the
// thinking of a loop once it has ended. (Anthropic, "Extended thinking": thinking
// blocks of previous turns are stripped.)
func dropsThinking(codec wire.Codec, body *wire.Envelope) bool {
	request, err := codec.Request(body)
	if err != nil || !request.ThinkingFirst {
		return err != nil
	}
	for i := body.Len() - 1; i >= 0; i-- {
		message, err := codec.Parse(body.Element(i))
		if err != nil || message.Flags().Has(conversation.HasThinking) {
			return true
		}
		if flags := message.Flags(); message.Role == conversation.User && !flags.Has(conversation.HasResult) {
			return false
		}
	}
	return false
}

// binds reports whether a body asks for an answer of another kind than a text, or
// for several, or for one that comes later.
func binds(body *wire.Envelope) bool {
	for _, member := range []string{"response_format", "output_format", "background", "functions", "audio", "prediction"} {
		if value, has := body.Member(member); has && !wire.IsNull(value) && string(value) != "false" {
			return true
		}
	}
	if n, has := body.Member("n"); has && string(n) != "1" {
		return true
	}
	for member, inside := range map[string]string{"text": "format", "output_config": "format"} {
		value, _ := body.Member(member)
		if format := wire.Get(value, inside); format != nil && wire.Text(format, "type") != "text" {
			return true
		}
	}
	choice, has := body.Member("tool_choice")
	if !has || wire.IsNull(choice) {
		return false
	}
	kind, isText := wire.String(choice)
	if !isText {
		kind = wire.Text(choice, "type")
	}
	return kind != "auto" && kind != "none"
}
