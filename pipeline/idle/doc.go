// Package idle plans epochs ahead: of lanes whose prompt is large enough to be
// compressed once the provider's cache of it has gone cold, shortly before it
// does. The first request after that finds the plan made and has only to commit
// it. A plan is what the lane's last request would have come to; without one the
// request is merely slower.
package idle
