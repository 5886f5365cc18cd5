package limits

import (
	"fmt"
	"time"

	"palimpsest/tenants"
)

// Kind is what is limited.
type Kind int

// The kinds of limits, in the order of the codes that Redis answers.
const (
	None Kind = iota
	Requests
	Tokens
	Concurrency
	DayBudget
	MonthBudget
	HeldBudget // of a day or a month: requests under way may cost what is left of it
)

// String returns the kind as metrics name it.
func (k Kind) String() string {
	return [...]string{"none", "requests", "tokens", "concurrency", "day_budget", "month_budget", "held_budget"}[k]
}

// Exceeded says which limit a request meets.
type Exceeded struct {
	Kind    Kind
	Subject Subject // whose limit it is
	Quota   tenants.Quota

	// Wait is how long until the limit lets something pass again; 0 if unknown,
	// or it never will.
	Wait time.Duration

	// Asked is how many tokens were asked for at once where they are more than the
	// limit ever lets pass; else 0.
	Asked int
}

// Error implements error.
func (e Exceeded) Error() string {
	if e.Asked > 0 {
		return fmt.Sprintf("limit of %s a minute exceeded by one request of %d", e.Kind, e.Asked)
	}
	return fmt.Sprintf("limit of %s exceeded", e.Kind)
}
