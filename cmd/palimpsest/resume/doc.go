// Package resume writes a recorded session as the session file of another client, so that the client's own
// command to resume continues it.
//
// A session is first cut into rounds, which every client can hold: the user's messages, the assistant's
// messages, its tool calls, and their results. A call becomes a call of the client's equal tool if there is
// one. Otherwise the call and its result become text. System prompts, reminders and thinking stay behind,
// because each client has its own and a provider accepts only its own thinking.
package resume
