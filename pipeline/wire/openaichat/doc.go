// Package openaichat reads and writes OpenAI's Chat Completions API: its
// requests, the messages in them, its answers and its errors.
package openaichat
