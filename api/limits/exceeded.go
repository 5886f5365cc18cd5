package limits

import (
	"fmt"
	"time"

	"palimpsest/tenants"
)

// Kind is the kind of a limit.
type Kind int

// The kinds of limits, numbered as in the Redis scripts.
const (
	None Kind = iota
	Requests
	Tokens
	Concurrency
	DayBudget
	MonthBudget
	HeldBudget // of a day or a month: requests under way may use up the rest of it
)

// String returns the kind's name in metrics.
func (k Kind) String() string {
	return [...]string{"none", "requests", "tokens", "concurrency", "day_budget", "month_budget", "held_budget"}[k]
}

// Exceeded is the error for a request over a limit.
type Exceeded struct {
	Kind    Kind
	Subject Subject // owner of the limit
	Quota   tenants.Quota

	// Wait is how long until the limit allows requests again; 0 if unknown or never.
	Wait time.Duration

	// Asked is the requested number of tokens if it is more than the limit ever allows; otherwise 0.
	Asked int
}

// Error implements error.
func (e Exceeded) Error() string {
	if e.Asked > 0 {
		return fmt.Sprintf("limit of %s a minute exceeded by one request of %d", e.Kind, e.Asked)
	}
	return fmt.Sprintf("limit of %s exceeded", e.Kind)
}
