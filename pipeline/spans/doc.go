// Package spans says what a request is doing while it is done: a span for each step, in
// the trace that its client names or in one of its own. A step that belongs to no request
// that is traced has no span, and costs no memory.
//
// A span holds names, numbers and ids. No text that a person or a model has written goes
// into one, and no error's message, for those can hold such text: an error has a kind.
package spans
