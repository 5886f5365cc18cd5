// Package jobsdb keeps jobs in Postgres and runs them, with River: each kind has a
// queue of its own, any process may take a job, and one process at a time, elected
// in the database, brings up what is due and what comes again and again.
//
// It hears of jobs past the pool. River would otherwise LISTEN on a connection of the pool, which a
// pgbouncer in transaction mode may serve, and there notices are lost.
package jobsdb
