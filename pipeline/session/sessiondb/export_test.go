package sessiondb

// StatementHead finds a head: for the test of its plan.
const StatementHead = sqlHead

// StatementDecisions and StatementEpochs read the epochs of a session, and of a lane: for
// the test of their plans.
const (
	StatementDecisions = sqlDecisions
	StatementEpochs    = sqlEpochs
)
