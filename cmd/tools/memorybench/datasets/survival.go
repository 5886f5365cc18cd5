package datasets

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/replay"
)

// Order is a person's order that holds from then on.
type Order struct {
	Ability string // the ability that it tests, named by the set's authors
	Text    string
}

// preferred matches the words of a message that state a preference.
var preferred = regexp.MustCompile(`(?i)\bprefer\b[^,.?!]*`)

// order adds a message's order: all of it, or only the words that state a preference.
func (c *Conversation) order(ability, said string) {
	text, _, _ := strings.Cut(said, " ->->") // remove the number of the message, which the set adds
	if strings.HasPrefix(ability, "preference") {
		text = preferred.FindString(text)
	}
	if text = flat(text); text != "" {
		c.Orders = append(c.Orders, Order{Ability: ability, Text: text})
	}
}

// Survival counts the orders that the last prompt of a conversation still holds.
type Survival struct {
	Ability     string
	Kept, Given int
}

// Survive replays the conversations of a set with orders in a context window of a number of tokens, and
// checks for the orders in the last prompt.
func Survive(ctx context.Context, set *Dataset, window int) ([]Survival, error) {
	var found []Survival
	for i := range set.Conversations {
		told := &set.Conversations[i]
		if len(told.Orders) == 0 {
			continue
		}
		prompt, err := told.lastPrompt(ctx, window)
		if err != nil {
			return nil, fmt.Errorf("conversation %s: %w", told.ID, err)
		}
		for _, order := range told.Orders {
			found = note(found, order.Ability, strings.Contains(prompt, order.Text))
		}
	}
	return found, nil
}

func note(found []Survival, ability string, kept bool) []Survival {
	for i := range found {
		if found[i].Ability == ability {
			found[i].Given++
			found[i].Kept += int(share(kept))
			return found
		}
	}
	return append(found, Survival{Ability: ability, Given: 1, Kept: int(share(kept))})
}

// lastPrompt returns the text of the prompt with the last message of the user.
func (c *Conversation) lastPrompt(ctx context.Context, window int) (string, error) {
	type message struct {
		Role conversation.Role `json:"role"`
		Text string            `json:"content"`
	}
	body := struct {
		Model     string    `json:"model"`
		MaxTokens int       `json:"max_tokens"`
		Messages  []message `json:"messages"`
	}{Model: "claude-sonnet-4-5", MaxTokens: 1000}
	for i := range c.Messages {
		body.Messages = append(body.Messages, message{c.Messages[i].Role, textOf(&c.Messages[i])})
	}
	for body.Messages[len(body.Messages)-1].Role == conversation.Assistant {
		body.Messages = body.Messages[:len(body.Messages)-1]
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", err //nolint:wrapcheck // strings always marshal
	}
	config := modules.Catalog().Default()
	pipeline.Change[ipc.Config](&config).ContextWindow = ipc.Window(window)
	run, err := replay.New(replay.Config{Format: conversation.Anthropic, Pipeline: config, Window: window})
	if err != nil {
		return "", err //nolint:wrapcheck // it says what failed
	}
	var last []byte
	if _, err := run.Run(ctx, raw, func(step replay.Step) error { last = step.Sent.Body; return nil }); err != nil {
		return "", err //nolint:wrapcheck // it says what failed
	}
	return spoken(last)
}

// spoken returns the texts of the messages of a body, normalized by flat.
func spoken(body []byte) (string, error) {
	var sent struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return "", fmt.Errorf("read prompt: %w", err)
	}
	var text strings.Builder
	for i := range sent.Messages {
		var whole string
		var blocks []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(sent.Messages[i].Content, &whole) != nil {
			if err := json.Unmarshal(sent.Messages[i].Content, &blocks); err != nil {
				return "", fmt.Errorf("read message %d: %w", i, err)
			}
		}
		text.WriteString(whole + "\n")
		for _, block := range blocks {
			text.WriteString(block.Text + "\n")
		}
	}
	return flat(text.String()), nil
}

// flat returns a text in lower case with single spaces.
func flat(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }

// SurvivalTable returns the surviving orders in each window as a table.
func SurvivalTable(set *Dataset, windows []int, found [][]Survival) string {
	var text strings.Builder
	fmt.Fprintf(&text, "**%s: what people order once and the last prompt still holds**\n\n| window, tokens | ability | given | kept | share |\n%s|\n", set.Name, strings.Repeat("| --- ", 5))
	for i, window := range windows {
		for _, one := range found[i] {
			fmt.Fprintf(&text, "| %d | %s | %d | %d | **%.1f %%** |\n", window, strings.ReplaceAll(one.Ability, "_", " "), one.Given, one.Kept, 100*float64(one.Kept)/float64(one.Given))
		}
	}
	text.WriteString("\nPublished: of the constraints in long conversations 17 % survive on average and 98 % at best (arXiv 2608.11242).\n")
	return text.String()
}
