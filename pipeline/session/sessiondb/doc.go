// Package sessiondb keeps sessions, lanes and projections in Postgres and reads
// them for pages.
package sessiondb
