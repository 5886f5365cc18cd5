// Package summary has a model write the summary that replaces the oldest turns of a lane, in the
// background and with the workspace's own key.
//
// A Worker takes jobs from a bounded queue (worker.go), reads the originals of the turns and writes
// them down as data (transcript.go), asks a model in the cheapest way (request.go, base.go,
// choose.go), and judges the answer (judge.go). A program then corrects an accepted answer:
// finished items are no longer listed as open, instructions that came only from a tool's output are
// removed (planted.go), lost directives and identifiers are restored (coverage.go), files come from
// the ledger and not from the model, and the whole text is bounded (bound.go).
package summary
