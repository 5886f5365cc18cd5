package datasets

import (
	"path/filepath"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// longMemEval reads longmemeval_s.json, longmemeval_m.json, or longmemeval_oracle.json twice: evidence is a
// session, as the set's authors name it, or the messages marked in it. Each question has a history of its
// own. Questions without an answer are left out.
func longMemEval(name string) ([]Dataset, error) {
	var asked []struct {
		ID       string   `json:"question_id"`
		Ability  string   `json:"question_type"`
		Question string   `json:"question"`
		Names    []string `json:"haystack_session_ids"`
		Answers  []string `json:"answer_session_ids"`
		Sessions [][]struct {
			Role   conversation.Role `json:"role"`
			Text   string            `json:"content"`
			Answer bool              `json:"has_answer"`
		} `json:"haystack_sessions"`
	}
	if err := decode(name, &asked); err != nil {
		return nil, err
	}
	title := "LongMemEval " + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "longmemeval_"), ".json")
	sessions, messages := Dataset{Name: title, Unit: "session"}, Dataset{Name: title, Unit: "message"}
	for i := range asked {
		one := &asked[i]
		if strings.HasSuffix(one.ID, "_abs") {
			continue
		}
		whole, single := Conversation{ID: one.ID}, Conversation{ID: one.ID}
		var inSessions, inMessages []int
		for unit, session := range one.Sessions {
			if unit < len(one.Names) && slices.Contains(one.Answers, one.Names[unit]) {
				inSessions = append(inSessions, unit)
			}
			for _, message := range session {
				if message.Answer {
					inMessages = append(inMessages, len(single.Messages))
				}
				single.add(message.Role, message.Text, len(single.Messages))
				whole.add(message.Role, message.Text, unit)
			}
		}
		whole.ask(one.Question, one.Ability, inSessions)
		single.ask(one.Question, one.Ability, inMessages)
		sessions.Conversations, messages.Conversations = append(sessions.Conversations, whole), append(messages.Conversations, single)
	}
	return []Dataset{sessions, messages}, nil
}
