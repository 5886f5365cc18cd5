// Package resume writes a recorded session as the session file of another client, so that the client's own
// command to resume continues it.
//
// A session is first cut into rounds, which every client can hold: what the user said, what the
// assistant said, the tools that it called, and what they returned. Calls of tools that the client has as well become calls of
// those; all others become text, and so do their results. System prompts, reminders and thinking stay behind:
// each client has its own, and a provider takes thinking back only from where it came.
package resume
