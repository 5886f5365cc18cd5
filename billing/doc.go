// Package billing sells plans through Stripe. It counts the workspaces' usage, reports it to Stripe, and
// follows their subscriptions there.
//
// Stripe is the source of truth about money, the table exchanges about usage. A webhook is only a reason to
// read Stripe's state again, so neither the order nor the number of notices matters. Usage goes to Stripe as
// meter events. They are stored, with ids, before they are sent, so that a process may die at any point and
// the sums agree.
package billing
