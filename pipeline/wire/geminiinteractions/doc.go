// Package geminiinteractions reads and writes the Interactions API of Gemini: its requests, the steps in them, its
// answers and its errors (https://ai.google.dev/api/interactions-api).
package geminiinteractions
