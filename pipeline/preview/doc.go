// Package preview says what compression would have made of recorded conversations
// under other settings, from the counts that are stored of them, without asking a model.
// Only Identifiers reads the messages.
//
// The module ipc itself decides and plans, request by request, as it does in the
// proxy. In place of each message it is given a stand-in (standin.go): a short text of
// the same kind, counted with the tokens of the original. What the stand-ins cannot
// show is what the texts themselves hold: which reads are stale, and what a record
// keeps because a later turn uses it. docs/compaction.md says how far the figures are
// from those of a replay of the originals; a test holds them to it.
package preview
