package conversation_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestHeaderOfAnAgentsMessageIsItsSendersName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Message Type: FINAL_ANSWER\nTask name: /root\nSender: /root/look\nPayload:\nIt is there.\nBelow.": "/root/look: It is there.\nBelow.",
		"Message Type: a kind of message": "Message Type: a kind of message",
		"It is there.\nPayload:\nx":       "It is there.\nPayload:\nx",
	} {
		if got := conversation.WithoutHeader(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
