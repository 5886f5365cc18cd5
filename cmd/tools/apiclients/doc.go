// Package apiclients runs the real clients through the real program: it installs
// them, sets each up as docs/clients.md says, lets it work on something in a network
// without a way out, and judges what client, proxy and provider double saw. The double
// plays the model.
package apiclients
