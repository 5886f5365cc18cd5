// Package cost says what a prompt cost and saved, and why a provider's cache did
// not have what it should have had.
//
// # What an exchange saved
//
// Two things are claimed, and never added up: money, and reach.
//
// Money is the difference to a baseline that could have been sent:
//
//	net = input not sent + cached input not read − cache rewritten
//
// The baseline is the cheaper of two prompts: the one that the client sent, and the one of
// a client that compacts its own history at 92 % of what the model takes and goes on from
// a summary of 8,000 tokens, with its share of what the summary costs (Baseline). For a
// model that takes 200,000 tokens, 20,000 of them ahead of the messages, of which we sent
// 90,000, all of it cached at $0.30 for a million tokens read and $3.75 written, with $15 for
// a million tokens of the answer, and a prompt that has grown by 2,000 tokens:
//
//	client's prompt   as sent   compacted   with its share of the summary   saved
//	        150,000   $0.0450           –                               –  $0.0180
//	        184,000   $0.0552           –                               –  $0.0282   just at 92 %
//	        190,000   $0.0570     $0.0102                         $0.0359  $0.0089
//	        210,000         –           –                               –  reach
//
// The summary costs 184,000 × $0.30 + 8,000 × ($15 + $3.75), for a million each: $0.2052.
// 2,000 of the 16,000 tokens between 92 % and the limit are an eighth of it, $0.0257.
//
// Reach is a request whose prompt the provider would have refused for its length, and which
// it answered because we shortened it. It is counted. It is not priced, neither what was not
// sent nor the cache that we rewrote: nothing that could be bought instead has a price to
// compare with. A prompt above the limit that was not shortened below it counts as nothing.
//
// Tokens that were not sent would have cost what their neighbors cost: the price
// of a cache read as far as the provider read from its cache what stands for them,
// the price of reading them again for the rest. Where the cache had been lost in any
// case (it had expired, the client had changed what comes before, the provider had
// dropped it), shortening the prompt rewrites nothing that was not to be rewritten
// anyway. Where the cache was lost because of one of our changes, what the provider
// had to read again counts against us, at the difference between reading again and
// reading from the cache; and what was not sent is taken to have been in the cache.
//
// Reading again costs what the provider charged for it in the same exchange: the
// price of a cache write, of either time to live, where it wrote to its cache, else
// that of plain input. Prices are the providers' lists (tokens.Price; Anthropic:
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching, a read at a tenth
// of input, a write at 1.25 times for five minutes and twice for an hour; OpenAI:
// https://platform.openai.com/docs/guides/prompt-caching).
//
// # What a decision saved
//
// An epoch is a decision. It predicts what it will save until the next one; what it
// did save is the sum over the exchanges under its projection, the one that made it
// included.
package cost
