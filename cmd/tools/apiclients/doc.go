// Package apiclients runs the real clients through the real program: it installs them, sets each up as
// docs/clients.md says, gives it a task in a network without a way out, and judges the requests and answers
// that client, proxy and provider double saw. The double plays the model.
package apiclients
