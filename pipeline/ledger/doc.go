// Package ledger keeps the facts of a lane that must not be lost when its turns are shortened:
// read, changed and deleted files, commands, open errors, decisions, and the person's orders. It
// computes all of them from the messages, without a model. Therefore the same messages give the
// same ledger, and a summary of any quality can be checked against it.
//
// Only the person and the client give orders. Tool results are read only for outcomes and never
// become a directive or a decision, except for a person's answers in Claude Code's own dialogues: a
// question, or a plan to approve. A text that repeats a compaction's summary or a block of
// Palimpsest adds no entry.
package ledger
