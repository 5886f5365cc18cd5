// Package jobsdb keeps jobs in Postgres and runs them with River. Each kind has its own queue, and any
// process may take a job. One process at a time, elected in the database, schedules due and periodic jobs.
//
// Notices of jobs come on a direct connection. River would otherwise LISTEN on a connection of the pool,
// which may go through a pgbouncer in transaction mode, where notices are lost.
package jobsdb
