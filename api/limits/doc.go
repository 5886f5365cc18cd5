// Package limits enforces the limits of a request's subject, an API key or a workspace: requests and tokens a
// minute, concurrent requests, money a day and a month. It counts in this process, or in Redis for all
// replicas together. While Redis does not answer, each replica counts alone so that requests still pass.
//
// Rates are held with GCRA (generic cell rate algorithm, ITU-T I.371): a quiet subject may use a whole
// minute's worth at once, and gets it back evenly over the next minute.
package limits
