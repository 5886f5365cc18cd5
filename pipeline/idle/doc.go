// Package idle plans epochs ahead: of lanes whose prompt is large enough to be
// compressed once the provider's cache of it has gone cold, shortly before it
// does. The first request after that finds the plan made and has only to commit
// it. A plan is what the lane's last request would have come to; without one the
// request is merely slower.
//
// What a plan is made from is recorded with the exchange, together with the job to
// make it; the plan is kept with the lane until it is used. So whichever process does
// the job, and whichever gets the next request, also after a restart.
package idle
