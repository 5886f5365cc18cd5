package wire

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Codec is what differs between the wire formats. It has no state; every method
// may be called at any time from any goroutine.
type Codec interface {
	// Format names the format.
	Format() conversation.Format

	// Traits returns what is known of the format without reading a body.
	Traits() Traits

	// Recognize says how sure it is that a body with these members has this format:
	// Possible, Likely or Certain, 0 for one that it can't be. Of two formats that are
	// equally sure, the first one in the list of formats is taken.
	Recognize(hints Hints) int

	// Compose returns the body of a request of our own: no tools, as little thinking as
	// the format can ask for, nothing stored by the provider.
	Compose(question Question) ([]byte, error)

	// Repeat returns the body of a request that sends messages again as they came.
	Repeat(repetition Repetition) ([]byte, error)

	// Reuse says when an answer may be given again to an equal request.
	Reuse() Reuse

	// List is the name of the body's member that holds the conversation.
	List() string

	// Request reads what the proxy needs to know of a body beside its
	// conversation. The error says what is wrong with the body in words that
	// help its sender.
	Request(*Envelope) (Request, error)

	// Parse reads one element of the list. An element it does not know comes
	// back as one Opaque block; only what is not a JSON object (or, for
	// Responses, a string) is an error.
	Parse(raw json.RawMessage) (conversation.Message, error)

	// Normalize returns the bytes that identify a parsed message's content:
	// equal for two messages that say the same, whatever their ids, cache
	// markers, key order, and whether text came as a string or as one block.
	Normalize(conversation.Message) []byte

	// Encode returns the message's bytes: Raw where it did not change; Raw with
	// only the changed blocks written again where it did, members it does not
	// know kept and cache markers inside changed blocks dropped; a new message
	// where Raw is nil.
	Encode(conversation.Message) (json.RawMessage, error)

	// Mark returns an encoded message with the cache marker of the given time
	// to live ("5m", "1h") on its last block that may carry one, or without any
	// marker if ttl is empty. A format without such markers returns raw.
	Mark(raw json.RawMessage, ttl string) json.RawMessage

	// Append returns a user's message with texts behind everything it holds, each as
	// a block of its own, and all else as it was sent. Content that was a string
	// comes out as the same content sent as an array does. A message whose content
	// is neither is an error.
	Append(raw json.RawMessage, texts ...string) (json.RawMessage, error)

	// Instruct returns how a body says texts behind the client's own system prompt.
	Instruct(body *Envelope, texts []string) Instruction

	// Tap returns a reader of one answer: an event stream or one JSON body.
	Tap(stream bool) Tap

	// Error returns the body of our error in this format's dialect.
	Error(Problem) []byte

	// Opening says whether an event of a stream tells no more than that the stream is open: the
	// provider may still find the prompt too long.
	Opening(Event) Opening
}

// Request is what the proxy needs to know of a body beside its conversation.
type Request struct {
	Model     string
	Stream    bool
	MaxOutput int // tokens reserved for the answer; 0 if the client named none

	// Fixed are the parts that precede the conversation in every prompt: system
	// prompt, tool schemas, instructions. They share the body's memory.
	Fixed []json.RawMessage

	// Markers counts the cache markers inside Fixed and at the top level;
	// MarkerTTL is the last one's time to live.
	Markers   int
	MarkerTTL string

	// SessionID is the session's name where the body holds one, and SessionSource
	// the member it came from ("metadata.user_id", "prompt_cache_key", …).
	SessionID, SessionSource string

	// EndUser is the application's id of the person who speaks, as EndUser reads it; empty
	// without one.
	EndUser string `json:"-"`

	// ThinkingFirst says that a tool loop at the end of the history must open with
	// thinking.
	ThinkingFirst bool

	// TakesOut says that the provider may take earlier tool results out of the prompt by
	// itself, as the request asks it to.
	TakesOut bool

	// ReadOnly says why the history of this request must not be edited ("thread",
	// "previous_response_id", …); empty if it may.
	ReadOnly string

	// Refers says that the body names items by which the provider knows more of the prompt
	// than the body holds.
	Refers bool

	// Repeats says that the provider compares the prompt with that of an earlier request, so
	// that it must go out in the form in which that did.
	Repeats bool

	Thread
}

// Thread is what a request says of a history that the provider holds for minutes.
type Thread struct {
	// Resumes says that the provider holds the rest of the history for minutes only, so that
	// the client has all of it and sends it whole once the provider says that it is gone.
	Resumes bool

	// Holds is the member by which the client asks the provider to hold the history for a
	// request that resumes it; empty without one. As null it asks for nothing.
	Holds string
}

