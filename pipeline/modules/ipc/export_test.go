package ipc

import (
	"context"
	"fmt"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc/extract"
	"palimpsest/pipeline/session"
)

// Completed plans an epoch of a prompt of size tokens, has damage lose something of its
// projection, and returns what completing that comes to.
func (m *Module) Completed(ctx context.Context, exchange *pipeline.View, size int, damage func(*session.Projection)) (before, after *session.Projection, err error) {
	p := newPlanner(exchange, m.count, m.memory, size, byTheRules)
	planned, err := p.project(ctx)
	if err != nil {
		return nil, nil, err
	}
	damaged := *planned
	damaged.Parts = append([]session.Part{}, planned.Parts...)
	damage(&damaged)
	_, after, err = m.complete(ctx, p, &damaged, size)
	return &damaged, after, err
}

// Thousands returns a number as the docs write it.
func Thousands(number int) string { return extract.Thousands(number) }

// Claims returns the sentences of the docs that state the module's own figures.
func Claims() []string {
	share := func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
	return []string{
		fmt.Sprintf("cut to %d characters", extract.KeptCharacters),
		fmt.Sprintf("blocks of at most %s turns", map[int]string{8: "eight"}[blockTurns]),
		fmt.Sprintf("up to %s characters each", extract.Thousands(typedLengths[0])),
		fmt.Sprintf("If all of them would take more than %s of the changeable part, each keeps %s characters, %s, and so on down to %d",
			share(typedShare), extract.Thousands(typedLengths[1]), extract.Thousands(typedLengths[2]), shortestTyped),
		fmt.Sprintf("at least `preserveTokens` of it, or %s of the limit in a small window", share(leastShare)),
		fmt.Sprintf("at most %s of the goal's share", share(newestShare)),
		"older turns keep " + share(olderShare),
		fmt.Sprintf("It has at most %s tokens or %s of the changeable part, whichever is less (%s if that part is below %s tokens)",
			extract.Thousands(ledgerTokens), share(ledgerShare), share(smallShare), extract.Thousands(smallWindow)),
		fmt.Sprintf("A record (%g) is worth more than a call that changes a file (%g) and other words and calls (%g)", worthRecorded, worthChange, worthCall),
		fmt.Sprintf("newest view is worth less (%g, twice as much if the file was changed later), then other results (%g)", worthView, worthResult),
	}
}
