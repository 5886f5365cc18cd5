package tokens

import "encoding/json"

// Reasoning that a provider seals, and hands out to be sent back, is as long as
// the text in it: in the few signatures of Claude's thinking that were seen with
// the whole text beside them, it was that text's bytes and sealEnvelope in base64.
const (
	sealEnvelope     = 175 // bytes
	sealedTokenBytes = 4   // of sealed text for one token
)

// sealed estimates the tokens of a sealed payload from its length in base64.
func sealed(length int) int {
	return max(0, length*3/4-sealEnvelope) / sealedTokenBytes
}

// sealedIn estimates the tokens of what a block of thinking or reasoning seals.
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
