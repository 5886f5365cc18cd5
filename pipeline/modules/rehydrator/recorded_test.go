package rehydrator_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/memorybench"
)

const recordedAt = "../../../../shared/data/"

// recorded returns the recorded questions, or skips the test without them.
func recorded(t testing.TB) *memorybench.Recorded {
	t.Helper()
	set, err := memorybench.Load(recordedAt + "recall")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("../shared is not here: no recorded questions")
	}
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Explicit references to what a tool printed bring it back, and the answer with it.
func TestRecordedQuestionsBringTheirAnswersBack(t *testing.T) {
	t.Parallel()
	set, counter := recorded(t), newCounter(t)
	known := map[string]conversation.Digest{}
	asked, fired, right, answered := 0, 0, 0, 0
	for i, ask := range set.Tools {
		if i%3 != 0 {
			continue // all of them take three times as long and come to the same: 286 of 288
		}
		messages := set.Sessions[ask.Session][:ask.At]
		shown := max(ask.Evidence[len(ask.Evidence)-1]+1, len(messages)-10)
		exchange := compressed(t, counter, codec, bodyOf(t, messages, ask.Text()), shown, known)
		text, items := process(t, exchange, nil)
		asked++
		if text != "" {
			fired++
		}
		if slices.ContainsFunc(items, func(item string) bool { return strings.HasPrefix(item+"–", "#"+number(ask.Evidence[0])) }) {
			right++
		}
		if strings.Contains(text, ask.Answer) {
			answered++
		} else {
			t.Logf("%d: %q → %v, want #%d", i, ask.Text(), items, ask.Evidence)
		}
	}
	t.Logf("%d questions: %d fired, %d with the evidence, %d with the answer", asked, fired, right, answered)
	if share(fired, asked) < 0.9 || share(answered, asked) < 0.9 {
		t.Errorf("too few")
	}
}

func share(some, all int) float64 { return float64(some) / float64(max(all, 1)) }

func number(n int) string { text, _ := json.Marshal(n); return string(text) }

// Requests in the middle of a session that refer to nothing bring nothing back, be
// all of the session compressed but its newest turn.
func TestRecordedOrdinaryRequestsBringNothingBack(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(recordedAt + "bridge/dev.jsonl")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("../shared is not here: no recorded requests")
	}
	if err != nil {
		t.Fatal(err)
	}
	counter := newCounter(t)
	all, asSent, forced := 0, 0, 0
	for line := range strings.Lines(string(content)) {
		var row struct {
			Label string          `json:"label"`
			Body  json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Label != "normal" {
			continue
		}
		all++
		exchange := compressed(t, counter, codec, row.Body, 0, nil)
		if text, _ := process(t, exchange, nil); text != "" {
			asSent++
		}
		shown := len(exchange.Digests) - 3
		if shown <= 0 {
			continue
		}
		exchange = compressed(t, counter, codec, row.Body, shown, nil)
		if text, items := process(t, exchange, nil); text != "" {
			forced++
			t.Logf("%v: %.300s\n%.600s", items, exchange.Body.Element(len(exchange.Digests)-1), text)
		}
	}
	t.Logf("%d requests: %d fired as sent, %d with all but the newest turns compressed", all, asSent, forced)
	if all == 0 || asSent > 0 || forced > 2 { // two name what only the compressed turns have
		t.Errorf("%d of %d fired, %d of the compressed", asSent, all, forced)
	}
}

// Names that only compressed turns hold bring back turns that have them.
func TestRecordedReferencesBringTheirTurnsBack(t *testing.T) {
	t.Parallel()
	set, counter := recorded(t), newCounter(t)
	known := map[string]conversation.Digest{}
	asked, fired, right := 0, 0, 0
	for i, ask := range set.Refs {
		messages := set.Sessions[ask.Session][:ask.At]
		shown := max(ask.Evidence[len(ask.Evidence)-1]+1, len(messages)-10)
		exchange := compressed(t, counter, codec, bodyOf(t, messages, ask.Text()), shown, known)
		text, items := process(t, exchange, nil)
		asked++
		if text != "" {
			fired++
		}
		if slices.ContainsFunc(items, func(item string) bool {
			return slices.ContainsFunc(ask.Evidence, func(at int) bool { return within(item, at) })
		}) {
			right++
		} else {
			t.Logf("%d: %.200q → %v, want %v", i, ask.Text(), items, ask.Evidence)
		}
	}
	t.Logf("%d references: %d fired, %d with a turn they refer to", asked, fired, right)
	if share(right, asked) < 0.8 {
		t.Errorf("%d of %d references bring back what they refer to", right, asked)
	}
}

// within reports whether a pointer covers a message.
func within(item string, at int) bool {
	from, to, found := strings.Cut(strings.ReplaceAll(item, "#", ""), "–")
	if !found {
		to = from
	}
	var first, last int
	if json.Unmarshal([]byte(from), &first) != nil || json.Unmarshal([]byte(to), &last) != nil {
		return false
	}
	return first <= at && at <= last
}
