// Package spans traces the steps of a request: a span for each step, in the client's trace or in a new one. A
// step outside a traced request has no span, and costs no memory.
//
// A span holds names, numbers and ids. It never contains text from a person or a model, nor an error message,
// because that may contain such text. Therefore errors have a kind.
package spans
