// Package blob keeps archived bytes outside the database: in a directory, or in
// an S3-compatible store.
package blob
