// Package patterns is the module patterns: it puts what a team has learned in earlier
// sessions into a lane's prompt where that is relevant.
//
// A pattern is a convention or a standing order. The package miner finds candidates in the archive, off the request path;
// people approve, edit and disable them; patternsdb keeps them. The module itself
// asks no database on a warm request: a Cache serves each workspace's patterns from
// memory.
//
// Patterns are chosen once per lane, at its first request with a typed message. One that
// names an error comes at most once per lane, when that turns up in a new message. Nothing
// else is ever put in or changed, so that the sent prefix stays.
package patterns
