// Package datasets measures the search on public sets of long conversations with questions: LoCoMo
// (Maharana et al., 2024, arXiv 2402.17753), BEAM (arXiv 2510.27246), and LongMemEval (Wu et al., 2024,
// arXiv 2410.10813). A developer downloads them; the repository contains no part of them.
package datasets

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"palimpsest/pipeline/conversation"
)

// Dataset is a set of conversations and of questions about them.
type Dataset struct {
	Name          string
	Unit          string // the unit of evidence: a message, a session, …
	Conversations []Conversation
}

// Conversation is one history and the questions about it.
type Conversation struct {
	ID        string
	Messages  []conversation.Message
	Units     []int // the unit of each message, ascending
	Questions []Question
	Orders    []Order
}

// Question is a question at the end of its conversation.
type Question struct {
	Text     string
	Ability  string // the ability that it tests, named by the set's authors
	Evidence []int  // units that answer it
}

// Load reads every set in a directory: locomo10.json, the folders of chats of BEAM (chats/100K and so on),
// and longmemeval_s, _m, and _oracle, with or without .json and the authors' additions to the name. It
// returns os.ErrNotExist for a directory without sets, and an error for a set without questions.
func Load(directory string) ([]Dataset, error) {
	var sets []Dataset
	for _, known := range []struct {
		pattern string
		read    func(name string) ([]Dataset, error)
	}{
		{"locomo10.json", loCoMo},
		{filepath.Join("chats", "*"), beam},
		{"longmemeval_*.json", longMemEval},
		{"longmemeval_[sm]", longMemEval},
		{"longmemeval_oracle", longMemEval},
	} {
		names, err := filepath.Glob(filepath.Join(directory, known.pattern))
		if err != nil {
			return nil, fmt.Errorf("look for datasets: %w", err)
		}
		for _, name := range names {
			read, err := known.read(name)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			for i := range read {
				if !slices.ContainsFunc(read[i].Conversations, func(told Conversation) bool { return len(told.Questions) > 0 }) {
					return nil, fmt.Errorf("read %s: it has no question with evidence: is it in its authors' format?", name)
				}
			}
			sets = append(sets, read...)
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("no locomo10.json, chats/100K/1/chat.json and so on, or longmemeval_s.json in %s: %w", directory, os.ErrNotExist)
	}
	return sets, nil
}

// add adds a message of a unit to a conversation.
func (c *Conversation) add(role conversation.Role, text string, unit int) {
	c.Messages = append(c.Messages, conversation.Message{Role: role, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}})
	c.Units = append(c.Units, unit)
}

// Places returns the messages of some units.
func (c *Conversation) Places(units []int) []int {
	var places []int
	for at, unit := range c.Units {
		if slices.Contains(units, unit) {
			places = append(places, at)
		}
	}
	return places
}

// ask adds a question with known evidence.
func (c *Conversation) ask(text, ability string, evidence []int) {
	if len(evidence) > 0 {
		c.Questions = append(c.Questions, Question{Text: text, Ability: ability, Evidence: evidence})
	}
}

// decode reads a file of JSON.
func decode(name string, into any) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s is not in its authors' format: %w", filepath.Base(name), err)
	}
	return nil
}
