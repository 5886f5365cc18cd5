// Package semanticcache says which requests may be answered with an earlier answer,
// which answers may be kept for that, and when two questions are the same question
// in other words.
//
// A wrong answer is worse than none. A request is looked at only if it is a single
// question: one message of a user behind an optional system prompt, no history,
// nothing that only the provider knows, nothing that depends on when it is asked.
// Every member of its body is known by name or the request is left alone.
//
// Its key is everything that the provider is sent but for formatting: a request with
// the same key, an exact hit, is the same request. For a semantic hit the rest must
// be equal and the two texts must pass two tests of their own. Their embeddings must
// be as similar as the workspace asks for; and, because embeddings hardly tell a
// question from its opposite, or from the same question about another number or
// name, their Meaning must be equal: the texts word for word, in order, after a
// short list of rewordings that change nothing, such as "how can I" for "how do I"
// or "please". All that is not in that list, numbers, names, units, negations,
// comparatives, code, must stand in both texts.
package semanticcache
