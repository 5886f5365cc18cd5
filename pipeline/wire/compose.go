package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Question is what Palimpsest itself asks a model, in a request of its own.
type Question struct {
	Model     string // as the provider knows it
	System    string
	User      string
	MaxOutput int // tokens

	// Effort is the least reasoning that the model takes ("low"), for formats that say
	// it so; "" leaves it out.
	Effort string

	// NoThinking asks for no thinking, for formats that can say so.
	NoThinking bool

	// Compatible says that the model is not the provider's own: the server may know the
	// API's older members only.
	Compatible bool
}

// Repetition is a request whose archived messages are sent again. What else the client
// sent is not archived.
type Repetition struct {
	Model     string
	Stream    bool
	MaxOutput int      // tokens, for formats that require a bound
	Tools     []string // names of the tools that the messages call
	Messages  []json.RawMessage
}

// TextMessage is a message that holds one text.
type TextMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// EncodeBody returns a body as JSON, without escapes that only HTML needs.
func EncodeBody[T any](body T) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
