// Package miner finds patterns in recorded sessions, off the request path and without
// a model: errors that were solved and whose cause the model named, what people say of
// how things are done, and orders that they type in several sessions.
//
// Only what a person typed or the model concluded becomes a pattern. A tool's words
// are looked for in later sessions, and are never repeated; a sentence that a tool's
// result holds is nobody's conclusion. What looks like a secret is not kept.
package miner
