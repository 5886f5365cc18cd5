// Package anthropic reads and writes Anthropic's Messages API: its requests, the
// messages in them, its answers and its errors.
package anthropic
