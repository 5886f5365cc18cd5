// Package wire splits a request body into its messages and joins it again without losing a byte, and reads
// answers as they stream. Its sub-packages implement the providers' formats, all with the same structure.
package wire