// Instruction is how a body says something behind the client's own system prompt: by
// a member, or by messages of its own.
type Instruction struct {
	Member   Member          // without Raw: none
	Messages json.RawMessage // comma-separated; nil if none
	Behind   int             // messages of the client's list that stand before Messages
}

// Tap reads an answer on its way to the client. Write never fails and keeps
// nothing of p.
type Tap interface {
	Write(p []byte) (int, error)

	// Answer returns what has been read so far.
	Answer() Answer
}

// Answer is what a tap understood of an answer.
type Answer struct {
	Model      string
	StopReason string
	Usage      Usage

	// Served is on what terms the provider says that it answered.
	Served Served

	// Tools counts the uses of tools that the provider ran itself, by the tool's name.
	Tools map[string]int

	// Messages are the answer's messages in the shape in which a client sends
	// them back; none if the answer did not reach its end.
	Messages []json.RawMessage

	// Said is how many bytes of text, thinking and arguments a stream brought that did
	// not come to its report of usage.
	Said int

	// Reduced says that the provider left out part of the prompt before it counted
	// it: thinking or reasoning that no longer fits (input_transformations), or what
	// its own context management took.
	Reduced bool

	// Compactions are what the provider used to compact the history by itself, beyond
	// Usage: one for each time, empty where Usage counts it. None: it did not.
	Compactions []Usage

	// Complete says that the answer reached its regular end.
	Complete bool

	// ErrorType is what kind of error an event inside the stream, or an error body,
	// tells of: Anthropic's type; OpenAI's code, or its type where it gives none.
	ErrorType string

	// Error is the error itself, as the provider wrote it; nil if there was no error, or it has
	// more than MaxError bytes.
	Error json.RawMessage

	// Failure is what reading the answer panicked with; empty: it did not. The rest is what
	// could be read nevertheless; there are no Messages, and Complete is not set.
	Failure string
}

// Billed returns all that the provider charges for: Usage, and what its own compactions took.
func (a *Answer) Billed() Usage {
	billed := a.Usage
	for _, own := range a.Compactions {
		billed.Input += own.Input
		billed.CacheRead += own.CacheRead
		billed.CacheWrite += own.CacheWrite
		billed.CacheWrite1h += own.CacheWrite1h
		billed.Output += own.Output
	}
	return billed
}

// Use notes how often a tool was used that the provider ran itself.
func (a *Answer) Use(tool string, uses int) {
	if a.Tools == nil {
		a.Tools = map[string]int{}
	}
	a.Tools[tool] = min(uses, maxAnswers)
}

// ReadToolUses notes how often a usage says that tools were used that the provider ran itself: as
// Anthropic has it, and servers in OpenAI's dialect that pass it on.
func (a *Answer) ReadToolUses(usage json.RawMessage) {
	for name, value := range Members(Get(usage, "server_tool_use")) {
		tool, counts := strings.CutSuffix(string(name), "_requests")
		if uses, ok := Int(value); ok && counts && uses > 0 {
			a.Use(tool, uses)
		}
	}
}

// Usage counts the tokens of an exchange as the provider reported them, or as they were
// estimated where it did not.
type Usage struct {
	Reported     bool
	Input        int // neither read from nor written to the cache
	CacheRead    int
	CacheWrite   int // all times to live
	CacheWrite1h int // the part of CacheWrite with the one-hour time to live
	Output       int
}

// maxCount bounds a count that is believed: no prompt and no answer has as many tokens.
const maxCount = 100_000_000

// Bounded returns the usage with counts that can be added up, whatever a provider
// reported: none is negative or larger than any prompt.
func (u Usage) Bounded() Usage {
	for _, count := range []*int{&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.Output} {
		*count = max(0, min(*count, maxCount))
	}
	u.CacheWrite1h = min(u.CacheWrite1h, u.CacheWrite)
	return u
}

// Prompt returns the size of the whole prompt.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// UsageAsker is a Codec whose streams report their usage only if they are asked to.
type UsageAsker interface {
	// AskUsage returns the member of a body that asks for it; needed is false if
	// the body asks already.
	AskUsage(body *Envelope) (member Member, needed bool)

	// WithoutUsage returns a filter that takes the report out of a stream again.
	WithoutUsage() Filter
}

// Filter passes a stream on, but for what it takes out.
type Filter interface {
	// Pass takes the next bytes of the stream and returns those that may go on by
	// now. They are valid until the next call and may share memory with chunk.
	Pass(chunk []byte) []byte

	// End returns the bytes that are still held back once the stream has ended.
	End() []byte
}
