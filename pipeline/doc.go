// Package pipeline runs a workspace's modules on a conversation before it goes to the provider. If a module
// fails, its changes are dropped and the last good state is sent.
package pipeline
