package fidelity

// For the test of the search by fields.
var (
	Identifier  = identifier
	Identifiers = identifiers
)
