package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Question is a request that Palimpsest itself sends to a model.
type Question struct {
	Model     string // the provider's name for it
	System    string
	User      string
	MaxOutput int // tokens

	// Effort is the model's lowest reasoning effort ("low"), for formats with such a setting; "" omits it.
	Effort string

	// NoThinking turns thinking off, for formats that can do so.
	NoThinking bool

	// Compatible means that the provider did not make the model. Therefore its server may support only older
	// members of the API.
	Compatible bool
}

// Repetition is a request that sends archived messages again. Other parts of the client's request are not
// archived.
type Repetition struct {
	Model     string
	Stream    bool
	MaxOutput int      // tokens, for formats that require a limit
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
