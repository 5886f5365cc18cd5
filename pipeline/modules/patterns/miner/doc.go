// Package miner finds patterns in recorded sessions, off the request path and without
// a model: what people say of how things are done, orders that they type in several
// sessions, and the commands with which several sessions test and build.
//
// Only what a person typed, or a command that the model ran, becomes a pattern; what a tool
// returned never does. What looks like a secret is not kept.
package miner
