// Package billingdb stores billing's data in Postgres: accounts, notices, usage and the meter events made
// from it.
package billingdb
