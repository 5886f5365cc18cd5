package datasets

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"palimpsest/pipeline/conversation"
)

// loCoMoAbilities are the kinds of questions by their number in the set.
var loCoMoAbilities = map[int]string{1: "several messages", 2: "time", 3: "open domain", 4: "one message", 5: "adversarial"}

// dialogID matches the names of messages, such as D1:3. A text may hold several.
var dialogID = regexp.MustCompile(`D:?(\d+):(\d+)`)

// loCoMo reads locomo10.json: two people talk in sessions, and evidence is a message. The first speaker is
// read as the user. Each message begins with its speaker's name, as in the set's own prompts to a model.
func loCoMo(name string) ([]Dataset, error) {
	var samples []struct {
		ID           string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
		Asked        []struct {
			Question string   `json:"question"`
			Category int      `json:"category"`
			Evidence []string `json:"evidence"`
		} `json:"qa"`
	}
	if err := decode(name, &samples); err != nil {
		return nil, err
	}
	set := Dataset{Name: "LoCoMo", Unit: "message"}
	for i := range samples {
		told := Conversation{ID: samples[i].ID}
		places, err := told.sessions(samples[i].Conversation)
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", told.ID, err)
		}
		for _, asked := range samples[i].Asked {
			var evidence []int
			for _, names := range asked.Evidence {
				for _, match := range dialogID.FindAllStringSubmatch(names, -1) {
					if place, known := places["D"+match[1]+":"+match[2]]; known && !slices.Contains(evidence, place) {
						evidence = append(evidence, place)
					}
				}
			}
			told.ask(asked.Question, loCoMoAbilities[asked.Category], evidence)
		}
		set.Conversations = append(set.Conversations, told)
	}
	return []Dataset{set}, nil
}

// sessions adds the messages of all sessions and returns their places by their names.
func (c *Conversation) sessions(members map[string]json.RawMessage) (map[string]int, error) {
	var first string
	if err := json.Unmarshal(members["speaker_a"], &first); err != nil {
		return nil, fmt.Errorf("speaker_a: %w", err)
	}
	places := map[string]int{}
	for number := 1; ; number++ {
		session, present := members["session_"+strconv.Itoa(number)]
		if !present {
			return places, nil
		}
		var turns []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
			Picture string `json:"blip_caption"`
		}
		if err := json.Unmarshal(session, &turns); err != nil {
			return nil, fmt.Errorf("session %d: %w", number, err)
		}
		for _, turn := range turns {
			role, text := conversation.Assistant, turn.Speaker+": "+turn.Text
			if turn.Speaker == first {
				role = conversation.User
			}
			if turn.Picture != "" {
				text += " [shares " + turn.Picture + "]"
			}
			places[turn.ID] = len(c.Messages)
			c.add(role, text, len(c.Messages))
		}
	}
}
