// Package memorybench measures whether content that left a prompt can be found again: it asks the archive's
// search questions about recorded sessions, and compares the hits with the messages that answer them.
package memorybench
