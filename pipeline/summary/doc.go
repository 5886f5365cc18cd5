// Package summary has a model write what stands for the oldest turns of a lane, in
// the background and with the workspace's own key.
//
// A Worker takes jobs from a bounded queue (worker.go), reads the originals of the
// turns and writes them down as data (transcript.go), asks a model in the way that
// costs least (request.go, base.go, choose.go), and judges the answer (judge.go).
// What is accepted is put in order by program: items that are done are open no
// longer, instructions that only a tool's output gave are taken out (planted.go),
// directives and identifiers that were lost are put back (coverage.go), files come
// from the ledger and not from the model, and all of it is bounded (bound.go).
package summary
