package limits

import (
	"time"

	"palimpsest/tenants"
)

// Subject is a spender of a workspace under limits.
type Subject struct {
	Workspace tenants.WorkspaceID
	tenants.Spender
}

// Held is a subject and its quota.
type Held struct {
	Subject Subject
	Quota   tenants.Quota
}

// limited returns the subjects that have limits.
func limited(all []Held) []Held {
	var some []Held
	for _, held := range all {
		if !held.Quota.IsUnlimited() {
			some = append(some, held)
		}
	}
	return some
}

// Budgets returns the same subjects with their budgets only.
func Budgets(all []Held) []Held {
	some := make([]Held, 0, len(all))
	for _, held := range all {
		quota := held.Quota
		held.Quota = tenants.Quota{DayMicroUSD: quota.DayMicroUSD, MonthMicroUSD: quota.MonthMicroUSD, AllowUnpriced: quota.AllowUnpriced}
		if held.Quota.HasBudget() {
			some = append(some, held)
		}
	}
	return some
}

// Remaining is the rest of a subject's limits; zero for a limit that does not exist.
type Remaining = tenants.Quota

// verdict is the decision about a request.
type verdict struct {
	kind  Kind // None if admitted
	of    int  // index of the ticket's subject whose limit is exceeded
	wait  time.Duration
	left  []Remaining // of each of them
	spend []spend     // of each, across all replicas
}

// claim is the amount that a request takes before it is sent.
type claim struct {
	prompt, answers int   // tokens
	micro           int64 // millionths of a dollar
}

// of returns the part of a claim that a quota counts.
func (c claim) of(quota tenants.Quota) claim {
	if quota.TokensPerMinute == 0 {
		c.prompt, c.answers = 0, 0
	}
	if !quota.HasBudget() {
		c.micro = 0
	}
	return c
}
