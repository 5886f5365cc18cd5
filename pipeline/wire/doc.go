// Package wire cuts a request body at its messages and seals it again without
// losing a byte, and reads answers as they pass. What differs between the
// providers' formats lies in its sub-packages, one shape for all.
package wire
