// Package limits holds requests to what their subject, an API key or a workspace,
// may use: requests and tokens a minute, requests under way at once, money a day
// and a month. It counts in this process, or in Redis for all replicas together;
// while Redis does not answer, each replica counts by itself and requests flow.
//
// Rates are held with GCRA (generic cell rate algorithm, ITU-T I.371): a quiet
// subject may use a whole minute's worth at once, and gets it back evenly over the
// next minute.
package limits
