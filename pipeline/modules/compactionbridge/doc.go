// Package compactionbridge is the module compaction-bridge: after a client replaced
// its conversation by a summary of its own, it compares that summary with the ledger
// of the history that was left, and puts back what is missing: standing orders word
// for word, the last turns where the client dropped them, open errors, decisions,
// and the content of the files at work.
//
// It fires once for each compaction, at the first request after it (detect.go), and
// reads the history that was left from the archive (left.go). What is known of a
// file's content is followed through reads, writes and edits (content.go, edit.go,
// shown.go), so that nothing stale is shown as current; which lines go in choose.go
// says. The block (text.go) depends on the messages and the settings alone. Where
// nothing was left, the module costs a comparison.
package compactionbridge
