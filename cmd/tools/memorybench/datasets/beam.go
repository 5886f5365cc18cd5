package datasets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"palimpsest/pipeline/conversation"
)

// orders are the abilities with questions about a person's orders.
var orders = []string{"preference_following", "instruction_following"}

// cutChat is a chat cut to the length of its folder. If it exists, the set's own programs read it instead
// of chat.json.
const cutChat = "chat_trunecated.json"

// beam reads a folder of chats of one length, such as chats/100K: a person and a model talk, and evidence
// is a message. It skips questions without an answer, and questions without a message named by the authors.
func beam(folder string) ([]Dataset, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*", "chat.json"))
	if err != nil {
		return nil, err //nolint:wrapcheck // Load names the folder
	}
	if len(names) == 0 {
		return nil, nil
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

// batch is a part of a chat.
type batch struct {
	Turns [][]struct {
		ID   int               `json:"id"`
		Role conversation.Role `json:"role"`
		Text string            `json:"content"`
	} `json:"turns"`
}

// batches reads the parts of a chat. Those of 10M tokens are lists of plans, each with named parts.
func batches(folder string) ([]batch, error) {
	name := filepath.Join(folder, cutChat)
	if _, err := os.Stat(name); err != nil {
		name = filepath.Join(folder, "chat.json")
	}
	var members []map[string]json.RawMessage
	if err := decode(name, &members); err != nil {
		return nil, err
	}
	var all []batch
	for i := range members {
		if turns, isPart := members[i]["turns"]; isPart {
			var one batch
			if err := json.Unmarshal(turns, &one.Turns); err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
			all = append(all, one)
			continue
		}
		for plan, content := range members[i] {
			var parts []batch
			if err := json.Unmarshal(content, &parts); err != nil {
				return nil, fmt.Errorf("%s: %w", plan, err)
			}
			all = append(all, parts...)
		}
	}
	return all, nil
}

func beamChat(folder string) (Conversation, error) {
	told := Conversation{ID: filepath.Base(folder)}
	parts, err := batches(folder)
	if err != nil {
		return told, err
	}
	for i := range parts {
		for _, turn := range parts[i].Turns {
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

// numbers returns all numbers in a JSON value, because sources are lists, or objects of lists.
func numbers(value any, found []int) []int {
	switch value := value.(type) {
	case float64:
		found = append(found, int(value))
	case []any:
		for _, one := range value {
			found = numbers(one, found)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			found = numbers(value[name], found)
		}
	}
	return found
}
