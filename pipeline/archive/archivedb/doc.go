// Package archivedb keeps the archive in Postgres: each message once by its
// SHA-256, and for each lane which message stands where.
package archivedb
