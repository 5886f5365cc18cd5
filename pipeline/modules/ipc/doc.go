// Package ipc compresses the oldest turns of a conversation when the prompt exceeds its
// target. It works in epochs: the rendered prompt of an epoch is sent byte for byte until the
// next one, so that the provider's prompt cache stays warm.
//
// # The algorithm
//
// Module.Process (ipc.go) decides whether to make an epoch, planner.project (plan.go) plans
// it. Both fit on a page and read in this order:
//
//	occasion   why one may be made now: occasion.go, breakeven.go
//	held       why it would fail again: attempts.go
//	measure    how large the prompt is, and how large it may become: plan.go
//	read       the messages by turns: history.go
//	protect    messages that must stay unchanged: protect.go
//	select     a level for each turn: select.go, worth.go
//	render     the messages that replace the turns at their levels: render.go
//	descend    in chunks, if levels are not enough: descend.go
//	lighten    without media, if the body has too many bytes: media.go
//	predict    the cost and savings of the epoch: price.go
//	commit     make originals and projection durable before either is used: ipc.go
//
// A turn is at one of four levels, and never goes back up:
//
//	L0  every byte
//	L1  tool results are cut to their beginning, their verdict and their error: level1.go, extract
//	L2  a few lines in a record shared with its neighbors, and typed messages word for word: record.go, enrich.go
//	L3  an outline for a block of at most eight turns, and typed messages: level3.go, ledger.go
//
// The form of a turn at a level depends only on the originals of the request, the levels and the
// settings. RenderVersion numbers it.
//
// # A worked example
//
// The window has 8,000 tokens, targetUtilization is 0.75 and compressTo 0.25: above 6,000
// tokens there is an epoch, and it goes down to 2,000. Each turn is a call that reads a file
// and its result, of 318 tokens together. The two newest turns always stay unchanged. Example in
// example_test.go runs this.
//
//	tokens
//	 6,000 ┼ ─ ─ ─ ─ ─ ╱│─ ─ ─ ─ ─ ╱│─ ─ ─ ─ ─ ╱│─ ─ ─ ─ ─ ╱│─ ─  target
//	       │         ╱  │        ╱  │        ╱  │        ╱  │
//	       │       ╱    │      ╱    │      ╱    │      ╱    │
//	 2,000 ┼ ─ ─ ╱ ─ ─ ─│─ ─ ╱ ─ ─ ─│─ ─ ╱ ─ ─ ─│─ ─ ╱ ─ ─ ─│─ ╱  goal
//	       │   ╱
//	       └───────────┴───────────┴───────────┴───────────┴────  requests
//	                   19          32          45          58
//
//	request 19   │ L2: 14    ││L1││ L0 │
//	request 32   │ L3: 10 ││ L2: 18       ││L1││ L0 │
//	request 45   │ L3: 23         ││ L2: 18           ││L1││ L0 │
//	request 58   │ L3: 36                  ││ L2: 19           ││ L0 │
//	              oldest turn                             newest turns
//
// Request 19 has 6,055 tokens. Tokens of newer turns are worth more, and a record is worth more than
// a call, a call more than a result (worth.go). The moves with the least worth come first, until
// 2,000 tokens are left. At L1, a result of 1,275 characters is
//
//	Step 14 compiled another package in a few seconds. Step 14 compiled … [1,075 of 1,275
//	characters archived as #30]
//
// and at L2, all fourteen turns are one message of the user:
//
//	[AUTO CONTEXT COMPRESSION]
//	This is a shortened record of earlier turns of this conversation, not a new request. …
//	[turns 1–14, #1–#28]
//	#1 Assistant: I look at step 0.
//	#1 Read(/build/step0.log)
//	#3 Assistant: I look at step 1.
//	…
//
// Requests 20 to 31 begin with these 1,947 tokens, the same bytes in each, and the new turns
// after them. In request 32 the target is exceeded again, and the next epoch goes deeper. L2 of
// all turns would be too large: blocks of the oldest turns become
//
//	[turns 1–8, #1–#16]
//	Assistant: I look at step 7.
//	Read: step4.log, … (and 4 more)
//
// # If levels are not enough
//
// Each step is taken only if the one before leaves the prompt above its target:
//
//  1. The unchanged tail shrinks along keepLastLadder, at last to one turn
//     (select.go).
//  2. Chunks (descend.go): within the newest turn the results of all groups of calls
//     but the newest go to L1, which matters if a whole tool loop is one turn;
//     then L3 grows coarser, its bound blockTokens halved down to 500 tokens, or a
//     sixteenth of a small window.
//  3. If the prompt would not even fit the window, it is truncated (descend.go)
//     and a separate event reports it. First, one line replaces the folded form of the oldest turns, quarter by quarter. It names them, their place in the
//     archive and a person's first request. If that alone is not enough, tool results
//     that no level touches lose their middle instead, the largest first; or both
//     apply. Turns are left out only if that makes the prompt fit.
//  4. Rules for cost and form are lifted, one rung after the other (protect.go).
//  5. The prompt goes out unchanged and the provider's own error comes back.
//
// The message that a person typed last is never cut, and neither are system prompts. A call
// without its result stays unchanged.
//
// A prompt also has a budget of bytes (media.go): media above it become placeholders, the
// oldest first and down to half of the budget, in an epoch of the same kind. Text is cut for
// that only if media are not the cause.
//
// # Besides the epochs
//
// Plan plans the epoch of a quiet lane ahead (occasion.go), and Notes returns a history at L2 and L3 as
// text, for a client that asks for a summary (summary.go).
package ipc
