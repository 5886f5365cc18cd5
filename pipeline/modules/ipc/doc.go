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
//
// Where the levels do not bring the prompt under its target, an epoch takes one step
// after the other and stops at the first that is enough:
//
//  1. The tail that stays as it is shrinks along keepLastLadder, at last to one turn
//     (tail.go).
//  2. Chunks (ladder.go): within the newest turn the results of all groups of calls
//     but the newest go to L1, which matters where a whole tool loop is one turn;
//     then L3 grows coarser, its bound blockTokens halved down to 500 tokens, or a
//     sixteenth of a window that is small.
//  3. Where the prompt would not even fit the window it is truncated (ladder.go,
//     oversize.go), which is an event of its own. Either quarter by quarter what the
//     oldest turns were folded to gives way to one line, which names them, where the
//     archive has them and what a person asked for first; or, where that alone is
//     not enough, tool results that no level touches lose their middle, the largest
//     first; or both. Turns are left out only if that makes the prompt fit.
//  4. The prompt goes out as it is and the provider's own error comes back.
//
// What a person typed last is never cut, nor are system prompts. A call whose result
// is still to come stays as it is.
//
// A prompt has a budget of bytes beside that of tokens (media.go): media above it
// become placeholders, the oldest first and down to half of the budget, in an epoch
// of the same kind. No text is cut for that, unless there are no media to blame.
package ipc
