package rehydrator_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// chat is a conversation that was about a kitchen long ago. Its last messages are about
// a garden.
func chat() []conversation.Message {
	messages := []conversation.Message{
		said(conversation.User, "I painted my kitchen in sage green last summer, and the tiles are white."),
		said(conversation.Assistant, "Sage green goes well with white tiles. "+strings.Repeat("There is a lot to say about colors and rooms. ", 200)),
	}
	for i := range 30 {
		messages = append(messages, said(conversation.User, fmt.Sprintf("Tell me of city number %d.", i)), said(conversation.Assistant, fmt.Sprintf("City number %d is large.", i)))
	}
	return append(messages, said(conversation.User, "My garden has a pond with seven goldfish."), said(conversation.Assistant, "Seven goldfish need some room."))
}

func TestPlainQuestionsBringBackWhatWasSaid(t *testing.T) {
	t.Parallel()
	for typed, item := range map[string]string{
		"What color are the kitchen tiles?":                           "#0",
		"Okay, so which green is my kitchen painted in?":              "#0",
		"I like it here. When did I paint my kitchen green?":          "#0",
		"Can you summarize what color my kitchen tiles are?":          "#0",
		"Paint the kitchen tiles in a color that goes with green.":    "", // asks for nothing
		"Can you paint the kitchen tiles green?":                      "", // nor does this
		"What color?":                                                 "", // too little
		"How many goldfish are in the pond of my garden?":             "", // stands in plain sight
		"What is the capital city of the kingdom of Lesotho, please?": "", // was never spoken of
	} {
		messages := chat()
		exchange := compressed(t, newCounter(t), codec, bodyOf(t, messages, typed), len(messages)-2)
		text, items := process(t, exchange, nil)
		if (item == "") != (text == "") || item != "" && items[0] != item {
			t.Errorf("%q brings %q back, want %q", typed, items, item)
		}
		if size := newCounter(t).Count(text); size > 1_000 {
			t.Errorf("%q brings %d tokens back", typed, size)
		}
		if item != "" && !strings.Contains(exchange.Report.Events[1].Reason, "rehydrator.trigger=question") {
			t.Errorf("%q: %+v", typed, exchange.Report.Events)
		}
	}
}

// What a tool printed can be printed again: a plain question does not bring it back.
func TestPlainQuestionsBringNoCallsBack(t *testing.T) {
	t.Parallel()
	if text, items := process(t, ask(t, "What number of retries is in the config of the importer queue?"), nil); text != "" {
		t.Errorf("brought back: %q", items)
	}
	spoken := append([]conversation.Message{said(conversation.User, "The importer has retries and a queue. "+strings.Repeat("There is much to say about it and about other things. ", 40))}, talk()...)
	exchange := compressed(t, newCounter(t), codec, bodyOf(t, spoken, "What number of retries is in the config of the importer queue?"), len(spoken)-5)
	if text, items := process(t, exchange, nil); text != "" {
		t.Errorf("a message that says less than a call is brought back: %q", items)
	}
}

// Where the model has called tools it can look again: what was said must answer closely. In a
// mere talk a question brings back what answers half of it.
func TestPlainQuestionsAskMoreOfWhatWasSaidBesideCalls(t *testing.T) {
	t.Parallel()
	message := said(conversation.User, "The roof of the shed has 12 beams and a cover of slate.")
	for typed, want := range map[string][2]bool{
		"What cover has the roof of the shed?":       {true, true},
		"How many beams has the roof of the garage?": {true, false},
	} {
		for i, messages := range [][]conversation.Message{chat(), talk()} {
			messages = append([]conversation.Message{message}, messages...)
			exchange := compressed(t, newCounter(t), codec, bodyOf(t, messages, typed), len(messages)-2)
			_, items := process(t, exchange, nil)
			if isBack := len(items) > 0 && items[0] == "#0"; isBack != want[i] {
				t.Errorf("conversation %d: %q brings %q back", i, typed, items)
			}
		}
	}
}

// A name that stands in compressed messages as a part of a longer one brings nothing back.
func TestPartsOfNamesBringNothingBack(t *testing.T) {
	t.Parallel()
	messages := append([]conversation.Message{said(conversation.User, "The pictures are in shop/docs/architecture.html/pages.")}, chat()...)
	for typed, want := range map[string]bool{"Move it to docs/architecture, please.": false, "Tidy shop/docs/architecture.html/pages up.": true} {
		exchange := compressed(t, newCounter(t), codec, bodyOf(t, messages, typed), len(messages)-2)
		if text, items := process(t, exchange, nil); (text != "") != want {
			t.Errorf("%q brings %q back", typed, items)
		}
	}
}

// A name in many compressed messages is what the whole conversation is about, and brings none
// of them back.
func TestNamesOfEverythingBringNothingBack(t *testing.T) {
	t.Parallel()
	for holders, want := range map[int]bool{2: true, 6: true, 7: false, 20: false} {
		messages := []conversation.Message{}
		for i := range 20 {
			text := fmt.Sprintf("Step %d is done.", i)
			if i < holders {
				text += " See shop/orders.go for it."
			}
			messages = append(messages, said(conversation.Assistant, text), said(conversation.User, "Go on."))
		}
		exchange := compressed(t, newCounter(t), codec, bodyOf(t, messages, "Now tidy shop/orders.go up."), len(messages))
		if text, items := process(t, exchange, nil); (text != "") != want {
			t.Errorf("%d messages hold the name: %q came back", holders, items)
		}
	}
}
