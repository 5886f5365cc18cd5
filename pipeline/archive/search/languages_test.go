package search_test

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

// What was said in any language is found by a question in it, also where it puts no spaces
// between words, inflects them, or writes the same letter in two ways.
func TestQuestionsInManyLanguagesFindWhatWasSaid(t *testing.T) {
	t.Parallel()
	said := []string{
		"Wir haben die Küche am Dienstag in hellem Grün gestrichen.",
		"Die Größe des Puffers steht in der Konfiguration.", //nolint:misspell // German
		"Nous avons déménagé à Lyon au printemps dernier.",
		"El informe trimestral se envió a la contable el viernes.",
		"データベースのサーバーは東京にあります。",
		"来週の火曜日に歯医者の予約があります。",
		"我们把部署脚本放在工具目录里。",
		"我的生日是十月三日，蛋糕要草莓味的。",
		"회의는 목요일 오후 세 시에 시작합니다.",
		"Миграции базы данных запускаются ночью по воскресеньям.",
		"Ёлку мы купили на рынке возле вокзала.",
		"ตารางการประชุมอยู่ในปฏิทินของทีม",
		"Το αντίγραφο ασφαλείας γίνεται κάθε βράδυ.",
		"The rocket 🚀 release is on Friday, the snail 🐌 release never.",
		"func (s *Store) LoadWorkspace(id string) reads the row.",
		"The cafe\u0301 near the office closes at six.",
		"ＡＢＣ１２３ is the number of the order.",
	}
	var messages []conversation.Message
	for i, text := range said {
		messages = append(messages, message([]conversation.Role{conversation.User, conversation.Assistant}[i%2], conversation.Block{Kind: conversation.Text, Text: text}))
	}
	memory := search.NewMemory(search.Documents(0, messages))
	for question, want := range map[string]string{
		"In welcher Farbe ist die Küche gestrichen?": "Küche",

		"Größe Puffer":                 "Größe",
		"GRÖSSE DES PUFFERS":           "Größe",
		"grosse des puffers":           "Größe",
		"Quand avons-nous demenage ?":  "déménagé",
		"¿Cuándo se envió el informe?": "informe",
		"サーバーはどこですか？":                  "サーバー",
		"データベース":                       "データベース",
		"ｻｰﾊﾞｰ":                        "サーバー",
		"歯医者はいつ？":                      "歯医者",
		"部署脚本在哪里？":                     "部署脚本",
		"生日":                           "生日",
		"糕":                            "蛋糕",
		"회의가 언제 시작해요?":                 "회의",
		"Когда запускается миграция?": "Миграции",
		"Где купили елку?":            "Ёлку",
		"ตารางการประชุมอยู่ที่ไหน":    "ตาราง",
		"αντιγραφο":                   "αντίγραφο",
		"🚀":                           "🚀",
		"snail 🐌":                     "🐌",
		"LoadWorkspace":               "LoadWorkspace",
		"load workspace":              "LoadWorkspace",
		"caf\u00e9":                   "cafe\u0301",
		"cafe":                        "cafe\u0301",
		"ABC123":                      "ＡＢＣ１２３",
		"":                            "",
		"   ":                         "",
		"???":                         "",
	} {
		matches := memory.Search(search.Ask(question), 0, 1)
		got := ""
		if len(matches) > 0 {
			got = matches[0].Document.Text(200)
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%.60q finds %q, want %q", question, got, want)
		}
	}
}

// Of a script without spaces a hit shows what it has in common with the question, not the
// whole clause.
func TestMatchedCharactersAreShownInARow(t *testing.T) {
	t.Parallel()
	messages := []conversation.Message{
		message(conversation.User, conversation.Block{Kind: conversation.Text, Text: "来週の火曜日に歯医者の予約があります。Café in the Straße."}),
	}
	if got := search.Matched(messages, search.Ask("歯医者の予約はいつ？ cafe strasse"), 8); !slices.Equal(got, []string{"歯医者の予約", "Café", "Straße"}) {
		t.Errorf("%q", got)
	}
}
