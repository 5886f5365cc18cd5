// Package ledger keeps what must not be lost of a lane when its turns are
// shortened: the files that were read, changed and deleted, the commands, the
// errors that are still open, what was decided, and what the person ordered. All
// of it is computed from the messages, without a model: the same messages give
// the same ledger, and a summary of any quality can be checked against it.
//
// Only the person and the client give orders. What a tool returned is read for
// outcomes alone and never becomes a directive or a decision, and neither does a
// text that repeats a compaction's summary or a block of our own.
package ledger
