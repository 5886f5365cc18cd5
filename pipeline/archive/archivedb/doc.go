// Package archivedb keeps the archive in Postgres: each message once by its SHA-256, and the places of
// messages in each lane.
package archivedb
