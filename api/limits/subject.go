package limits

import (
	"time"

	"palimpsest/tenants"
)

// Subject is who is limited: someone or something of a workspace that spends.
type Subject struct {
	Workspace tenants.WorkspaceID
	tenants.Spender
}

// Held is a subject and what it is held to.
type Held struct {
	Subject Subject
	Quota   tenants.Quota
}

// limited returns those that are held to anything.
func limited(all []Held) []Held {
	var some []Held
	for _, held := range all {
		if !held.Quota.IsUnlimited() {
			some = append(some, held)
		}
	}
	return some
}

// Budgets returns the same subjects, held to their budgets alone.
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

// Remaining is what is left of a subject's limits; zero if it does not exist.
type Remaining = tenants.Quota

// verdict is what becomes of a request that asks to begin.
type verdict struct {
	kind  Kind // None: it begins
	of    int  // whose limit it meets, of those that the ticket is held by
	wait  time.Duration
	left  []Remaining // of each of them
	spend []spend     // of each, as all replicas know it
}

// claim is what a request that is about to be sent takes.
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
