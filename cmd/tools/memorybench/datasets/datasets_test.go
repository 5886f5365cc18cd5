package datasets_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/cmd/tools/memorybench/datasets"
)

// The invented sets have the shape of the published ones.
const (
	loCoMo = `[{"sample_id":"s1","conversation":{"speaker_a":"Ada","speaker_b":"Ben","session_1_date_time":"1 May","session_1":[
		{"speaker":"Ada","dia_id":"D1:1","text":"I adopted a parrot last week."},
		{"speaker":"Ben","dia_id":"D1:2","text":"How nice! I went sailing.","blip_caption":"a red boat"}],
		"session_2":[{"speaker":"Ben","dia_id":"D2:1","text":"Does your bird talk?"}]},
		"qa":[{"question":"What pet did Ada adopt?","answer":"a parrot","evidence":["D1:1; D2:1"],"category":1},
		{"question":"What color is the boat?","answer":"red","evidence":["D:1:2"],"category":4},
		{"question":"Where is Ada from?","evidence":[],"category":5}]}]`
	beamChat = `[{"batch_number":1,"turns":[[{"role":"user","id":0,"content":"My first deadline is April 1."},{"role":"assistant","id":1,"content":"Noted."}],
		[{"role":"user","id":2,"content":"The deadline moved to April 5."}]]}]`
	beamAsked = `{"knowledge_update":[{"question":"When is the deadline?","source_chat_ids":{"original_info":[0],"updated_info":[2,2]}}],
		"information_extraction":[{"question":"Which deadline came first?","source_chat_ids":[0]}],
		"abstention":[{"question":"What is my name?"}]}`
	longMemEval = `[{"question_id":"q1","question_type":"single-session-user","question":"Which bike did I buy?","haystack_session_ids":["a","b"],"answer_session_ids":["b"],
		"haystack_sessions":[[{"role":"user","content":"Tell me of tea."},{"role":"assistant","content":"Tea is a drink."}],[{"role":"user","content":"I bought a blue bike.","has_answer":true}]]},
		{"question_id":"q2_abs","question_type":"single-session-user","question":"Which car did I buy?","haystack_session_ids":[],"answer_session_ids":[],"haystack_sessions":[]}]`
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range files {
		name = filepath.Join(directory, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestPublicSetsAreRead(t *testing.T) {
	t.Parallel()
	sets, err := datasets.Load(write(t, map[string]string{
		"locomo10.json": loCoMo, "chats/100K/7/chat.json": beamChat, "chats/100K/7/probing_questions/probing_questions.json": beamAsked,
		"longmemeval_s.json": longMemEval,
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range sets {
		for _, told := range sets[i].Conversations {
			for _, asked := range told.Questions {
				got = append(got, strings.Join([]string{sets[i].Name, sets[i].Unit, told.ID, asked.Ability, asked.Text}, "|"))
				for _, unit := range asked.Evidence {
					got[len(got)-1] += "|" + told.Messages[unit].Blocks[0].Text
				}
			}
		}
	}
	want := []string{
		"LoCoMo|message|s1|several messages|What pet did Ada adopt?|Ada: I adopted a parrot last week.|Ben: Does your bird talk?",
		"LoCoMo|message|s1|one message|What color is the boat?|Ben: How nice! I went sailing. [shares a red boat]",
		"BEAM 100K|message|7|information_extraction|Which deadline came first?|My first deadline is April 1.",
		"BEAM 100K|message|7|knowledge_update|When is the deadline?|My first deadline is April 1.|The deadline moved to April 5.",
		"LongMemEval s|session|q1|single-session-user|Which bike did I buy?|Tea is a drink.", // the second session, not the second message
		"LongMemEval s|message|q1|single-session-user|Which bike did I buy?|I bought a blue bike.",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOrdersAreLookedForInTheLastPrompt(t *testing.T) {
	t.Parallel()
	turns := []string{`{"role":"user","id":0,"content":"Always answer in verse. ->-> 1,1"}`, `{"role":"user","id":1,"content":"I prefer trains, is that fine? ->-> 1,2"}`}
	for id := 2; id < 60; id++ {
		role := []string{"assistant", "user"}[id%2]
		turns = append(turns, fmt.Sprintf(`{"role":%q,"id":%d,"content":"This is part %d. %s"}`, role, id, id, strings.Repeat("It tells of many small things. ", 60)))
	}
	sets, err := datasets.Load(write(t, map[string]string{
		"chats/100K/1/chat.json": `[{"turns":[[` + strings.Join(turns, ",") + `]]}]`,
		"chats/100K/1/probing_questions/probing_questions.json": `{"instruction_following":[{"question":"How?","source_chat_ids":[0]},{"question":"What?","source_chat_ids":[20]}],
			"preference_following":[{"question":"Which?","source_chat_ids":[1]}],"summarization":[{"question":"All?","source_chat_ids":[1]}]}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := datasets.Survive(t.Context(), &sets[0], 8_000)
	want := []datasets.Survival{{Ability: "instruction_following", Kept: 1, Given: 2}, {Ability: "preference_following", Kept: 1, Given: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	table := datasets.SurvivalTable(&sets[0], []int{8_000}, [][]datasets.Survival{got})
	if !strings.Contains(table, "| 8000 | instruction following | 2 | 1 | **50.0 %** |") {
		t.Errorf("the table is\n%s", table)
	}
}

// As its authors publish them the sets of LongMemEval have an ending or none, some chats of BEAM
// are cut to their length in a file of its own, and those of 10M tokens are lists of plans.
func TestPublicSetsAreReadAsTheirAuthorsNameThem(t *testing.T) {
	t.Parallel()
	cut := `[{"batch_number":1,"turns":[[{"role":"user","id":0,"content":"My first deadline is April 2."}]]}]`
	plans := `[{"plan-1":[{"turns":[[{"role":"user","id":0,"content":"I moved to Oslo."}]]}]},{"plan-2":[{"turns":[[{"role":"user","id":1,"content":"I moved to Bergen."}]]}]}]`
	sets, err := datasets.Load(write(t, map[string]string{
		"longmemeval_s": longMemEval, "longmemeval_m_cleaned.json": longMemEval, "longmemeval_oracle": longMemEval, "longmemeval_data.tar.gz": "no JSON",
		"chats/100K/7/chat.json": beamChat, "chats/100K/7/chat_trunecated.json": cut, "chats/100K/7/probing_questions/probing_questions.json": beamAsked,
		"chats/10M/1/chat.json": plans, "chats/10M/1/plan-0/chat.json": "[]",
		"chats/10M/1/probing_questions/probing_questions.json": `{"event_ordering":[{"question":"Where did I live?","source_chat_ids":[[0],[1]]}]}`,
		"chats/.DS_Store": "no folder",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range sets {
		names = append(names, sets[i].Name+" "+sets[i].Unit)
		switch told := &sets[i].Conversations[0]; sets[i].Name {
		case "BEAM 100K":
			if len(told.Messages) != 1 || told.Messages[0].Blocks[0].Text != "My first deadline is April 2." {
				t.Errorf("the chat is %+v, not the one that was cut", told.Messages)
			}
		case "BEAM 10M":
			if len(told.Messages) != 2 || !slices.Equal(told.Questions[0].Evidence, []int{0, 1}) {
				t.Errorf("of plans: %+v", told)
			}
		}
	}
	if got, want := strings.Join(names, ", "), "BEAM 100K message, BEAM 10M message, LongMemEval m_cleaned session, LongMemEval m_cleaned message, "+
		"LongMemEval s session, LongMemEval s message, LongMemEval oracle session, LongMemEval oracle message"; got != want {
		t.Errorf("read %s\nwant %s", got, want)
	}
}

func TestFolderWithoutASetIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := datasets.Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// What is not as its authors publish it is told with its file's name, and never measured as
// if it were empty.
func TestSetInAnotherFormatIsAnError(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"locomo10.json":          {"locomo10.json": "["},
		"speaker_a":              {"locomo10.json": `[{"sample_id":"s1","conversation":{"session_1":[]},"qa":[]}]`},
		"authors' format":        {"locomo10.json": `{"data":[]}`},
		"no question":            {"locomo10.json": "[]"},
		"longmemeval_s.json":     {"longmemeval_s.json": `[{"question_id":"q1","haystack_sessions":[]}]`},
		"probing_questions.json": {"chats/100K/7/chat.json": beamChat},
		"chat.json":              {"chats/100K/7/chat.json": `{"messages":[]}`},
		"batches":                {"chats/100K/7/chat.json": `[{"batches":{}}]`},
	} {
		if _, err := datasets.Load(write(t, files)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: got %v, want %s in it", files, err, name)
		}
	}
}

func TestRankingsAreMeasuredInTheUnitsOfThePapers(t *testing.T) {
	t.Parallel()
	set := datasets.Dataset{Name: "invented", Unit: "message", Conversations: []datasets.Conversation{{Questions: []datasets.Question{
		{Text: "first", Ability: "a", Evidence: []int{3}}, {Text: "second", Ability: "b", Evidence: []int{1, 9}}, {Text: "none", Ability: "b", Evidence: []int{5}},
	}}}}
	rows := datasets.Measure(&set, func(*datasets.Conversation) func(string) []int {
		return func(question string) []int {
			return map[string][]int{"first": {3, 1}, "second": {4, 1, 2, 8, 7, 9}}[question]
		}
	})
	gain := (1 + (1/1.5849625007211562+1/2.807354922057604)/(1+1/1.5849625007211562)) / 3
	want := datasets.Row{Questions: 3, Any1: 1. / 3, Any5: 2. / 3, Any10: 2. / 3, All5: 1. / 3, All10: 2. / 3, Reciprocal: 0.5, Gain: gain}
	if diff := rows[0].Gain - want.Gain; diff > 1e-12 || diff < -1e-12 {
		t.Errorf("nDCG@10 is %v, want %v", rows[0].Gain, want.Gain)
	}
	rows[0].Gain = want.Gain
	if rows[0] != want {
		t.Errorf("got %+v, want %+v", rows[0], want)
	}
	if len(rows) != 3 || rows[1].Ability != "a" || rows[1].Questions != 1 || rows[2].Any5 != 0.5 {
		t.Errorf("by ability: %+v", rows[1:])
	}
}

func TestBothRankingsFindWhatSharesWords(t *testing.T) {
	t.Parallel()
	sets, err := datasets.Load(write(t, map[string]string{"longmemeval_s.json": longMemEval}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range sets {
		ours, plain := datasets.Measure(&sets[i], datasets.Search), datasets.Measure(&sets[i], datasets.BM25)
		if ours[0].Any1 != 1 || plain[0].Any1 != 1 {
			t.Errorf("%s by %s: %+v, plain %+v", sets[i].Name, sets[i].Unit, ours[0], plain[0])
		}
		if table := datasets.Markdown(&sets[i], ours, plain); strings.Count(table, "| BM25 |") != 2 {
			t.Errorf("the table is\n%s", table)
		} else if strings.Contains(table, "| published: the best lexical search | 0.882 | 0.972 |") != (sets[i].Unit == "session") {
			t.Errorf("figures that others published are missing, or stand beside another measure:\n%s", table)
		}
	}
}
