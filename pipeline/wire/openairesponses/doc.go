// Package openairesponses reads and writes OpenAI's Responses API: its requests,
// the items in them, its answers and its errors.
package openairesponses
