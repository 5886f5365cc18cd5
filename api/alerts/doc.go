// Package alerts tells people of a workspace what needs them: by webhooks that are signed as
// Standard Webhooks have it, by Slack-compatible webhooks, and by mail.
//
// Pass looks at the rules and turns what it finds into deliveries, one for each channel that
// subscribes to the rule, each with a job of its own. Deliver does such a job: it sends, notes
// what the receiver answered, and comes back later if the receiver did not take it.
package alerts
