// Package patterns is the module patterns: it puts the rules that a team has written into a
// lane's prompt where they are relevant.
//
// A pattern is a convention or a standing order. People write, edit and disable them, and
// patternsdb keeps them. The module itself asks no database on a warm request: a Cache serves
// each workspace's patterns from memory.
//
// Patterns are chosen once per lane, at its first request with a typed message. One that
// names an error comes at most once per lane, when that turns up in a new message. Nothing
// else is ever put in or changed, so that the sent prefix stays.
package patterns
