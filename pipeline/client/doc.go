// Package client understands what a request says about the client that sent it:
// its name, its session, and whether the request carries the conversation on,
// is one beside it (a title, a summary), or comes right after the client
// compacted itself.
//
// Classify reads one request and nothing else. A client leaves the mark of its
// compaction in every later request, so that a request alone cannot tell whether
// it is the first after it: Class.Marker says that the mark is there, Class.First
// decides with what the caller knows of the lane.
//
// Texts count by their position only: the head of the system prompt, the start of
// one of the first messages, the end of the last one. The same words in a tool's
// result, inside a sentence or in code say nothing.
package client
