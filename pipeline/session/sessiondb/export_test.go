package sessiondb

// StatementHead finds a head: for the test of its plan.
const StatementHead = sqlHead
