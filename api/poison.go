//go:build !race

package api

// poison says that memory is overwritten before it is used again, so that tests
// find anyone who still reads it. It is on under the race detector.
const poison = false
