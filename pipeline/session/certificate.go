package session

import "fmt"

// Certificate says of what must not be lost how much of it an epoch has kept, a line for each
// kind. It holds counts and message numbers, nothing that was said.
type Certificate []Kept

// Kept is what an epoch has kept of one kind.
type Kept struct {
	What     string `json:"what"`
	All      int    `json:"all"`               // in the originals
	InPrompt int    `json:"in_prompt"`         // of these, in the prompt as it is sent
	Archived int    `json:"archived"`          // and not there, but the prompt has the pointer to recall them by
	Missing  []int  `json:"missing,omitempty"` // messages of the first that are neither
}

// Lost returns how many are neither in the prompt nor one recall away.
func (k *Kept) Lost() int { return k.All - k.InPrompt - k.Archived }

// String says what was kept, as in "orders: 3 of 3 in the prompt".
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

// Lost returns how many things of all kinds are neither in the prompt nor one recall away.
func (c Certificate) Lost() int {
	lost := 0
	for i := range c {
		lost += c[i].Lost()
	}
	return lost
}

// IsComplete reports whether nothing is lost.
func (c Certificate) IsComplete() bool { return c.Lost() == 0 }
