// Package compactionbench compares ways to keep a growing conversation within its
// context window: what each would send for the same session, request by request,
// what a provider with a prompt cache would charge for it, and what of the session
// would still be before the model. Ours runs as the proxy runs it; the others are
// modelled on the same messages. It needs no provider and no network.
package compactionbench
