// Package client detects which client sent a request, its session, and whether the request continues the
// conversation, is separate from it (a title, a summary), or comes right after the client compacted itself.
//
// Classify reads only one request. A client leaves the marker of its compaction in every later request, so
// that a request alone does not show whether it is the first one after it. Class.Marker reports the marker,
// and Class.First decides with the caller's knowledge of the lane.
//
// Texts count only at certain positions: the head of the system prompt, the start of one of the first
// messages, the end of the last one. The same words in a tool result, inside a sentence or in code are
// ignored.
package client
