package memorybench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/cmd/tools/memorybench/datasets"
	"palimpsest/pipeline/conversation"
)

// longestTyped is the maximum number of bytes of a typed message. Longer ones are pasted.
const longestTyped = 3000

// Published asks the questions of a public set in prompts that show only the newest messages, and returns
// how often a part of the evidence comes back. tokens is the average size of the returned content per
// question.
func (r *Rehydration) Published(ctx context.Context, set *datasets.Dataset) (back Figure, tokens float64, err error) {
	back = Figure{Name: set.Name + ": plain questions whose answer is compressed, some of it comes back", Least: 0.40}
	total := 0
	for i := range set.Conversations {
		told := &set.Conversations[i]
		shown := len(told.Messages) - newestShown
		for _, question := range told.Questions {
			evidence := slices.DeleteFunc(told.Places(question.Evidence), func(at int) bool { return at >= shown })
			if len(evidence) == 0 {
				continue
			}
			body, err := Body(told.Messages, question.Text)
			if err != nil {
				return Figure{}, 0, err
			}
			text, items, _, err := r.process(ctx, body, shown)
			if err != nil {
				return Figure{}, 0, err
			}
			total += r.counter.Count(text)
			back.add(slices.ContainsFunc(items, func(item string) bool {
				return slices.ContainsFunc(evidence, func(at int) bool { return within(item, at) })
			}), func() string {
				return fmt.Sprintf("%s: %.200q → %v, want %v", told.ID, question.Text, items, evidence)
			})
		}
	}
	return back, float64(total) / float64(max(back.Cases, 1)), nil
}

// Typed sends people's messages from the middle of sessions without a reference to earlier content, with
// all but the newest messages compressed. No content should come back.
func (r *Rehydration) Typed(ctx context.Context, set *Recorded) (Figure, error) {
	fired := Figure{Name: "messages typed in mid-session that refer to nothing: something comes back", Unwanted: true}
	refers := map[string]bool{}
	for i := range set.Refs {
		refers[set.Refs[i].Text()] = true
	}
	for _, id := range set.ids() {
		messages := set.Sessions[id]
		for at := 2 * newestShown; at < len(messages); at++ {
			text, isTyped := typedIn(&messages[at])
			if !isTyped || refers[text] {
				continue
			}
			refers[text] = true // count it once, because sessions of one project begin alike
			body, err := Body(messages[:at], text)
			if err != nil {
				return Figure{}, err
			}
			back, items, _, err := r.process(ctx, body, at-newestShown)
			if err != nil {
				return Figure{}, err
			}
			fired.add(back != "", func() string { return fmt.Sprintf("%s %d: %.200q → %v", id, at, text, items) })
		}
	}
	return fired, nil
}

// typedIn returns the text that a person typed in a message, if any.
func typedIn(message *conversation.Message) (text string, isTyped bool) {
	if message.Role != conversation.User || message.Flags().Has(conversation.HasResult) {
		return "", false
	}
	var typed []string
	for i := range message.Blocks {
		typed = append(typed, conversation.WithoutReminders(message.Blocks[i].Text))
	}
	text = strings.TrimSpace(strings.Join(typed, "\n"))
	return text, text != "" && len(text) <= longestTyped && conversation.IsTyped(text)
}
