package rehydrator_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

//go:embed testdata/followups.txt
var followUps string

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

// A plain question in another language brings back what was said in it, also from clients that
// write only the letters of ASCII.
func TestPlainQuestionsInOtherLanguagesBringBackWhatWasSaid(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for _, one := range []struct{ told, asked, order string }{
		{"Wir haben die Küche im Sommer in hellem Salbeigrün gestrichen.", "In welcher Farbe haben wir die Küche gestrichen?", "Streiche die Küche in hellem Salbeigrün."},
		{"Le dîner de Noël est chez Zoé, rue des Écoles.", "Chez qui est le dîner de Noël ?", "Prépare le dîner de Noël chez Zoé."},
		{"Pintamos la cocina de verde salvia el verano pasado.", "¿De qué verde pintamos la cocina el verano?", "Pinta la cocina de verde salvia."},
		{"来週の火曜日に歯医者の予約があります。", "分かりました。歯医者の予約は何曜日ですか？", "歯医者の予約を火曜日にしてください。"},
		{"我养了一只猫，它叫小白。", "我的猫叫什么？", "给我的猫起名叫小白。"},
		{"회의는 목요일 오후 세 시에 시작합니다.", "회의는 무슨 요일에 시작합니까?", "회의를 목요일 오후에 시작해 주세요."},
		{"Кухню мы покрасили летом в цвет шалфея.", "В какой цвет мы покрасили кухню летом?", "Покрась кухню летом в цвет шалфея."},
	} {
		for _, isASCII := range []bool{false, true} {
			messages := append([]conversation.Message{said(conversation.User, one.told)}, chat()[2:]...)
			for typed, want := range map[string]bool{one.asked: true, one.order: false} {
				body := bodyOf(t, messages, typed)
				if isASCII {
					body = inASCII(body)
				}
				text, items := process(t, compressed(t, counter, codec, body, len(messages)-2), nil)
				if (text != "") != want || want && items[0] != "#0" {
					t.Errorf("%q brings %q back, in ASCII: %t", typed, items, isASCII)
				}
			}
		}
	}
}

// inASCII writes a body as clients do that leave no other letters in it.
func inASCII(body []byte) []byte {
	var text strings.Builder
	for _, r := range string(body) {
		if r < utf8.RuneSelf {
			text.WriteRune(r)
		} else {
			fmt.Fprintf(&text, `\u%04X`, r)
		}
	}
	return []byte(text.String())
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

// What people type to go on brings nothing back: neither of a chat nor of work with files,
// tests and a server, whose words it shares.
func TestOrdinaryFollowUpsBringNothingBack(t *testing.T) {
	t.Parallel()
	work := append([]conversation.Message{
		said(conversation.User, "Fix the lint errors in the users table page, the page is blank when I reload it. The tests pass, the server starts, and the button is blue."),
		said(conversation.Assistant, "I renamed the function, split it into two, sorted the results by date, and updated the docs and the changelog. The list is empty at first. Next comes a migration."),
	}, append(talk(), chat()...)...)
	counter := newCounter(t)
	for _, messages := range [][]conversation.Message{chat(), talk(), work} {
		for typed := range strings.Lines(followUps) {
			typed = strings.TrimSpace(typed)
			exchange := compressed(t, counter, codec, bodyOf(t, messages, typed), len(messages)-2)
			if text, items := process(t, exchange, nil); text != "" {
				t.Errorf("%q brings %q back", typed, items)
			}
		}
	}
}
