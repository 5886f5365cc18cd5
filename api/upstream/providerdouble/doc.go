// Package providerdouble is a double of the APIs of Anthropic, OpenAI and Google with the same strictness: it refuses a
// body for the same reasons, and in the same words, streams answers event by event, accounts for prompt
// caching and misbehaves on command.
//
// It shares no code with the proxy's own wire formats, so that it can reveal their faults. The command replay
// uses it to judge requests, the demo to answer them, and providertest serves it to tests.
package providerdouble
