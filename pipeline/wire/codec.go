package wire

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Codec holds the differences between the wire formats. It is stateless and safe for concurrent use.
type Codec interface {
	// Format names the format.
	Format() conversation.Format

	// Traits returns the properties of the format that don't depend on a body.
	Traits() Traits

	// Recognize returns how likely a body with these members has this format: Possible, Likely, Certain, or 0
	// for impossible. Among equally likely formats, the first in the list of formats wins.
	Recognize(hints Hints) int

	// Compose returns the body of a request by Palimpsest: no tools, the least thinking that the format can
	// ask for, and no storage by the provider.
	Compose(question Question) ([]byte, error)

	// Repeat returns the body of a request that sends archived messages unchanged.
	Repeat(repetition Repetition) ([]byte, error)

	// Reuse returns the conditions under which an answer may be reused for an equal request.
	Reuse() Reuse

	// List is the name of the body's member that holds the conversation.
	List() string

	// Request reads the parts of a body that the proxy needs apart from the conversation. The error describes
	// the fault in words that help the sender.
	Request(*Envelope) (Request, error)

	// Parse reads one element of the list. An unknown element becomes one Opaque block. Only a value that
	// isn't a JSON object (or, for Responses, a string) is an error.
	Parse(raw json.RawMessage) (conversation.Message, error)

	// Normalize returns the bytes that identify a parsed message's content. They are equal for equal content,
	// regardless of ids, cache markers, key order, and whether text was sent as a string or as one block.
	Normalize(conversation.Message) []byte

	// Encode returns the message's bytes: Raw for an unchanged message. In a changed one, it encodes only the
	// changed blocks again, keeps unknown members and drops cache markers inside changed blocks. If Raw is
	// nil, it encodes a new message.
	Encode(conversation.Message) (json.RawMessage, error)

	// Mark returns an encoded message with a cache marker of the given time to live ("5m", "1h") on its last
	// block that accepts one; "" removes all markers. A format without such markers returns raw.
	Mark(raw json.RawMessage, ttl string) json.RawMessage

	// Append returns a user message with each text appended as a separate block, and everything else
	// unchanged. String content becomes the equivalent array. Any other content is an error.
	Append(raw json.RawMessage, texts ...string) (json.RawMessage, error)

	// Instruct returns how to add texts behind the client's own system prompt in a body.
	Instruct(body *Envelope, texts []string) Instruction

	// Tap returns a reader of one answer: an event stream or one JSON body.
	Tap(stream bool) Tap

	// Error returns the body of our error in this format.
	Error(Problem) []byte

	// Opening returns whether an event only says that the stream is open. After such an event, the provider
	// may still find the prompt too long.
	Opening(Event) Opening
}

// Request holds the parts of a body that the proxy needs apart from the conversation.
type Request struct {
	Model     string
	Stream    bool
	MaxOutput int // tokens reserved for the answer; 0 if the client set no limit

	// Fixed are the parts that precede the conversation in every prompt: system
	// prompt, tool schemas, instructions. They share the body's memory.
	Fixed []json.RawMessage

	// Markers counts the cache markers inside Fixed and at the top level;
	// MarkerTTL is the last one's time to live.
	Markers   int
	MarkerTTL string

	// SessionID is the session's name in the body, and SessionSource the member that held it
	// ("metadata.user_id", "prompt_cache_key", …).
	SessionID, SessionSource string

	// Previous is the id of the answer, stored by the provider, that the request continues; "" if absent.
	Previous string `json:"-"`

	// EndUser is the application's id of its user, as returned by EndUser; "" if absent.
	EndUser string `json:"-"`

	// ThinkingFirst means that a tool loop at the end of the history must begin with thinking.
	ThinkingFirst bool

	// ReadOnly is the reason why the history of this request must not be edited ("thread",
	// "previous_response_id", …); "" if it may be edited.
	ReadOnly string

	// Refers means that the body names items through which the provider knows more of the prompt than the
	// body holds.
	Refers bool

	// Repeats means that the provider compares the prompt with that of an earlier request. Therefore it must
	// be sent in the same form.
	Repeats bool

	Thread
}

// Thread is a request's information about a history that the provider holds for minutes.
type Thread struct {
	// Resumes means that the provider holds the rest of the history only for minutes. The client has all of
	// it and sends it whole once the provider reports that it is gone.
	Resumes bool

	// Holds is the member by which the client asks the provider to hold the history for a later request; ""
	// if absent. A null member does not ask for it.
	Holds string
}

// Instruction adds text behind the client's own system prompt in a body: in a member, or in separate
// messages.
type Instruction struct {
	Member   Member          // optional; unset without Raw
	Messages json.RawMessage // comma-separated; nil if absent
	Behind   int             // messages of the client's list before Messages
}

// Tap reads an answer on its way to the client. Write never fails and does not keep p.
type Tap interface {
	Write(p []byte) (int, error)

	// Answer returns the answer so far.
	Answer() Answer
}

