// Package conversation is the common model of conversations. Every wire format converts to it, and modules
// only see this model. It keeps the client's bytes next to the parsed content, so that unchanged messages are
// sent byte for byte.
package conversation
