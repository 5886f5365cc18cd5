// Package rehydrator restores turns that the prompt no longer shows, when someone refers to them:
// "what did the migration test print earlier?", "the config we looked at", or a path, a name or a
// quotation that only compressed turns hold. They come back verbatim, within a budget, at the
// message that refers to them, and stay there.
package rehydrator