// Answer holds the information that a tap read from an answer.
type Answer struct {
	ID         string // by which a later request can continue it, if the provider stores it; "" without such ids
	Model      string
	StopReason string
	Usage      Usage

	// Served holds the terms under which the provider says it answered.
	Served Served

	// Tools counts the uses of tools that the provider ran, by the tool's name.
	Tools map[string]int

	// Messages are the answer's messages in the form in which a client sends them back; empty if the answer
	// did not reach its end.
	Messages []json.RawMessage

	// Said is how many bytes of text, thinking and arguments a stream contained without reaching its usage
	// report.
	Said int

	// Reduced means that the provider left out part of the prompt before it counted it: thinking or reasoning
	// that no longer fits (input_transformations), or content that its context management removed.
	Reduced bool

	// Compactions are the provider's own compactions of the history, one entry for each. An entry holds the
	// tokens beyond Usage; it is empty if Usage includes them.
	Compactions []Usage

	// Advisors are other models that the provider asked for the answer, with the tokens beyond Usage.
	Advisors []Advisor

	// Complete means that the answer reached its regular end.
	Complete bool

	// ErrorType is the type of an error event inside the stream, or of an error body: Anthropic's type;
	// OpenAI's code, or its type without a code.
	ErrorType string

	// Error is the error as the provider wrote it; nil without an error, or if it exceeds MaxError bytes.
	Error json.RawMessage

	// Failure is the panic of reading the answer; "" without one. The other fields hold the readable part,
	// but Messages is empty and Complete is false.
	Failure string
}

// Advisor is a model that the provider asked for an answer of another one.
type Advisor struct {
	Model string
	Usage Usage
}

// Billed returns all tokens that the provider charges for: Usage, its own compactions and its advisors.
func (a *Answer) Billed() Usage {
	billed := a.Usage
	for _, own := range a.Compactions {
		billed.add(own)
	}
	for i := range a.Advisors {
		billed.add(a.Advisors[i].Usage)
	}
	return billed
}

// Use counts uses of a tool that the provider ran.
func (a *Answer) Use(tool string, uses int) {
	if a.Tools == nil {
		a.Tools = map[string]int{}
	}
	a.Tools[tool] = min(uses, maxAnswers)
}

// ReadToolUses counts the uses of the provider's tools in a usage. Anthropic reports them, and servers with
// OpenAI's API that pass them on.
func (a *Answer) ReadToolUses(usage json.RawMessage) {
	for name, value := range Members(Get(usage, "server_tool_use")) {
		tool, counts := strings.CutSuffix(string(name), "_requests")
		if uses, ok := Count(value); ok && counts {
			a.Use(tool, uses)
		}
	}
}

// AddFound adds the tokens that Google's own tools gave the model beside the prompt. Those found by its search
// are not charged for (https://ai.google.dev/gemini-api/docs/pricing), and no answer tells them from others.
func (a *Answer) AddFound(tokens int) {
	if _, searched := a.Tools["google_search"]; !searched || len(a.Tools) > 1 {
		a.Usage.Input += tokens
	}
}

// Usage counts the tokens of an exchange, reported by the provider or otherwise estimated.
type Usage struct { //nolint:recvcheck // add sums in place
	Reported     bool
	Input        int // neither read from nor written to the cache
	CacheRead    int
	CacheWrite   int // all times to live
	CacheWrite1h int // the part of CacheWrite with the one-hour time to live
	Output       int
}

// add adds the counts of another usage.
func (u *Usage) add(other Usage) {
	u.Input += other.Input
	u.CacheRead += other.CacheRead
	u.CacheWrite += other.CacheWrite
	u.CacheWrite1h += other.CacheWrite1h
	u.Output += other.Output
}

// maxCount is the largest accepted count. No prompt or answer has as many tokens.
const maxCount = 100_000_000

// Bounded returns the usage with all counts between 0 and maxCount, so that they can be added up safely.
func (u Usage) Bounded() Usage {
	for _, count := range []*int{&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.Output} {
		*count = max(0, min(*count, maxCount))
	}
	u.CacheWrite1h = min(u.CacheWrite1h, u.CacheWrite)
	return u
}

// Prompt returns the size of the whole prompt.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// UsageAsker is a Codec whose streams report their usage only on request.
type UsageAsker interface {
	// AskUsage returns the member of a body that requests the usage; needed is false if the body already
	// does.
	AskUsage(body *Envelope) (member Member, needed bool)

	// WithoutUsage returns a filter that removes the usage report from a stream.
	WithoutUsage() Filter
}

// Filter passes a stream on, except the parts that it removes.
type Filter interface {
	// Pass takes the next bytes of the stream and returns those that may be passed on now. They are valid
	// until the next call and may share memory with chunk.
	Pass(chunk []byte) []byte

	// End returns the held-back bytes after the stream has ended.
	End() []byte
}
