package session

import "fmt"

// Certificate lists how many facts of each protected kind an epoch has kept. It holds counts and message
// numbers, but no content.
type Certificate []Kept

// Kept is the result for one kind.
type Kept struct {
	What     string `json:"what"`
	All      int    `json:"all"`               // in the originals
	InPrompt int    `json:"in_prompt"`         // of All, in the prompt as sent
	Archived int    `json:"archived"`          // only in the archive, with a pointer in the prompt to recall them
	Missing  []int  `json:"missing,omitempty"` // first messages of those that are in neither
}

// Lost returns how many are neither in the prompt nor one recall away.
func (k *Kept) Lost() int { return k.All - k.InPrompt - k.Archived }

// String returns a summary such as "orders: 3 of 3 in the prompt".
func (k *Kept) String() string {
	text := fmt.Sprintf("%s: %d of %d in the prompt", k.What, k.InPrompt, k.All)
	if k.Archived > 0 {
		text += fmt.Sprintf(", %d one recall away", k.Archived)
	}
	if lost := k.Lost(); lost > 0 {
		text += fmt.Sprintf(", %d missing", lost)
	}
	return text
}

// Lost returns how many facts of all kinds are neither in the prompt nor one recall away.
func (c Certificate) Lost() int {
	lost := 0
	for i := range c {
		lost += c[i].Lost()
	}
	return lost
}

// IsComplete reports whether everything was kept.
func (c Certificate) IsComplete() bool { return c.Lost() == 0 }
