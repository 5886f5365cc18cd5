// Package alerts notifies people of a workspace: by webhooks signed as in Standard Webhooks, by
// Slack-compatible webhooks, and by mail.
//
// Pass checks the rules and creates deliveries, one for each channel that subscribes to the rule, each with a
// job of its own. Deliver does such a job: it sends, notes the receiver's answer, and retries later if the
// receiver did not accept it.
package alerts
