package conversation_test

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestHashIsReadAsItWasWrittenByThisVersionAndTheOneBefore(t *testing.T) {
	t.Parallel()
	hash := conversation.Hash(sha256.Sum256([]byte("a")))
	text, err := json.Marshal(hash)
	if err != nil || len(text) > 45 {
		t.Fatalf("%s, %v", text, err)
	}
	numbers, err := json.Marshal([sha256.Size]byte(hash))
	if err != nil {
		t.Fatal(err)
	}
	for _, written := range [][]byte{text, numbers} {
		var read conversation.Hash
		if err := json.Unmarshal(written, &read); err != nil || read != hash {
			t.Errorf("%s is read as %x, %v", written, read, err)
		}
	}
	for _, bad := range []string{`"AAAA"`, `"!"`, `7`, `["a"]`, `""`} {
		var read conversation.Hash
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s is read as %x", bad, read)
		}
	}
}
