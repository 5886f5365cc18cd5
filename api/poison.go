//go:build !race

package api

// poison says that memory is overwritten before it is reused, so that tests find late readers. It is on under
// the race detector.
const poison = false
