package summary

import (
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Call is a request to the provider of a workspace, with its own key.
type Call struct {
	Workspace tenants.WorkspaceID
	Codec     wire.Codec        // of the body, which goes to its endpoint
	Provider  string            // name of the workspace's key; "" means the format's first
	Account   uuid.UUID         // the provider key to use, because only its account can read the body's content; uuid.Nil means any
	Header    map[string]string // in addition to the key and the content type
	Body      []byte
}

// request is a separate request to a model.
type request struct {
	model     tokens.Model
	name      string // of the model, in the provider's terms
	system    string
	user      string
	maxOutput int

	// plain leaves out the instruction not to think, because some models reject it.
	plain bool
}

// question returns the request for a format to encode.
func (r request) question() wire.Question {
	question := wire.Question{
		Model: r.name, System: r.system, User: r.user, MaxOutput: r.maxOutput, Compatible: r.model.Provider != "openai",
	}
	if !r.plain {
		question.NoThinking, question.Effort = r.model.ThinksUnasked, effort(r.model)
	}
	return question
}

// effort returns the least reasoning that a model's whole family accepts; "" if the model does not
// reason or is unknown. (OpenAI, "Reasoning models": only some of them accept minimal and none.)
func effort(model tokens.Model) string {
	for _, start := range []string{"gpt-5", "o1", "o3", "o4"} {
		if strings.HasPrefix(model.Name, start) {
			return "low"
		}
	}
	return ""
}

// CachedPrompt is a prompt of the lane that the provider has, or had just now, in its cache, so
// that a request can continue it.
type CachedPrompt struct {
	Body    []byte            // as sent, or as it would have been sent without an epoch
	Header  map[string]string // the client's headers that the provider needs again
	Account uuid.UUID         // the provider key that it was sent with
	Tokens  int               // the model's, of the whole prompt
	Cached  int               // of these in the provider's cache, if known; 0 if it is cold
	Output  int               // tokens that the client reserved for the answer
}

// basedBody returns the body with an instruction as its last message. ok is false if the answer
// could not be a plain text, or a message of the user may not follow the prompt's last message.
func basedBody(codec wire.Codec, base CachedPrompt, instruction string) (body []byte, ok bool) {
	envelope, err := wire.Open(base.Body, codec.List())
	if err != nil || binds(envelope) || dropsThinking(codec, envelope) {
		return nil, false
	}
	// A message of the user must not follow a system message, so those at the end are left out.
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

// dropsThinking reports whether a message of the user at the end may invalidate the cache from the
// running tool loop on: models with explicit thinking drop the thinking of a loop once it has
// ended. (Anthropic, "Extended thinking": thinking blocks of previous turns are stripped.)
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

// binds reports whether a body asks for an answer other than a text, for several, or for one that
// comes later.
func binds(body *wire.Envelope) bool {
	for _, member := range []string{"response_format", "output_format", "background", "functions", "audio", "prediction"} {
		if value, has := body.Member(member); has && !wire.IsNull(value) && string(value) != "false" {
			return true
		}
	}
	if wire.RestrictsAnswer(body) {
		return true
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
