package apibench

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func TestBodyIsAConversationOfTheWantedSize(t *testing.T) {
	t.Parallel()

	for _, size := range []int{small, medium, large} {
		body, err := NewBody(1, size, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(body.bytes) < size*9/10 || len(body.bytes) > size*11/10 {
			t.Errorf("a body of %d bytes has %d", size, len(body.bytes))
		}

		var sent request
		if err := json.Unmarshal(body.bytes, &sent); err != nil {
			t.Fatal(err)
		}
		if len(sent.Messages) != len(body.marks) {
			t.Errorf("%d messages, %d marks", len(sent.Messages), len(body.marks))
		}
		if !sent.Stream {
			t.Error("the body does not ask for a stream")
		}
		checkPairs(t, sent.Messages)
	}
}

// checkPairs checks that roles alternate and each call has its result right after it.
func checkPairs(t *testing.T, messages []message) {
	t.Helper()

	for i, message := range messages {
		if want := []string{"user", "assistant"}[i%2]; message.Role != want {
			t.Fatalf("message %d is of %s, want %s", i, message.Role, want)
		}
		for _, block := range message.Content {
			if block.Type == "tool_use" && messages[i+1].Content[0].Call != block.ID {
				t.Errorf("message %d: the call %s has no result", i, block.ID)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameBody(t *testing.T) {
	t.Parallel()

	first, err := NewBody(3, medium, false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewBody(3, medium, false)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewBody(4, medium, false)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(first.bytes, second.bytes) {
		t.Error("two bodies of one seed differ")
	}
	if bytes.Equal(first.bytes, other.bytes) {
		t.Error("two seeds give one body")
	}
}

func TestNoveltyDecidesWhichMessagesAreNew(t *testing.T) {
	t.Parallel()

	body, err := NewBody(1, medium, false)
	if err != nil {
		t.Fatal(err)
	}
	last := len(body.marks) - 1
	for novelty, want := range map[Novelty][]int{
		NewestMessage: {last},
		FirstMessage:  {0, last},
		EveryMessage:  nil, // checked by count
	} {
		client := NewClient(body, novelty)
		first, session := client.Next(1)
		first = bytes.Clone(first)
		second, other := client.Next(2)
		if (session == other) != (novelty == NewestMessage) {
			t.Errorf("novelty %d: sessions %s and %s", novelty, session, other)
		}
		changed := differing(t, first, second)
		if novelty == EveryMessage {
			if len(changed) != len(body.marks) {
				t.Errorf("%d of %d messages are new", len(changed), len(body.marks))
			}
			continue
		}
		if len(changed) != len(want) || changed[0] != want[0] || changed[len(changed)-1] != last {
			t.Errorf("novelty %d: messages %v are new, want %v", novelty, changed, want)
		}
	}
}

func TestSessionThatGoesOnKeepsItsHistory(t *testing.T) {
	t.Parallel()

	body, err := NewBody(1, medium, true)
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(body, NextTurn)
	first, session := client.Next(1)
	var before request
	if err := json.Unmarshal(first, &before); err != nil {
		t.Fatal(err)
	}
	for number := 2; number < 5; number++ {
		next, same := client.Next(number)
		var after request
		if err := json.Unmarshal(next, &after); err != nil {
			t.Fatal(err)
		}
		if same != session || !after.Stream {
			t.Errorf("session %s, stream %v", same, after.Stream)
		}
		if len(after.Messages) != len(before.Messages)+2 || !reflect.DeepEqual(after.Messages[:len(before.Messages)], before.Messages) {
			t.Fatalf("request %d does not continue the one before", number)
		}
		checkPairs(t, after.Messages)
		before = after
	}
}

// differing returns which messages of two bodies differ.
func differing(t *testing.T, one, other []byte) []int {
	t.Helper()

	var left, right struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(one, &left); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(other, &right); err != nil {
		t.Fatal(err)
	}
	var changed []int
	for i := range left.Messages {
		if !bytes.Equal(left.Messages[i], right.Messages[i]) {
			changed = append(changed, i)
		}
	}

	return changed
}
