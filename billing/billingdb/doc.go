// Package billingdb keeps in Postgres what billing knows: accounts, notices, usage and
// the meter events that are made of it.
package billingdb
