// Package gemini reads and writes Google's Gemini API: its requests, the contents in them, its answers and its
// errors.
package gemini
