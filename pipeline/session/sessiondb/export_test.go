package sessiondb

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// Settle has a lane join another one, of a session.
func (s *Store) Settle(ctx context.Context, workspace tenants.WorkspaceID, lane, into, session uuid.UUID) (settled bool, err error) {
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		settled, err = settle(tx, workspace, lane, &berth{lane: into, session: session})
		return err
	})
	return settled, err
}

// StatementHead finds a head: for the test of its plan.
const StatementHead = sqlHead

// StatementDecisions and StatementEpochs read the epochs of a session, and of a lane,
// StatementMany finds sessions with many, StatementCourse and StatementTruncated what happened, StatementAsked requests by their messages, StatementAnnounceHeads announces, StatementJoined finds what lanes have joined, StatementHolding which lane holds messages, and the others count what modules made: for the
// tests of their plans.
const (
	StatementDecisions     = sqlDecisions
	StatementEpochs        = sqlEpochs
	StatementMany          = sqlMany
	StatementMadeInserts   = sqlMadeInserts
	StatementMadeSummaries = sqlMadeSummaries
	StatementCourse        = sqlCourse
	StatementAsked         = sqlAsked
	StatementTruncated     = sqlTruncated
	StatementAnnounceHeads = sqlAnnounceHeads
	StatementJoined        = sqlJoined
	StatementHolding       = sqlHolding
)
