// Package patternsdb keeps patterns in Postgres.
package patternsdb
