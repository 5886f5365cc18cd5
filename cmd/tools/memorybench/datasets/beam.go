package datasets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"palimpsest/pipeline/conversation"
)

// orders are the abilities whose questions follow what a person ordered.
var orders = []string{"preference_following", "instruction_following"}

// beam reads a folder of chats of one length, such as chats/100K: a person and a model talk,
// and evidence is a message. Questions that nothing answers are left out, and so are those
// whose authors name no message.
func beam(folder string) ([]Dataset, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*", "chat.json"))
	if err != nil {
		return nil, err //nolint:wrapcheck // Load names the folder
	}
	set := Dataset{Name: "BEAM " + filepath.Base(folder), Unit: "message"}
	for _, name := range names {
		told, err := beamChat(filepath.Dir(name))
		if err != nil {
			return nil, fmt.Errorf("chat %s: %w", filepath.Base(filepath.Dir(name)), err)
		}
		set.Conversations = append(set.Conversations, told)
	}
	return []Dataset{set}, nil
}

func beamChat(folder string) (Conversation, error) {
	told := Conversation{ID: filepath.Base(folder)}
	var batches []struct {
		Turns [][]struct {
			ID   int               `json:"id"`
			Role conversation.Role `json:"role"`
			Text string            `json:"content"`
		} `json:"turns"`
	}
	if err := decode(filepath.Join(folder, "chat.json"), &batches); err != nil {
		return told, err
	}
	for i := range batches {
		for _, turn := range batches[i].Turns {
			for _, message := range turn {
				told.add(message.Role, message.Text, message.ID)
			}
		}
	}
	var asked map[string][]struct {
		Question string          `json:"question"`
		Sources  json.RawMessage `json:"source_chat_ids"`
	}
	if err := decode(filepath.Join(folder, "probing_questions", "probing_questions.json"), &asked); err != nil {
		return told, err
	}
	for _, ability := range slices.Sorted(maps.Keys(asked)) {
		for _, one := range asked[ability] {
			var sources any
			if err := json.Unmarshal([]byte(cmp.Or(string(one.Sources), "null")), &sources); err != nil {
				return told, fmt.Errorf("source_chat_ids: %w", err)
			}
			evidence := numbers(sources, nil)
			if len(evidence) > 0 && slices.Contains(orders, ability) {
				for _, at := range told.Places(evidence[:1]) {
					told.order(ability, textOf(&told.Messages[at]))
				}
			}
			slices.Sort(evidence)
			told.ask(one.Question, ability, slices.Compact(evidence))
		}
	}
	return told, nil
}

// numbers returns all numbers in a value of JSON: sources are lists, or objects of lists.
func numbers(value any, found []int) []int {
	switch value := value.(type) {
	case float64:
		found = append(found, int(value))
	case []any:
		for _, one := range value {
			found = numbers(one, found)
		}
	case map[string]any:
		for _, one := range value {
			found = numbers(one, found)
		}
	}
	return found
}
