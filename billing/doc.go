// Package billing sells plans through Stripe: it counts what workspaces use, tells
// Stripe of it, and follows what Stripe says of their subscriptions.
//
// Stripe holds the truth about money, the table exchanges the truth about usage.
// Whatever Stripe tells of by webhook is only a reason to read its state again, so
// neither the order nor the number of notices matters. Usage goes to Stripe as meter
// events that are written down, under ids, before they are sent, so that a process may
// die at any point and the sums agree.
package billing
