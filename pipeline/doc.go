// Package pipeline takes a conversation through the modules of a workspace
// before it goes to the provider. A module that fails is undone: the last good
// state goes out.
package pipeline
