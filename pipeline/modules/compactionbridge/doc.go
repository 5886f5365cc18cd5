// Package compactionbridge is the module compaction-bridge. After a client replaced its
// conversation by its own summary, it compares that summary with the ledger of the replaced
// history, and restores missing content: standing orders word for word, the last turns if the
// client dropped them, open errors, decisions, and the content of active files.
//
// It acts once for each compaction, at the first request after it (detect.go), and reads the
// replaced history from the archive (left.go). It follows the known content of files through reads,
// writes and edits (content.go, edit.go, shown.go), so that it never shows stale content as
// current; choose.go chooses the lines. The block (text.go) depends only on the messages and the
// settings. If no content was lost, the module costs only a comparison.
package compactionbridge
