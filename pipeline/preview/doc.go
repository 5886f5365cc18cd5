// Package preview calculates how other settings would have compressed recorded conversations, from
// the stored counts, without asking a model. Only Identifiers reads the messages.
//
// The module ipc itself decides and plans, request by request, as in the proxy. In place of each
// message it gets a stand-in (standin.go): a short text of the same kind, counted with the tokens
// of the original. Stand-ins lack the content of the texts: which reads are stale, and which names
// a record keeps because a later turn uses them. docs/compaction.md says how far the figures are
// from those of a replay of the originals; a test checks that limit.
package preview
