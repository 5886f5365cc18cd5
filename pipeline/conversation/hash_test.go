package conversation_test

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestHashIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	hash := conversation.Hash(sha256.Sum256([]byte("a")))
	text, err := json.Marshal(hash)
	if err != nil || len(text) > 45 {
		t.Fatalf("%s, %v", text, err)
	}
	var read conversation.Hash
	if err := json.Unmarshal(text, &read); err != nil || read != hash {
		t.Errorf("%s is read as %x, %v", text, read, err)
	}
	for _, bad := range []string{`"AAAA"`, `"!"`, `7`, `["a"]`, `[1]`, `""`} {
		var read conversation.Hash
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s is read as %x", bad, read)
		}
	}
}
