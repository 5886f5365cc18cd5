// Package semanticcache says which requests may be answered with an earlier answer, and
// which answers may be kept for that.
//
// A wrong answer is worse than none. A request is looked at only if it is a single
// question: one message of a user behind an optional system prompt, no history,
// nothing that only the provider knows, nothing that depends on when it is asked.
// Every member of its body is known by name or the request is left alone.
//
// Its key is everything that the provider is sent but for formatting: only a request with
// the same key gets the answer.
package semanticcache
