// Package idle plans epochs ahead, for lanes whose prompt is large enough to compress once the provider's
// cache of it expires. It does so shortly before that time, so that the first request afterwards only has to
// commit the plan. A plan is the result that the lane's last request would have had. Without one the request
// is only slower.
//
// The input of a plan is recorded with the exchange, together with the job that makes it, and the plan is
// kept with the lane until it is used. Therefore any process can run the job and any process can use the
// plan, also after a restart.
package idle
