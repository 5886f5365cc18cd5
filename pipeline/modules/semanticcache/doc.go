// Package semanticcache decides which requests may be answered with an earlier answer, and which
// answers may be kept for that.
//
// Since a wrong answer is worse than no answer, it considers a request only if it is a single
// question: one message of a user after an optional system prompt, without history, provider-side
// state, or anything that depends on the time of the question. Every member of its body must be
// known by name, otherwise the request goes to the provider.
//
// Its key covers everything sent to the provider except formatting: only a request with the same
// key gets the answer.
package semanticcache
