// Package cost says what a prompt cost and saved, and why a provider's cache did
// not have what it should have had.
//
// # What an exchange saved
//
// It is the difference to the same exchange with the prompt that the client sent:
//
//	net = input not sent + cached input not read − cache rewritten
//
// Tokens that were not sent would have cost what their neighbours cost: the price
// of a cache read as far as the provider read from its cache what stands for them,
// the price of reading them anew for the rest. Where the cache had been lost in any
// case (it had expired, the client had changed what comes before, the provider had
// dropped it), shortening the prompt rewrites nothing that was not to be rewritten
// anyway. Where the cache was lost because of a change of ours, what the provider
// had to read anew counts against us, at the difference between reading anew and
// reading from the cache; and what was not sent is taken to have been in the cache.
//
// Reading anew costs what the provider charged for it in the same exchange: the
// price of a cache write, of either time to live, where it wrote to its cache, else
// that of plain input. Prices are the providers' lists (tokens.Price; Anthropic:
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching, a read at a tenth
// of input, a write at 1.25 times for five minutes and twice for an hour; OpenAI:
// https://platform.openai.com/docs/guides/prompt-caching). The client's prompt may have
// been longer than the model's window; what it would have cost is then what it would
// have cost with a larger one.
//
// # What a decision saved
//
// An epoch is a decision. It predicts what it will save until the next one; what it
// did save is the sum over the exchanges under its projection, the one that made it
// included.
package cost
