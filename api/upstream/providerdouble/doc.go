// Package providerdouble is a double of the Anthropic and OpenAI APIs that is as
// strict as they are: it refuses a body for the reasons, and in the words, in
// which the providers refuse it, streams answers event by event, accounts for
// prompt caching and misbehaves on command.
//
// It shares no code with the proxy's own wire formats, so that a fault in those
// cannot hide here. The command replay has it judge what it would send, the demo has
// it answer, and providertest serves it to tests.
package providerdouble
