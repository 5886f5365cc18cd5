// Package api is the proxy's HTTP edge: it takes a client's request through authentication, the pipeline and
// the provider, and relays the answer. exchange.go handles one exchange from top to bottom.
package api
