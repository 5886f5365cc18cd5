// Package compactionbench compares ways to keep a growing conversation within its context window: each
// one's prompts for the same session, request by request, their price at a provider with a prompt cache,
// and the part of the session that the model would still see. Ours runs as the proxy runs it; the others
// are modeled on the same messages. It needs no provider and no network.
package compactionbench
