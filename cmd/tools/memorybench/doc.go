// Package memorybench measures whether what left a prompt is found again: questions
// about recorded sessions are put to the search of the archive, and what it finds is
// held against the messages that answer them.
package memorybench
