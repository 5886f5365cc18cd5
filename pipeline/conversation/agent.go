package conversation

import "strings"

// WithoutHeader returns a text with its sender's name in place of the lines that Codex puts before a message
// from one of its agents to another:
//
//	Message Type: FINAL_ANSWER
//	Task name: /root
//	Sender: /root/look
//	Payload:
//
// Any other text is returned unchanged.
func WithoutHeader(text string) string {
	if !strings.HasPrefix(text, "Message Type: ") {
		return text
	}
	header, said, found := strings.Cut(text, "\nPayload:\n")
	_, sender, named := strings.Cut(header, "\nSender: ")
	if !found || !named {
		return text
	}
	return sender + ": " + said
}
