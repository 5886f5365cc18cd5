// Package cost computes the cost and savings of a prompt, and why a provider's cache lacked content that it
// should have had.
//
// # What an exchange saved
//
// There are two kinds of savings, never added up: money and reach.
//
// Money is the difference from a baseline that could have been sent:
//
//	net = input not sent + cached input not read − cache rewritten
//
// The baseline is the cheaper of two prompts. One is the client's prompt. The other is that of a client that
// compacts its own history at 92 % of the model's limit and continues with a summary of 8,000 tokens, plus
// its share of the summary's cost (Baseline). An example: a model takes 200,000 tokens, 20,000 of them before
// the messages. We sent 90,000, all of them cached. A million tokens cost $0.30 to read from the cache, $3.75
// to write and $15 as an answer. The prompt has grown by 2,000 tokens:
//
//	client's prompt   as sent   compacted   with its share of the summary   saved
//	        150,000   $0.0450           –                               –  $0.0180
//	        184,000   $0.0552           –                               –  $0.0282   just at 92 %
//	        190,000   $0.0570     $0.0102                         $0.0359  $0.0089
//	        210,000         –           –                               –  reach
//
// The summary costs 184,000 × $0.30 + 8,000 × ($15 + $3.75), for a million each: $0.2052. Of the 16,000
// tokens between 92 % and the limit, 2,000 are an eighth, which costs $0.0257.
//
// Reach counts requests whose prompt the provider would have rejected for its length, but answered because we
// shortened it. Neither the unsent tokens nor the rewritten cache have a price there, because the provider
// sells no alternative to compare with. A prompt that stayed above the limit is not counted.
//
// Unsent tokens would have cost the same as their neighbors. The part whose replacement the provider read
// from its cache would have cost the price of a cache read, and the rest the price of reading it again. If
// the cache was lost for another reason (it had expired, the client had changed earlier content, the provider
// had dropped it), shortening the prompt causes no extra rewrite. If the cache was lost because of one of our
// changes, the tokens that the provider had to read again count against us, at the difference between reading
// again and reading from the cache, and the unsent tokens are assumed to have been cached.
//
// Reading again costs the price that the provider charged in the same exchange: that of a cache write, of
// either time to live, if it wrote to its cache, otherwise that of plain input. Prices are the providers'
// list prices (tokens.Price; Anthropic: https://docs.claude.com/en/docs/build-with-claude/prompt-caching, a
// read at a tenth of input, a write at 1.25 times for five minutes and twice for an hour; OpenAI:
// https://platform.openai.com/docs/guides/prompt-caching).
//
// # The savings of a decision
//
// An epoch is a decision. It predicts its savings until the next one. Its actual savings are the sum over the
// exchanges under its projection, including the one that made it.
package cost
