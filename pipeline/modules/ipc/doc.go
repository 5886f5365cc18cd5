// Package ipc compresses the oldest turns of a conversation when the prompt
// exceeds its target, in epochs: what an epoch has rendered is sent byte for byte
// until the next one, so that the provider's prompt cache stays warm.
//
// An epoch plans a level for each turn (plan.go, tail.go, deep.go), renders the turns
// at their levels (level1.go to level3.go, assemble.go) and makes the originals and
// the new projection durable before either is used (ipc.go).
//
// What is stale goes first (stale.go). L1 shares its characters between the beginning
// of a tool result and its verdict or error (verdict.go). L2 keeps of a turn its first
// sentences and calls (record.go, change.go) and what would be missed (enrich.go):
// directives, decisions, errors, and the names (names.go) that later turns use
// (uses.go). L3 is a line for a block of turns; with it the projection opens with a
// block of the ledger (opening.go). All of it depends on the originals of the request,
// the levels and the settings alone, and is numbered by RenderVersion.
package ipc
