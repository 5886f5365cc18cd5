// Package ipc compresses the oldest turns of a conversation when the prompt
// exceeds its target, in epochs: what an epoch has rendered is sent byte for byte
// until the next one, so that the provider's prompt cache stays warm.
//
// An epoch plans a level for each turn (plan.go, tail.go), renders the turns at
// their levels (level1.go to level3.go, assemble.go) and makes the originals and
// the new projection durable before either is used (ipc.go).
package ipc
