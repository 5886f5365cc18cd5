// Package patterns is the module patterns: it puts a team's written rules into a lane's prompt if
// they are relevant.
//
// A pattern is a convention or a standing order. People write, edit and disable them, and
// patternsdb stores them. On a warm request the module queries no database, because a Cache serves
// each workspace's patterns from memory.
//
// Patterns are chosen once per lane, at its first request with a typed message. A pattern that
// names an error is added at most once per lane, when the error appears in a new message. The
// module never inserts or changes anything else, so that the sent prefix stays.
package patterns
