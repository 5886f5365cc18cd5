package sessiondb

// StatementHead finds a head: for the test of its plan.
const StatementHead = sqlHead

// StatementDecisions and StatementEpochs read the epochs of a session, and of a lane,
// StatementMany finds sessions with many, and the others count what modules made: for the
// tests of their plans.
const (
	StatementDecisions     = sqlDecisions
	StatementEpochs        = sqlEpochs
	StatementMany          = sqlMany
	StatementMadeInserts   = sqlMadeInserts
	StatementMadeSummaries = sqlMadeSummaries
)
