package tokens

import "encoding/json"

// Sealed reasoning, which a provider hands out to be sent back, is as long as its text: in a few samples of
// Claude's thinking with a visible whole text, the signature was that text plus sealEnvelope bytes, in
// base64.
const (
	sealEnvelope     = 175 // bytes
	sealedTokenBytes = 4   // of sealed text per token
)

// sealed estimates the tokens of a sealed payload from its length in base64.
func sealed(length int) int {
	return max(0, length*3/4-sealEnvelope) / sealedTokenBytes
}

// sealedIn estimates the tokens of the sealed content in a block of thinking or reasoning.
func sealedIn(raw json.RawMessage) int {
	var block struct {
		Signature string `json:"signature"`         // Anthropic: thinking
		Data      string `json:"data"`              // Anthropic: redacted_thinking
		Encrypted string `json:"encrypted_content"` // OpenAI: reasoning
	}
	if len(raw) == 0 || json.Unmarshal(raw, &block) != nil {
		return 0
	}
	return sealed(len(block.Signature)) + sealed(len(block.Data)) + sealed(len(block.Encrypted))
}
